#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""cork_client.py COUNT NAME=ADDRESS... - times connect to EOF in the four modes of cork_modes.h.

Opens COUNT connections a mode and server, one at a time, in turns over servers and modes; each
must bring 100 bytes and then EOF. Prints a line `MODE NAME MICROSECONDS` for each. Called by
cork_close.sh and tests/interop/test_cork.sh, on the kernel's sockets."""
import gc
import socket
import sys
import time

PORT = 7000
MODES = ("plain", "cork-close", "cork-uncork-close", "cork-shutdown")
BYTES = 100


def sample(address, port):
    start = time.perf_counter_ns()
    with socket.create_connection((address, port), timeout=10) as s:
        n = 0
        while data := s.recv(4096):
            n += len(data)
        end = time.perf_counter_ns()
    if n != BYTES:
        sys.exit(f"cork_client: {n} bytes from {address}:{port}, not {BYTES}")
    return (end - start) / 1000


def main():
    count = int(sys.argv[1])
    servers = [arg.split("=", 1) for arg in sys.argv[2:]]
    for _, address in servers:  # neighbours become known; the first turn is nobody's sample
        for i in range(len(MODES)):
            sample(address, PORT + i)
    gc.disable()
    lines = []
    for _ in range(count):
        for i, mode in enumerate(MODES):
            for name, address in servers:
                lines.append(f"{mode} {name} {sample(address, PORT + i):.1f}")
    print("\n".join(lines))


main()
