#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An HTTP server that is as slow as it is told: slow_server.py ADDRESS PORT MILLISECONDS

Reads each request with its body (Content-Length), waits for MILLISECONDS, answers 100 bytes and
keeps the connection if asked to. One thread, asyncio. Prints `listening` when it is ready; runs
until it is ended. Used by test_ab_verdict.sh and test_ab_counters.sh on the kernel's side.
"""
import asyncio
import sys

BODY = b"x" * 100


async def serve(reader, writer, delay):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.split(b":", 1) for line in head.lower().split(b"\r\n")[1:] if b":" in line)
            left = int(fields.get(b"content-length", b"0"))
            while left > 0:
                left -= len(await reader.read(min(left, 65536))) or left
            await asyncio.sleep(delay)
            keep = fields.get(b"connection", b"").strip() == b"keep-alive"
            writer.write(b"HTTP/1.0 200 OK\r\nServer: slow\r\nContent-Length: 100\r\nConnection: "
                         + (b"keep-alive" if keep else b"close") + b"\r\n\r\n" + BODY)
            await writer.drain()
            if not keep:
                break
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


async def main(address, port, milliseconds):
    delay = float(milliseconds) / 1000
    server = await asyncio.start_server(lambda r, w: serve(r, w, delay), address, int(port), backlog=1024)
    print("listening", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
