#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sends frames that are no sound packets out of an interface, as fast as they go: runts and giants,
wrong lengths, types, versions, options and fragments, VLAN tags, wrong checksums, TCP of random flags,
and requests for the address.

Prints how many were sent. What the kernel refuses to send is no error. Run in a network namespace.
"""
import argparse
import random
import socket
import struct
import time

SECONDS = 1.5  # a load, not a burst
SEED = 7


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


class Maker:
    def __init__(self, mac, peer, own, rng):
        self.ether = mac + b"\x02\x00\x00\x00\x00\x77"
        self.peer, self.own, self.rng = peer, own, rng

    def ipv4(self, body, length=None, words=5, fragment=0, protocol=6, version=4):
        length = 20 + len(body) if length is None else length
        head = struct.pack(
            "!BBHHHBBH4s4s", version << 4 | words, 0, length, 1, fragment, 64, protocol, 0, self.own, self.peer
        )
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body

    def tcp(self, body):
        r = self.rng.randrange
        return struct.pack("!HHIIBBHHH", r(65536), 80, r(1 << 32), r(1 << 32), r(256), r(256), 1000, r(65536), 0) + body

    def frame(self):
        r = self.rng.randrange
        body = self.rng.randbytes(self.rng.choice((0, 1, 4, 19, 20, 60, 200, 1480)))
        ip = self.ether + b"\x08\x00"
        short = body[:1440]
        return self.rng.choice(
            (
                lambda: self.ether + struct.pack("!H", self.rng.choice((0x800, 0x806, 0x86DD, 0x8100, 0, 46))) + body,
                lambda: ip + self.ipv4(body, length=r(65536)),
                lambda: ip + self.ipv4(body, words=r(16)),
                lambda: ip + self.ipv4(body, version=r(16)),
                lambda: ip + self.ipv4(body, fragment=r(65536)),
                lambda: ip + self.ipv4(body, protocol=r(256)),
                lambda: self.ether + b"\x81\x00" + struct.pack("!HH", r(65536), 0x800) + self.ipv4(short),
                lambda: self.ether + b"\x88\xa8\x00\x01\x81\x00\x00\x02\x08\x00" + self.ipv4(short),
                lambda: self.ether + b"\x08\x06" + body,
                lambda: (self.ether + b"\x08\x00")[: r(1, 15)],
                lambda: self.ether + b"\x86\xdd\x60" + body,
                lambda: ip + self.ipv4(self.tcp(short)),
                lambda: b"\xff" * 6
                + self.ether[6:]
                + struct.pack("!HHHBBH", 0x806, 1, 0x800, 6, 4, 1)
                + self.ether[6:]
                + self.own[:3]
                + b"\xc8"  # nobody else's: it is believed
                + bytes(6)
                + self.peer,
            )
        )()


def mac_of(address):
    """As this namespace's kernel knows it: somebody has spoken with that address before."""
    with open("/proc/net/arp") as table:
        for line in table:
            words = line.split()
            if words[0] == address and words[3] != "00:00:00:00:00:00":
                return bytes.fromhex(words[3].replace(":", ""))
    raise SystemExit("no hardware address of %s is known" % address)


def send(sock, frame):
    try:
        sock.send(frame)
        return 1
    except OSError:
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("interface")
    parser.add_argument("--to", required=True)
    parser.add_argument("--from", dest="own", required=True)
    args = parser.parse_args()
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.bind((args.interface, 0))
    count = 0
    rng = random.Random(SEED)
    maker = Maker(mac_of(args.to), socket.inet_aton(args.to), socket.inet_aton(args.own), rng)
    frames = [maker.frame() for _ in range(1000)]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        count += sum(send(sock, frame) for frame in frames)
    print("%d frames of seed %d" % (count, SEED))


main()
