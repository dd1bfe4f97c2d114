#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks a capture of a clean wire: checksums, retransmissions, FIN on the last data, timestamps.

    check_pcap.py [options] FILE...

Reads pcap and pcapng (Ethernet, VLAN tags, IPv4, IPv6, TCP) with the standard library only. Prints
a summary and, for each kind of violation, how many there are and the first ten frame numbers
(Wireshark's). Exits 0 when there is none, 1 when there is one, 2 when a file cannot be read.

Without --addr every rule but the FIN rules holds for both sides. With --addr only what that
address sent is judged, but for retransmissions, resets and gaps, which a clean wire shows in
neither direction: the other side's are kinds of their own (peer-...), so that one knows whose
they are. A kernel whose machine paused for some ms sends tail-loss probes that nobody is to
blame for: --peer-retransmissions N tolerates that many of them.

Kinds:
  truncated            frame cut by the capture: it cannot be judged
  malformed            a header that contradicts its lengths; a fragment
  ip-checksum, tcp-checksum
  retransmission       data, SYN or FIN that this side had sent before
  reordering           older than what was sent before, but new
  gap                  a hole in what this side sent (never filled by the end: its last frame)
  bare-fin             FIN without data, although data of this side was still unacknowledged
                       (--fin acked), or although this side sent data at all (--fin strict)
  no-timestamp         segment without the option on a connection that agreed on it
  ts-backwards         TSval older than one sent before;  ts-echo: TSecr that nobody sent
  ack-unsent           acknowledges what the other side did not send
  beyond-window        data right of the window that was offered;  above-mss: larger than its MSS
  reset                with --no-reset;  unfinished: with --complete, no FIN each way and no RST
  packets              with --max-packets, a connection that took more; not counted are
                       tolerated retransmissions of the peer and an answer to each
A single byte into a closed window is a probe: counted, no violation.

Called by the tests/interop scripts; its own test plants each violation (test_check_pcap.py).
"""
import argparse
import collections
import ipaddress
import json
import struct
import sys

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MASK = 0xFFFFFFFF


class BadFile(Exception):
    pass


def seq_diff(a, b):
    """a - b as a signed 32-bit distance."""
    return ((a - b + 0x80000000) & MASK) - 0x80000000


# ---- capture files

def read_pcap(data):
    magic = data[:4]
    if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        order = "<"
    elif magic in (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"):
        order = ">"
    else:
        raise BadFile("neither pcap nor pcapng")
    if len(data) < 24:
        raise BadFile("header cut short")
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    record = struct.Struct(order + "IIII")
    at = 24
    while at < len(data):
        if at + 16 > len(data):
            raise BadFile("record header cut short at byte %d" % at)
        caplen, length = record.unpack_from(data, at)[2:]
        at += 16
        if at + caplen > len(data):
            raise BadFile("record cut short at byte %d" % at)
        yield link, data[at:at + caplen], length
        at += caplen


def read_pcapng(data):
    order, links, at = "<", [], 0
    while at < len(data):
        if at + 12 > len(data):
            raise BadFile("block cut short at byte %d" % at)
        if data[at:at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, total = struct.unpack_from(order + "II", data, at)
        if total < 12 or total & 3 or at + total > len(data):
            raise BadFile("bad block length at byte %d" % at)
        body = at + 8
        if kind == 1:
            links.append(struct.unpack_from(order + "H", data, body)[0])
        elif kind == 6 or kind == 2:
            if kind == 6:
                interface = struct.unpack_from(order + "I", data, body)[0]
            else:
                interface = struct.unpack_from(order + "H", data, body)[0]
            caplen, length = struct.unpack_from(order + "II", data, body + 12)
            if interface >= len(links) or caplen > total - 32:
                raise BadFile("bad packet block at byte %d" % at)
            yield links[interface], data[body + 20:body + 20 + caplen], length
        elif kind == 3:
            length = struct.unpack_from(order + "I", data, body)[0]
            caplen = min(length, total - 16)
            if not links:
                raise BadFile("packet before its interface at byte %d" % at)
            yield links[0], data[body + 4:body + 4 + caplen], length
        at += total


def read_frames(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        return read_pcapng(data)
    return read_pcap(data)


# ---- packets

class Segment:
    __slots__ = ("number", "src", "dst", "sport", "dport", "seq", "ack", "flags", "window",
                 "length", "options_length", "mss", "wscale", "tsval", "tsecr")


class Malformed(Exception):
    pass


def sum_is_good(data):
    """The ones' complement sum of all 16-bit words is all ones: a multiple of 65535."""
    if len(data) & 1:
        data += b"\0"
    return int.from_bytes(data, "big") % 0xFFFF == 0


def ip_payload(frame):
    """(protocol, src, dst, payload, pseudo header, header good) of an Ethernet frame, or None."""
    if len(frame) < 14:
        raise Malformed("Ethernet header")
    at, kind = 14, frame[12:14]
    while kind in (b"\x81\x00", b"\x88\xa8"):
        kind = frame[at + 2:at + 4]
        at += 4
    if kind == b"\x08\x00":
        return ipv4_payload(frame[at:])
    if kind == b"\x86\xdd":
        return ipv6_payload(frame[at:])
    return None


def ipv4_payload(packet):
    if len(packet) < 20 or packet[0] >> 4 != 4:
        raise Malformed("IPv4 header")
    header = (packet[0] & 15) * 4
    total = int.from_bytes(packet[2:4], "big")
    if header < 20 or total < header or total > len(packet):
        raise Malformed("IPv4 length")
    if int.from_bytes(packet[6:8], "big") & 0x3FFF:
        raise Malformed("fragment")
    protocol, payload = packet[9], packet[header:total]
    pseudo = packet[12:20] + struct.pack(">HH", protocol, len(payload))
    return protocol, packet[12:16], packet[16:20], payload, pseudo, sum_is_good(packet[:header])


def ipv6_payload(packet):
    if len(packet) < 40 or packet[0] >> 4 != 6:
        raise Malformed("IPv6 header")
    length = int.from_bytes(packet[4:6], "big")
    if 40 + length > len(packet):
        raise Malformed("IPv6 length")
    protocol, at, end = packet[6], 40, 40 + length
    while protocol in (0, 43, 60):
        if at + 8 > end:
            raise Malformed("IPv6 extension header")
        protocol, at = packet[at], at + (packet[at + 1] + 1) * 8
    if protocol == 44:
        raise Malformed("fragment")
    payload = packet[at:end]
    pseudo = packet[8:40] + struct.pack(">II", len(payload), protocol)
    return protocol, packet[8:24], packet[24:40], payload, pseudo, True


def parse_options(segment, options):
    at = 0
    while at < len(options):
        kind = options[at]
        if kind == 0:
            return
        if kind == 1:
            at += 1
            continue
        if at + 2 > len(options) or options[at + 1] < 2 or at + options[at + 1] > len(options):
            raise Malformed("TCP option")
        length, body = options[at + 1], options[at + 2:at + options[at + 1]]
        if kind == 2 and length == 4:
            segment.mss = int.from_bytes(body, "big")
        elif kind == 3 and length == 3:
            segment.wscale = min(body[0], 14)
        elif kind == 8 and length == 10:
            segment.tsval, segment.tsecr = struct.unpack(">II", body)
        at += length


def parse_tcp(number, src, dst, tcp):
    if len(tcp) < 20:
        raise Malformed("TCP header")
    s = Segment()
    s.number, s.src, s.dst = number, src, dst
    s.sport, s.dport, s.seq, s.ack, offset, s.flags, s.window = struct.unpack_from(
        ">HHIIBBH", tcp)
    header = (offset >> 4) * 4
    if header < 20 or header > len(tcp):
        raise Malformed("TCP data offset")
    s.options_length = header - 20
    s.length = len(tcp) - header
    s.mss = s.wscale = s.tsval = s.tsecr = None
    parse_options(s, tcp[20:header])
    return s


# ---- connections

class Side:
    """What one end of a connection has sent so far."""

    def __init__(self):
        self.first = None       # sequence number of the first thing seen
        self.next = None        # one past the newest sequence number sent
        self.holes = []         # (from, to) below next that have not been seen
        self.hole_frame = 0
        self.acked = None       # highest acknowledgement that it sent
        self.edge = None        # highest right edge of the window that it offered
        self.window = None      # last window that it offered, scaled
        self.syn = False
        self.syn_options = None
        self.fin = False
        self.fin_seq = None
        self.data = 0
        self.tsval = None
        self.packets = 0
        self.repeated = 0       # of them, what it had sent before


class Connection:
    def __init__(self, number):
        self.first_frame = number
        self.sides = {}
        self.whole = False      # seen from its SYN
        self.reset = False

    def packets(self):
        return sum(side.packets for side in self.sides.values())

    def over(self):
        return self.reset or (len(self.sides) == 2 and
                              all(side.fin for side in self.sides.values()))

    def agreed(self, field):
        """Both SYNs carried the option; None while it is not known."""
        syns = [side.syn_options for side in self.sides.values()]
        if len(syns) < 2 or None in syns:
            return None
        return all(getattr(syn, field) is not None for syn in syns)


class Checker:
    def __init__(self, options):
        self.options = options
        self.addr = [ipaddress.ip_address(a).packed for a in options.addr]
        self.violations = collections.OrderedDict()
        self.live = {}
        self.done = []
        self.counts = collections.Counter()

    def report(self, kind, number):
        self.violations.setdefault(kind, []).append(number)

    def judged(self, src):
        return not self.addr or src in self.addr

    def report_either(self, kind, segment):
        self.report(kind if self.judged(segment.src) else "peer-" + kind, segment.number)

    # -- a frame

    def frame(self, number, link, data, length):
        self.counts["frames"] += 1
        if link != 1:
            raise BadFile("link type %d: Ethernet only" % link)
        if len(data) < length:
            self.report("truncated", number)
            return
        try:
            found = ip_payload(data)
            if found is None:
                self.counts["not IP"] += 1
                return
            protocol, src, dst, payload, pseudo, header_good = found
            if not header_good and self.judged(src):
                self.report("ip-checksum", number)
            if protocol != 6:
                self.counts["not TCP"] += 1
                return
            self.counts["segments"] += 1
            if not sum_is_good(pseudo + payload) and self.judged(src):
                self.report("tcp-checksum", number)
            self.segment(parse_tcp(number, src, dst, payload))
        except Malformed:
            self.report("malformed", number)

    # -- a segment

    def segment(self, s):
        me, other = (s.src, s.sport), (s.dst, s.dport)
        key = (me, other) if me < other else (other, me)
        connection = self.live.get(key)
        if connection is None or self.starts_anew(connection, me, s):
            if connection is not None:
                self.finish(connection)
            connection = self.live[key] = Connection(s.number)
            connection.whole = s.flags & (SYN | ACK) == SYN
        side = connection.sides.setdefault(me, Side())
        peer = connection.sides.get(other)
        side.packets += 1
        if s.flags & SYN and side.syn_options is None:
            side.syn_options = s
        # The window, MSS and ACK rules first: they look at what was known before this segment.
        if self.judged(s.src):
            self.check_acks(connection, side, peer, s)
            self.check_timestamps(connection, side, peer, s)
            if s.flags & FIN:
                self.check_fin(side, peer, s)
        if s.flags & RST:
            connection.reset = True
            self.counts["resets"] += 1
            if self.options.no_reset:
                self.report_either("reset", s)
            return
        self.sequence(side, peer, s)
        self.note(connection, side, s)

    @staticmethod
    def starts_anew(connection, me, s):
        """A SYN that does not repeat this connection's own. A reply can't start one."""
        if s.flags & (SYN | ACK) != SYN or s.flags & RST:
            return False
        side = connection.sides.get(me)
        if connection.over():
            return True
        return side is not None and not (side.syn and side.first == s.seq)

    def sequence(self, side, peer, s):
        """Retransmission, reordering, gap."""
        length = s.length + bool(s.flags & SYN) + bool(s.flags & FIN)
        end = (s.seq + length) & MASK
        if side.next is None:
            side.first, side.next = s.seq, end
            return
        if length == 0:
            return
        if seq_diff(s.seq, side.next) > 0:
            side.holes.append((side.next, s.seq))
            side.hole_frame = s.number
            side.next = end
        elif s.seq == side.next:
            side.next = end
        elif self.fills_hole(side, s.seq, end):
            self.report_either("reordering", s)
        elif length == 1 and s.length == 1 and peer is not None and peer.window == 0:
            self.counts["window probes"] += 1
        else:
            self.report_either("retransmission", s)
            self.counts["retransmissions"] += 1
            side.repeated += 1
            if seq_diff(end, side.next) > 0:
                side.next = end

    @staticmethod
    def fills_hole(side, start, end):
        for i, (low, high) in enumerate(side.holes):
            if seq_diff(start, low) >= 0 and seq_diff(end, high) <= 0:
                side.holes[i:i + 1] = [part for part in ((low, start), (end, high))
                                       if part[0] != part[1]]
                return True
        return False

    def check_acks(self, connection, side, peer, s):
        if peer is None:
            return
        if s.flags & ACK and peer.next is not None and seq_diff(s.ack, peer.next) > 0:
            self.report("ack-unsent", s.number)
        if not s.length:
            return
        mss = peer.syn_options.mss if peer.syn_options is not None else None
        if mss is not None and s.length + s.options_length > mss:
            self.report("above-mss", s.number)
        probe = s.length == 1 and peer.window == 0
        if peer.edge is not None and connection.agreed("wscale") is not None and not probe:
            if seq_diff((s.seq + s.length) & MASK, peer.edge) > 0:
                self.report("beyond-window", s.number)

    def check_timestamps(self, connection, side, peer, s):
        if connection.agreed("tsval") and s.tsval is None:
            self.report("no-timestamp", s.number)
        if s.tsval is None:
            return
        if side.tsval is not None and seq_diff(s.tsval, side.tsval) < 0:
            self.report("ts-backwards", s.number)
        if s.flags & ACK and peer is not None and peer.tsval is not None:
            if seq_diff(s.tsecr, peer.tsval) > 0 or (
                    peer.syn_options is not None and
                    seq_diff(s.tsecr, peer.syn_options.tsval or 0) < 0):
                self.report("ts-echo", s.number)

    def check_fin(self, side, peer, s):
        repeated = side.fin_seq is not None or side.data == 0
        if self.options.fin == "any" or not self.addr or s.length or repeated:
            return
        acked = peer is not None and peer.acked is not None and side.next is not None and \
            seq_diff(peer.acked, side.next) >= 0
        if self.options.fin == "strict" or not acked:
            self.report("bare-fin", s.number)

    @staticmethod
    def note(connection, side, s):
        if s.flags & SYN:
            side.syn = True
        if s.flags & FIN:
            side.fin = True
            side.fin_seq = (s.seq + s.length) & MASK
        side.data += s.length
        if s.tsval is not None and (side.tsval is None or seq_diff(s.tsval, side.tsval) > 0):
            side.tsval = s.tsval
        if not s.flags & ACK:
            return
        if side.acked is None or seq_diff(s.ack, side.acked) > 0:
            side.acked = s.ack
        shift = side.syn_options.wscale if not s.flags & SYN and connection.agreed("wscale") else 0
        side.window = s.window << shift
        edge = (s.ack + side.window) & MASK
        if side.edge is None or seq_diff(edge, side.edge) > 0:
            side.edge = edge

    # -- the end

    def finish(self, connection):
        for me, side in connection.sides.items():
            if side.holes:
                self.report("gap" if self.judged(me[0]) else "peer-gap", side.hole_frame)
        if self.options.complete and not connection.over():
            self.report("unfinished", connection.first_frame)
        limit = self.options.max_packets
        if limit and connection.whole and connection.packets() - self.excused(connection) > limit:
            self.report("packets", connection.first_frame)
        self.done.append(connection)

    def excused(self, connection):
        """What a peer sent again where that is tolerated, and our answers to it."""
        if not self.options.peer_retransmissions:
            return 0
        return sum(2 * side.repeated for me, side in connection.sides.items()
                   if not self.judged(me[0]))

    def end(self):
        for connection in self.live.values():
            self.finish(connection)
        self.live = {}

    def summary(self):
        whole = [c.packets() for c in self.done if c.whole and c.over()]
        peers = self.violations.get("peer-retransmission", [])
        if len(peers) <= self.options.peer_retransmissions:
            self.violations.pop("peer-retransmission", None)
        return {
            "frames": self.counts["frames"], "segments": self.counts["segments"],
            "connections": len(self.done), "whole": len(whole),
            "packets_min": min(whole, default=None), "packets_max": max(whole, default=None),
            "packets_mean": round(sum(whole) / len(whole), 3) if whole else None,
            "retransmissions": self.counts["retransmissions"],
            "resets": self.counts["resets"], "window_probes": self.counts["window probes"],
            "violations": {kind: len(frames) for kind, frames in self.violations.items()},
            "first_frames": {kind: frames[:10] for kind, frames in self.violations.items()},
        }


def print_summary(path, summary):
    print("%s: %d frames, %d TCP segments, %d connections (%d whole)" % (
        path, summary["frames"], summary["segments"], summary["connections"], summary["whole"]))
    if summary["whole"]:
        print("  packets a connection: mean %.3f, min %d, max %d" % (
            summary["packets_mean"], summary["packets_min"], summary["packets_max"]))
    print("  retransmissions %d, resets %d, window probes %d" % (
        summary["retransmissions"], summary["resets"], summary["window_probes"]))
    for kind, count in summary["violations"].items():
        frames = summary["first_frames"][kind]
        print("  VIOLATION %s: %d, frames %s%s" % (
            kind, count, " ".join(map(str, frames)), " ..." if count > len(frames) else ""))
    if not summary["violations"]:
        print("  no violation")


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description="checks a capture of a clean wire")
    parser.add_argument("file", nargs="+")
    parser.add_argument("--addr", action="append", default=[], metavar="ADDRESS",
                        help="judge what this address sent (may be repeated)")
    parser.add_argument("--fin", choices=("strict", "acked", "any"), default="acked",
                        help="bare FIN of --addr: strict: never after data; acked (default): "
                        "only after all its data was acknowledged; any: not judged")
    parser.add_argument("--peer-retransmissions", type=int, default=0, metavar="N",
                        help="tolerated from the other side (default 0)")
    parser.add_argument("--no-reset", action="store_true", help="a RST is a violation")
    parser.add_argument("--complete", action="store_true",
                        help="each connection must end within the capture")
    parser.add_argument("--max-packets", type=int, metavar="N",
                        help="most packets that a connection may take")
    parser.add_argument("--min-connections", type=int, default=1, metavar="N",
                        help="fewer whole connections are an error too (default 1)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


def main(argv):
    options = parse_arguments(argv)
    status = 0
    for path in options.file:
        checker = Checker(options)
        try:
            for number, (link, data, length) in enumerate(read_frames(path), 1):
                checker.frame(number, link, data, length)
        except (OSError, BadFile, struct.error) as error:
            print("check_pcap: %s: %s" % (path, error), file=sys.stderr)
            return 2
        checker.end()
        summary = checker.summary()
        if summary["whole"] < options.min_connections:
            summary["violations"]["too-few-connections"] = summary["whole"]
            summary["first_frames"]["too-few-connections"] = []
        if options.json:
            print(json.dumps(dict(summary, file=path)))
        else:
            print_summary(path, summary)
        if summary["violations"]:
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
