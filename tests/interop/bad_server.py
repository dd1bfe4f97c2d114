#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A server that misbehaves: bad_server.py reset|half|stall|garbage|silent ADDRESS PORT

reset    reads the request, then resets the connection
half     promises 1000 bytes, sends 500, closes
stall    promises 1000 bytes, sends 500, and stays
garbage  sends what is no HTTP, closes
silent   reads the request, closes without a byte

One connection after the other but for stall, which keeps them all. Prints `listening` when it is
ready; runs until it is ended. Used by test_bad_input.sh on the kernel's side.
"""
import socket
import struct
import sys

HEAD = b"HTTP/1.0 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n"


def serve(mode, conn, kept):
    data = b""
    while b"\r\n\r\n" not in data:
        more = conn.recv(4096)
        if not more:
            return
        data += more
    if mode == "reset":
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif mode in ("half", "stall"):
        conn.sendall(HEAD + b"x" * 500)
        if mode == "stall":
            kept.append(conn)
            return
    elif mode == "garbage":
        conn.sendall(bytes(range(256)) * 3)
    conn.close()


def main(mode, address, port):
    if mode not in ("reset", "half", "stall", "garbage", "silent"):
        sys.exit(__doc__)
    kept = []
    with socket.create_server((address, int(port)), backlog=128) as listener:
        print("listening", flush=True)
        while True:
            conn = listener.accept()[0]
            try:
                serve(mode, conn, kept)
            except OSError:
                conn.close()


if __name__ == "__main__":
    main(*sys.argv[1:4])
