#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ICMP echo through the kernel's IP and ARP, from a raw socket.

    ping.py ADDRESS COUNT SIZE [--burst N] [--wait SECONDS]

COUNT requests of SIZE bytes of payload with the DF bit set, N at a time (default 1: each waits for
its reply, 2 s or SECONDS at most). Every reply must carry the bytes, identifier and TTL 64 that it
should. Prints "SENT sent, GOT received, DUP twice, BAD wrong". Exit: 0 each came back once, 1 not,
2 wrong usage."""

import argparse
import os
import select
import socket
import struct
import sys
import time


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def request(ident, seq, size):
    payload = bytes((seq * 7 + i * 13) & 0xFF for i in range(size))
    head = struct.pack("!BBHHH", 8, 0, 0, ident, seq)
    return struct.pack("!BBHHH", 8, 0, checksum(head + payload), ident, seq) + payload


class Pinger:
    def __init__(self, address, size):
        self.address, self.size = address, size
        self.ident = os.getpid() & 0xFFFF
        self.seen, self.sent, self.twice, self.wrong = set(), 0, 0, 0
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.sock.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO: DF

    def send(self):
        self.sent += 1
        self.sock.sendto(request(self.ident, self.sent & 0xFFFF, self.size), (self.address, 0))

    def take(self, packet):
        ihl = (packet[0] & 15) * 4
        icmp = packet[ihl:]
        if socket.inet_ntoa(packet[12:16]) != self.address or icmp[0] != 0:
            return  # our own request, or somebody else's
        seq = struct.unpack("!H", icmp[6:8])[0]
        want = request(self.ident, seq, self.size)
        if icmp[4:] != want[4:] or checksum(icmp) != 0 or packet[8] != 64 or ihl != 20:
            self.wrong += 1
        elif seq in self.seen:
            self.twice += 1
        else:
            self.seen.add(seq)

    def receive(self, want, seconds):
        """Until `want` different replies are in, or the time is over."""
        end = time.monotonic() + seconds
        while len(self.seen) < want and time.monotonic() < end:
            if select.select([self.sock], [], [], end - time.monotonic())[0]:
                self.take(self.sock.recv(65536))
        while select.select([self.sock], [], [], 0)[0]:
            self.take(self.sock.recv(65536))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("count", type=int)
    parser.add_argument("size", type=int)
    parser.add_argument("--burst", type=int, default=1)
    parser.add_argument("--wait", type=float, default=2.0)
    args = parser.parse_args()
    pinger = Pinger(args.address, args.size)
    while pinger.sent < args.count:
        for _ in range(min(args.burst, args.count - pinger.sent)):
            pinger.send()
        pinger.receive(pinger.sent, args.wait)
    print(f"{pinger.sent} sent, {len(pinger.seen)} received, {pinger.twice} twice, {pinger.wrong} wrong")
    return 0 if (len(pinger.seen), pinger.twice, pinger.wrong) == (args.count, 0, 0) else 1


if __name__ == "__main__":
    sys.exit(main())
