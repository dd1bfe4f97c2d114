#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""matrix.py - state x segment kind x place in the sequence x acknowledgment, generated.

    matrix.py RUNNER DIR [NAME ...]     writes DIR/NAME.scn, runs them, counts the cases
    matrix.py --write DIR [NAME ...]    only writes them

Each script holds the cases of one state and kind, each a flow of its own with what oracle.py
expects of it. A case that fails is printed as a script that scenario-runner takes alone, and the
others go on without it. NAME: only scripts whose name begins so. Exit 0: all cases held.
"""

import os
import re
import subprocess
import sys
from dataclasses import replace

sys.dont_write_bytecode = True
import oracle  # noqa: E402
from oracle import Segment  # noqa: E402
from states import OPTIONS, setups  # noqa: E402

# kind: flags, payload
KINDS = {"rst": ("R", 0), "rst-ack": ("R.", 0), "syn": ("S", 0), "syn-ack": ("S.", 0),
         "ack": (".", 0), "data": ("P.", 10), "data-fin": ("FP.", 10), "fin": ("F.", 0),
         "fin-without-ack": ("F", 0), "data-without-ack": ("P", 10)}
FAILURES_SHOWN = 5


def seq_places(t):
    edge = t.rcv + t.wnd
    return {"far below": t.rcv - 100000, "below": t.rcv - 50, "left edge - 1": t.rcv - 1,
            "RCV.NXT": t.rcv, "inside": t.rcv + 500, "last": edge - 1, "just beyond": edge,
            "far beyond": edge + 100000}


def ack_places(t):
    places = {"UNA - MAX.WND - 1": t.una - t.max_wnd - 1, "UNA - MAX.WND": t.una - t.max_wnd,
              "UNA - 1": t.una - 1, "UNA": t.una, "inside": (t.una + t.nxt + 1) // 2,
              "NXT": t.nxt, "NXT + 1": t.nxt + 1}
    seen = {}
    for name, ack in places.items():
        seen.setdefault(ack, name)
    return {name: ack for ack, name in seen.items()}


class Case:
    def __init__(self, listener, setup, tcb, seg, where, late=False):
        self.listener, self.setup, self.tcb, self.seg = listener, setup, tcb, seg
        self.where, self.late = where, late
        self.answer = oracle.answer(tcb, seg)

    def options(self):
        lines = OPTIONS + ([] if self.tcb.rfc1337 else ["option rfc1337 off"])
        return lines + (["call listen 80"] if self.listener else [])

    def inject(self):
        """The segment; where no connection is, our numbers are absolute."""
        s, at = self.seg, "@" if self.tcb.state in ("CLOSED", "LISTEN") else ""
        line = f"inject {s.flags} {s.seq}:{s.seq + s.len}({s.len})" if s.len else \
            f"inject {s.flags} {s.seq}"
        if s.ack is not None:
            line += f" ack {at}{s.ack}"
        opts = []
        if "S" in s.flags:
            opts.append("mss 1000")
        if self.tcb.ts and s.ts != "missing" and ("S" in s.flags or s.ts == "old"):
            opts.append(f"TS val {'900' if s.ts == 'old' else 'now'} ecr 0")
        if opts or (self.tcb.ts and s.ts == "missing"):
            line += f" <{', '.join(opts)}>"
        return line

    def reply(self, text):
        """As an expectation; numbers of the closed states are absolute, SYNs carry options."""
        if self.tcb.state not in ("CLOSED", "LISTEN"):
            text = text.replace("@", "") if self.tcb.state != "CLOSED" else text
        return "expect " + text + (" <*>" if "S" in text[:2] + self.seg.flags else "")

    def lines(self, port, counts):
        a, after = self.answer, self.answer.after
        lines = [f"flow c{port} pport {port}" + (" lport 80" if not self.tcb.active else "")]
        lines += [line.replace("$port", str(port)) for line in self.setup]
        lines.append(f"state {self.tcb.state if self.tcb.state != 'LISTEN' else 'CLOSED'}")
        wait = "+40s " if self.late else "+2ms " if self.tcb.ts and self.seg.ts != "same" else ""
        lines.append(wait + self.inject())
        lines += [self.reply(text) for text in a.sends]
        if a.soon:
            lines.append("+0..0.2 expect " + a.soon)
        lines.append("expect none for 60ms")
        lines += self.checks()
        for name in a.counts:
            counts[name] = counts.get(name, 0) + 1
            lines.append(f"counter {name} {counts[name]}")
        if self.late:
            stays = oracle.restarts(self.tcb, self.seg)
            lines += ["wait 30s", f"state {'TIME_WAIT' if stays else 'CLOSED'}"]
        return lines + self.clean_up(after, counts)

    def checks(self):
        a, after = self.answer, self.answer.after
        state = "CLOSED" if after.state == "LISTEN" else after.state
        lines = ["event on_open"] if a.opened else []
        if self.tcb.handle or a.opened:
            lines.append("event on_data" if a.delivered else "no_event on_data")
            lines.append("event on_peer_fin" if a.peer_fin else "no_event on_peer_fin")
        if a.closed:
            lines.append("event on_close" + ("" if a.closed == "any" else " " + a.closed))
        else:
            lines.append("no_event on_close")
        lines.append("state " + state)
        if after.handle and after.state not in ("CLOSED", "TIME_WAIT", "SYN_SENT"):
            lines += [f"field rcv_nxt {after.rcv}", f"field snd_una {after.una}",
                      f"call readable = {a.delivered}"]
        return lines

    @staticmethod
    def clean_up(after, counts):
        if after.handle:
            counts["rst_out"] = counts.get("rst_out", 0) + (after.state in (
                "SYN_RCVD",) + oracle.SYNCHRONISED)
            return ["call abort", "drain", "event on_close"]
        if after.state in ("CLOSED", "LISTEN", "TIME_WAIT"):
            return []
        for name in ("rst_in", "tcp_rst_taken"):
            counts[name] = counts.get(name, 0) + 1
        return [f"inject R {after.rcv}", "drain", "state CLOSED"] + (
            ["event on_close"] if after.orphan else [])

    def alone(self):
        return "\n".join([f"# {self.where}"] + self.options() + self.lines(20000, {})) + "\n"


def kind_cases(name, setup, kind, ts=("now",), acks=None, late=False):
    flags, length = KINDS[kind]
    listener, script, t = setup
    if t.state == "SYN_SENT":
        seqs = {"any": 0}
    else:
        seqs = seq_places(t)
    places = ack_places(t) if "." in flags else {"none": None}
    if acks:
        places = {n: a for n, a in places.items() if n in acks or n == "none"}
    for stamp in ts:
        for seq_name, seq in seqs.items():
            for ack_name, ack in places.items():
                where = f"{name}, {kind}: sequence {seq_name}, acknowledgment {ack_name}"
                if t.ts:
                    where += f", timestamp {stamp}"
                yield Case(listener, script, t, Segment(flags, seq, ack, length, stamp), where, late)


def scripts():
    """name: cases"""
    out = {}
    plain = setups()
    for state, setup in plain.items():
        for kind in KINDS:
            out[f"{state}-{kind}"] = list(kind_cases(state, setup, kind))
    listener, script, t = plain["TIME_WAIT"]
    off = (listener, script, replace(t, rfc1337=False))
    for kind in ("rst", "rst-ack", "syn", "fin"):
        out[f"TIME_WAIT_1337_OFF-{kind}"] = list(
            kind_cases("TIME_WAIT, rfc1337 off", off, kind, acks=("UNA",)))
    for kind in ("ack", "data", "fin", "syn-ack", "rst"):
        out[f"TIME_WAIT_LATE-{kind}"] = list(
            kind_cases("TIME_WAIT after 40 s", plain["TIME_WAIT"], kind, acks=("UNA",), late=True))
    stamped = setups(ts=True)
    out["TIME_WAIT_TS_SAME-syn"] = list(kind_cases(
        "TIME_WAIT with timestamps", stamped["TIME_WAIT"], "syn", ts=("same",)))
    for state, setup in stamped.items():
        for kind in KINDS:
            out[f"{state}_TS-{kind}"] = list(kind_cases(
                state + " with timestamps", setup, kind, ts=("now", "old", "missing"), acks=("UNA", "NXT")))
    return out


def write(directory, name, cases):
    """The script; returns for each line the case that it belongs to."""
    lines = [f"# {name}: {len(cases)} generated cases (tests/scenario/matrix)"] + cases[0].options()
    owner, counts = [None] * len(lines), {}
    for i, case in enumerate(cases):
        new = [f"# {case.where}"] + case.lines(20000 + i, counts)
        lines += new
        owner += [case] * len(new)
    path = os.path.join(directory, name + ".scn")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return path, owner


def run(runner, paths):
    """Paths of the scripts that failed, with what the runner said of each."""
    directory = os.path.dirname(paths[0])
    done = subprocess.run([runner, "--pcap-dir", directory] + paths, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return {}
    failed = {}
    for path in paths:
        found = re.search(rf"^{re.escape(path)}:(\d+): (.*\n.*)", done.stdout, re.M)
        if found:
            failed[path] = (int(found[1]), found[2])
    return failed or {paths[0]: (0, done.stdout[-2000:])}


def run_all(runner, directory, wanted):
    """(cases, failed ones). A failed case is told, taken out, and its script runs again."""
    todo, n, bad, shown = wanted, sum(map(len, wanted.values())), 0, 0
    while todo:
        written = {name: write(directory, name, cases) for name, cases in todo.items()}
        failed = run(runner, [path for path, _ in written.values()])
        again = {}
        for name, (path, owner) in written.items():
            if path not in failed:
                continue
            line, said = failed[path]
            case = owner[line - 1] if 0 < line <= len(owner) else None
            bad += 1
            if shown < FAILURES_SHOWN or os.environ.get("MATRIX_ALL"):
                shown += 1
                print(f"FAIL {name}: {case.where if case else 'at the end'}\n{said}")
                if case:
                    print(case.alone())
            left = [c for c in todo[name] if c is not case]
            if case and left:
                again[name] = left
        todo = again
    return n, bad


def main():
    only_write = len(sys.argv) > 2 and sys.argv[1] == "--write"
    if len(sys.argv) < 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    directory, names = sys.argv[2], sys.argv[3:]
    os.makedirs(directory, exist_ok=True)
    wanted = {n: c for n, c in scripts().items() if not names or n.startswith(tuple(names))}
    if not wanted:
        print("matrix.py: no script begins so", file=sys.stderr)
        return 2
    if only_write:
        for name, cases in wanted.items():
            write(directory, name, cases)
        return 0
    n, bad = run_all(sys.argv[1], directory, wanted)
    print(f"matrix: {n} cases, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
