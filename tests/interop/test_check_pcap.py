#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Test of check_pcap.py: a clean capture passes, and each planted violation is found, alone.

Builds captures of a few frames (pcap in both byte orders, pcapng; IPv4, IPv6, VLAN), each with
one thing wrong, and compares the violations reported with the one expected. Needs no root.
"""
import io
import contextlib
import ipaddress
import json
import os
import struct
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_pcap  # noqa: E402

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
CLIENT6, SERVER6 = "fd00::1", "fd00::2"


def checksum(data):
    if len(data) & 1:
        data += b"\0"
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def options_bytes(mss=None, wscale=None, ts=None):
    out = b""
    if mss is not None:
        out += struct.pack(">BBH", 2, 4, mss)
    if wscale is not None:
        out += struct.pack(">BBBB", 3, 3, wscale, 1)
    if ts is not None:
        out += b"\1\1" + struct.pack(">BBII", 8, 10, *ts)
    return out


def tcp_frame(src, dst, sport, dport, seq, ack, flags, data=b"", window=1000, options=b"",
              vlan=False, pad=0):
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    tcp = bytearray(struct.pack(">HHIIBBHHH", sport, dport, seq, ack,
                                (20 + len(options)) // 4 << 4, flags, window, 0, 0))
    tcp += options + data
    if src.version == 4:
        pseudo = src.packed + dst.packed + struct.pack(">HH", 6, len(tcp))
        ip = bytearray(struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0))
        ip += src.packed + dst.packed
        ip[10:12] = struct.pack(">H", checksum(bytes(ip)))
        kind = b"\x08\x00"
    else:
        pseudo = src.packed + dst.packed + struct.pack(">II", len(tcp), 6)
        ip = struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + src.packed + dst.packed
        kind = b"\x86\xdd"
    tcp[16:18] = struct.pack(">H", checksum(pseudo + bytes(tcp)))
    tag = b"\x81\x00\x00\x05" if vlan else b""
    return b"\2" * 12 + tag + kind + bytes(ip) + bytes(tcp) + b"\0" * pad


class Talk:
    """A connection's frames: methods append one frame from either end, with right numbers."""

    def __init__(self, v6=False, ts=True, client=CLIENT, server=SERVER, sport=4000, mss=1460,
                 isn=(0xFFFFFFF0, 7000)):
        self.addr = (CLIENT6, SERVER6) if v6 else (client, server)
        self.port = (sport, 80)
        self.seq = list(isn)
        self.ts, self.tsval = ts, [1000, 0xFFFFFFFE]
        self.sent = [0, 0]          # newest TSval that has left, what the other end echoes
        self.mss = mss
        self.frames = []

    def send(self, who, flags, data=b"", seq=None, ack=None, ts="auto", window=1000, **more):
        other = 1 - who
        syn = bool(flags & SYN)
        if ts == "auto":
            ts = (self.tsval[who], self.sent[other] if flags & ACK else 0) if self.ts else None
            self.sent[who] = self.tsval[who]
        options = options_bytes(self.mss if syn else None, 3 if syn else None, ts)
        at = self.seq[who] if seq is None else seq
        self.frames.append(tcp_frame(
            self.addr[who], self.addr[other], self.port[who], self.port[other], at & 0xFFFFFFFF,
            (self.seq[other] if ack is None else ack) & 0xFFFFFFFF if flags & ACK else 0,
            flags, data, window, options, **more))
        if seq is None:
            self.seq[who] = (at + len(data) + syn + bool(flags & FIN)) & 0xFFFFFFFF
        return self

    def tick(self, by=1):
        self.tsval = [(value + by) & 0xFFFFFFFF for value in self.tsval]
        return self

    def open(self):
        return self.send(0, SYN).send(1, SYN | ACK)

    def request(self):
        return self.send(0, ACK | PSH, b"GET / HTTP/1.0\r\n\r\n")

    def response(self, size=100, fin=True):
        return self.send(1, ACK | PSH | (FIN if fin else 0), b"x" * size)

    def close(self):
        return self.send(0, FIN | ACK).send(1, ACK)


def six_packets(**more):
    return Talk(**more).open().request().tick().response().close()


def pcap(frames, order="<", magic=0xA1B2C3D4, link=1, cut=None):
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for i, frame in enumerate(frames):
        kept = frame if cut is None or i != cut else frame[:-1]
        out += struct.pack(order + "IIII", i, 0, len(kept), len(frame)) + kept
    return out


def pcapng(frames, order="<"):
    def block(kind, body):
        body += b"\0" * (-len(body) % 4)
        size = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + size + body + size
    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack(order + "HHI", 1, 0, 65535))
    for i, frame in enumerate(frames):
        if i % 2:
            out += block(3, struct.pack(order + "I", len(frame)) + frame)
        else:
            out += block(6, struct.pack(order + "IIIII", 0, 0, i, len(frame), len(frame)) + frame)
    return out


def run(data, *arguments):
    """(exit status, summary or None) of the checker over these bytes."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(data)
        file.flush()
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = check_pcap.main(["--json", *arguments, file.name])
    return status, json.loads(out.getvalue()) if out.getvalue() else None


class CheckPcap(unittest.TestCase):
    def clean(self, data, *arguments):
        status, summary = run(data, *arguments)
        self.assertEqual((status, summary["violations"]), (0, {}))
        return summary

    def finds(self, talk, kind, frames, *arguments):
        status, summary = run(pcap(talk.frames), *arguments)
        self.assertEqual(status, 1)
        self.assertEqual(summary["first_frames"], {kind: frames})

    # -- clean captures

    def test_six_packets(self):
        summary = self.clean(pcap(six_packets().frames), "--addr", SERVER, "--fin", "strict",
                             "--no-reset", "--complete", "--max-packets", "6")
        self.assertEqual(summary["packets_mean"], 6)
        self.assertEqual((summary["connections"], summary["whole"]), (1, 1))

    def test_formats(self):
        frames = six_packets().frames
        for data in (pcap(frames, ">"), pcap(frames, "<", 0xA1B23C4D), pcapng(frames),
                     pcapng(frames, ">")):
            self.assertEqual(self.clean(data)["segments"], 6)

    def test_ipv6_vlan_padding(self):
        self.clean(pcap(six_packets(v6=True).frames), "--addr", SERVER6, "--fin", "strict")
        talk = Talk().open().send(0, ACK, vlan=True, pad=6).send(0, RST | ACK)
        self.clean(pcap(talk.frames))

    def test_tuple_reused(self):
        frames = six_packets().frames + six_packets(isn=(5000, 90000)).frames
        self.assertEqual(self.clean(pcap(frames), "--complete")["connections"], 2)

    def test_other_frames_are_passed_over(self):
        arp = b"\2" * 12 + b"\x08\x06" + b"\0" * 28
        self.clean(pcap([arp] + six_packets().frames))

    # -- bad files

    def test_bad_files(self):
        good = pcap(six_packets().frames)
        for data in (b"", b"hello, world", good[:-3], good[:20], pcap([b"\0" * 40], link=113),
                     pcapng(six_packets().frames)[:-5]):
            self.assertEqual(run(data)[0], 2)
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(check_pcap.main(["/nonexistent/file"]), 2)

    def test_empty_capture_is_an_error(self):
        self.assertEqual(run(pcap([]))[0], 1)
        self.assertEqual(run(pcap(six_packets().frames), "--min-connections", "2")[0], 1)

    # -- one violation each

    def damaged(self, frame, at):
        talk = six_packets()
        data = bytearray(talk.frames[frame])
        data[at] ^= 0x10
        talk.frames[frame] = bytes(data)
        return talk

    def test_ip_checksum(self):
        self.finds(self.damaged(3, 14 + 8), "ip-checksum", [4])     # time to live

    def test_tcp_checksum(self):
        self.finds(self.damaged(3, -1), "tcp-checksum", [4])        # last byte of the data
        talk = self.damaged(2, -1)
        self.finds(talk, "tcp-checksum", [3], "--addr", CLIENT)
        self.clean(pcap(talk.frames), "--addr", SERVER)

    def test_tcp_checksum_ipv6(self):
        talk = six_packets(v6=True)
        talk.frames[3] = talk.frames[3][:-1] + b"y"
        self.finds(talk, "tcp-checksum", [4])

    def test_truncated(self):
        status, summary = run(pcap(six_packets().frames, cut=2))
        self.assertEqual((status, summary["first_frames"]["truncated"]), (1, [3]))

    def test_malformed(self):
        talk = six_packets()
        short = bytearray(talk.frames[0][:14 + 20])     # IPv4 header alone, total length beyond
        talk.frames.append(bytes(short))
        self.finds(talk, "malformed", [7])
        talk.frames[-1] = b"\2" * 12 + b"\x86\xdd" + b"\x60" + b"\0" * 20
        self.finds(talk, "malformed", [7])
        talk.frames[-1] = tcp_frame(CLIENT, SERVER, 5, 80, 1, 1, ACK, options=b"\3\1\1\1")
        self.finds(talk, "malformed", [7])              # an option of length 1

    def test_retransmissions(self):
        talk = Talk().open().request().response().close()
        data = talk.frames[3]
        talk.frames.append(data)
        self.finds(talk, "retransmission", [7])
        self.finds(talk, "retransmission", [7], "--addr", SERVER)
        self.finds(talk, "peer-retransmission", [7], "--addr", CLIENT)
        self.clean(pcap(talk.frames), "--addr", CLIENT, "--peer-retransmissions", "1")
        talk.frames.append(data)
        self.finds(talk, "peer-retransmission", [7, 8], "--addr", CLIENT,
                   "--peer-retransmissions", "1")
        self.finds(talk, "retransmission", [7, 8], "--addr", SERVER,
                   "--peer-retransmissions", "9")
        talk = Talk().open()
        talk.frames.append(talk.frames[0])                          # the SYN
        talk.request().response().close()
        self.finds(talk, "retransmission", [3])
        talk = Talk().open().request().response().send(0, FIN | ACK)
        talk.frames.append(talk.frames[-1])                         # the FIN alone
        self.finds(talk.send(1, ACK), "retransmission", [6])

    def test_overlap_is_a_retransmission(self):
        talk = Talk().open().request().response(100, fin=False)
        at = talk.seq[1] - 1
        talk.send(1, ACK | FIN, b"xy", seq=at)
        talk.seq[1] = (at + 3) & 0xFFFFFFFF
        self.finds(talk.close(), "retransmission", [5])

    def test_gap_and_reordering(self):
        talk = Talk().open().request()
        talk.response(100, fin=False).response(100)
        talk.frames[3], talk.frames[4] = talk.frames[4], talk.frames[3]
        self.finds(talk.close(), "reordering", [5])
        talk = Talk().open().request().response(100, fin=False).response(100).close()
        del talk.frames[3]
        self.finds(talk, "gap", [4])
        self.finds(talk, "peer-gap", [4], "--addr", CLIENT)

    def test_bare_fin(self):
        talk = Talk().open().request().response(fin=False).send(1, FIN | ACK).close()
        self.finds(talk, "bare-fin", [5], "--addr", SERVER)
        self.finds(talk, "bare-fin", [5], "--addr", SERVER, "--fin", "strict")
        self.clean(pcap(talk.frames), "--addr", SERVER, "--fin", "any")
        self.clean(pcap(talk.frames), "--addr", CLIENT)

    def test_bare_fin_after_the_ack(self):
        talk = Talk().open().request().response(fin=False).send(0, ACK).send(1, FIN | ACK).close()
        self.clean(pcap(talk.frames), "--addr", SERVER)
        self.finds(talk, "bare-fin", [6], "--addr", SERVER, "--fin", "strict")

    def test_fin_with_nothing_sent(self):
        talk = Talk().open().send(0, ACK).send(1, FIN | ACK).close()
        self.clean(pcap(talk.frames), "--addr", SERVER, "--fin", "strict")

    def test_no_timestamp(self):
        talk = Talk().open().request().response().send(0, FIN | ACK, ts=None).send(1, ACK)
        self.finds(talk, "no-timestamp", [5])
        talk = Talk().open().request().send(1, RST | ACK, ts=None)
        self.finds(talk, "no-timestamp", [4])
        self.finds(talk, "no-timestamp", [4], "--addr", SERVER)
        talk = Talk(ts=False).open().request().response().close()
        self.clean(pcap(talk.frames))                               # never agreed on

    def test_timestamps_backwards(self):
        talk = Talk().open().request().tick(5)
        talk.send(1, ACK | PSH, b"abc").tick(-1).response(3)
        talk.frames = talk.frames[:5]
        status, summary = run(pcap(talk.frames), "--min-connections", "0")
        self.assertEqual((status, summary["first_frames"]), (1, {"ts-backwards": [5]}))

    def test_timestamp_echo(self):
        talk = Talk().open().request()
        talk.send(1, ACK | PSH | FIN, b"abc", ts=(talk.tsval[1], talk.tsval[0] + 1)).close()
        self.finds(talk, "ts-echo", [4])

    def test_ack_unsent(self):
        talk = Talk().open().request()
        talk.send(1, ACK | PSH | FIN, b"abc", ack=talk.seq[0] + 1).close()
        self.finds(talk, "ack-unsent", [4])

    def test_beyond_window(self):
        talk = Talk().open().send(0, ACK | PSH, b"GET\r\n", window=2)   # scaled by 8: 16 bytes
        self.finds(talk.response(17).close(), "beyond-window", [4])
        talk = Talk().open().send(0, ACK | PSH, b"GET\r\n", window=2)
        self.clean(pcap(talk.response(16).close().frames))

    def test_window_probe_is_none(self):
        talk = Talk().open().send(0, ACK | PSH, b"GET\r\n", window=2).response(16, fin=False)
        talk.send(0, ACK, window=0).send(1, ACK, b"p").send(0, ACK, window=0)
        talk.send(1, ACK, b"p", seq=talk.seq[1] - 1).send(0, ACK).response().close()
        summary = self.clean(pcap(talk.frames))
        self.assertEqual(summary["window_probes"], 1)

    def test_above_mss(self):
        talk = Talk(mss=500).open().request().response(500).close()     # 12 of them are options
        self.finds(talk, "above-mss", [4])
        self.clean(pcap(Talk(mss=500).open().request().response(488).close().frames))

    def test_reset_unfinished_packets(self):
        talk = Talk().open().request().send(1, RST | ACK)
        self.clean(pcap(talk.frames), "--complete")
        self.finds(talk, "reset", [4], "--no-reset")
        self.finds(talk, "peer-reset", [4], "--no-reset", "--addr", CLIENT)
        talk = six_packets()
        talk.frames += Talk(sport=4001).open().request().frames
        self.finds(talk, "unfinished", [7], "--complete")
        talk = Talk().open().send(0, ACK).request().response().close()
        self.finds(talk, "packets", [1], "--max-packets", "6")


if __name__ == "__main__":
    unittest.main()
