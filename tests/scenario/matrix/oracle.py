# SPDX-License-Identifier: BSD-3-Clause
"""oracle.py - what the RFCs ask for when one segment meets one state: the matrix's own answer.

Written from the texts named at each rule, never from lib/tcp. Numbers are relative to the initial
sequence numbers of both sides and never wrap. `answer` is a pure function of a Tcb and a Segment;
where SEMANTICS or Linux goes beyond or aside of the RFC, the rule says so.
"""

from dataclasses import dataclass, field, replace

SYNCHRONISED = ("ESTABLISHED", "FIN_WAIT_1", "FIN_WAIT_2", "CLOSE_WAIT", "CLOSING", "LAST_ACK")
READING = ("ESTABLISHED", "FIN_WAIT_1", "FIN_WAIT_2")  # may receive text (9293 3.10.7.4, seventh)


@dataclass(frozen=True)
class Tcb:
    state: str
    una: int = 0
    nxt: int = 0
    rcv: int = 0  # RCV.NXT
    wnd: int = 0  # RCV.WND
    max_wnd: int = 0  # MAX.SND.WND (5961 5.2)
    handle: bool = False  # the program still holds it
    orphan: bool = False  # closed by the program, still a connection
    record: bool = False  # only a record is left
    fin_sent: bool = False  # NXT - 1 is our FIN
    ts: bool = False  # timestamps agreed
    rfc1337: bool = True
    active: bool = False  # opened by connect


@dataclass(frozen=True)
class Segment:
    flags: str  # as in a script: F S R P .
    seq: int
    ack: int = None  # None: no ACK flag
    len: int = 0
    ts: str = "now"  # now, old, missing: against the last one seen

    @property
    def span(self):
        return self.len + ("F" in self.flags) + ("S" in self.flags)


@dataclass
class Answer:
    after: Tcb
    sends: list = field(default_factory=list)  # "FLAGS SEQ[ ack ACK]", at once
    soon: str = None  # an ACK that may be delayed
    opened: bool = False
    delivered: int = 0
    peer_fin: bool = False
    closed: str = None  # on_close with this error; "any": the rule names none
    counts: list = field(default_factory=list)


def _ack(t):
    return f". {t.nxt} ack {t.rcv}"


def _drop(t, *counts):
    return Answer(t, counts=list(counts))


def _challenge(t, *counts):
    return Answer(t, [_ack(t)], counts=list(counts))


def _reset_reply(s):
    """9293 3.10.7.1: the RST to a segment of no connection."""
    if s.ack is not None:
        return f"R {_at(s.ack)}"
    return f"R. @0 ack {s.seq + s.span}"


def _at(n):
    return f"@{n}"


def _closed(t, s):
    """9293 3.10.7.1"""
    if "R" in s.flags:
        return _drop(t, "tcp_rst_no_conn")
    return Answer(t, [_reset_reply(s)], counts=["rst_out"])


def _listen(t, s):
    """9293 3.10.7.2"""
    if "R" in s.flags:
        return _drop(t, "tcp_rst_no_conn")
    if s.ack is not None:
        return Answer(t, [_reset_reply(s)], counts=["rst_out"])
    if "S" in s.flags:
        after = replace(t, state="SYN_RCVD", rcv=s.seq + 1, nxt=1)
        return Answer(after, [f"S. 0 ack {s.seq + 1}"], counts=["conn_opened_passive"])
    return _drop(t, "tcp_no_ack_flag")


def _syn_sent(t, s):
    """9293 3.10.7.3; 5961 3.2: a RST must acknowledge the SYN"""
    good = s.ack == t.nxt
    if s.ack is not None and not good:
        if "R" in s.flags:
            return _drop(t, "tcp_syn_sent_rst")
        sends = [f"R {s.ack}"]
        if "S" not in s.flags:  # SEMANTICS H12: the SYN goes again at once
            sends.append("S 0")
        return Answer(t, sends, counts=["tcp_syn_sent_bad_ack", "rst_out"])
    if "R" in s.flags:
        if not good:
            return _drop(t, "tcp_syn_sent_rst")
        after = replace(t, state="CLOSED", handle=False)
        return Answer(after, closed="-ECONNREFUSED", counts=["tcp_rst_taken", "rst_in"])
    if "S" not in s.flags:
        return _drop(t, "tcp_syn_sent_no_syn")
    if good:
        after = replace(t, state="ESTABLISHED", una=s.ack, rcv=s.seq + 1)
        return Answer(after, [f". {t.nxt} ack {s.seq + 1}"], opened=True)
    after = replace(t, state="SYN_RCVD", rcv=s.seq + 1)
    return Answer(after, [f"S. 0 ack {s.seq + 1}"])


def _acceptable(t, s):
    """9293 3.4, table 6. Aside (Linux's tcp_sequence): without text, right at the edge will do for
    all but a RST, since a peer whose bytes were lost on the way acknowledges from there."""
    off, last = s.seq - t.rcv, s.seq - t.rcv + s.span - 1
    if s.span == 0:
        return 0 <= off < t.wnd or (off == t.wnd and "R" not in s.flags)
    return 0 <= off < t.wnd or 0 <= last < t.wnd


def _paws(t, s):
    """7323 3.2 and 5.3 R1; None: passes. A RST is never checked."""
    if not t.ts or "R" in s.flags:
        return None
    if "S" in s.flags:  # 5961 4.2 before 7323 3.2: "irrespective of the sequence number"
        return _challenge(t)
    if s.ts == "missing":
        return _drop(t, "tcp_no_ts")
    if s.ts == "old":
        return _challenge(t, "tcp_paws")
    return None


def _gone(t, error, *counts):
    told = t.handle or t.orphan
    after = replace(t, state="CLOSED", handle=False, orphan=False, record=False)
    return Answer(after, closed=error if told else None, counts=list(counts))


def _rst(t, s):
    """5961 3.2: exact resets, elsewhere in the window is challenged (outside: see _general)."""
    if s.seq != t.rcv:
        return _challenge(t, "tcp_rst_challenged")
    error = "-ECONNRESET"
    if t.state == "SYN_RCVD":  # 9293: back to LISTEN, or refused
        error = "-ECONNREFUSED"
    elif t.state in ("CLOSING", "LAST_ACK") and t.una >= t.nxt - 1:
        error = "0"  # 9293: enter CLOSED and return; but bytes that are lost are told
    return _gone(t, error, "tcp_rst_taken", "rst_in")


def _text_and_fin(t, s, a):
    """9293 seventh and eighth, 5681 4.2 (what is out of order is answered at once)."""
    fin, seq, end = "F" in s.flags, s.seq, s.seq + s.len
    if t.state not in READING:  # the peer's FIN is in: nothing comes behind it
        if s.span and seq + s.span <= t.rcv:
            a.sends = [_ack(t)]
        return a
    if s.span == 0:
        return a
    edge = t.rcv + t.wnd
    cut = end > edge
    if cut:
        end, fin = edge, False
    if end + fin <= t.rcv:  # all old
        a.sends = [_ack(t)]
        return a
    if max(seq, t.rcv) != t.rcv:  # ahead of a hole
        a.sends = [_ack(t)]
        return a
    a.delivered = max(0, end - t.rcv)
    after = replace(t, rcv=end + fin)
    if fin:
        a.peer_fin = t.handle
        after = replace(after, state={"ESTABLISHED": "CLOSE_WAIT", "FIN_WAIT_1": "CLOSING",
                                      "FIN_WAIT_2": "TIME_WAIT"}[t.state])
        if after.state == "TIME_WAIT":
            if after.orphan:
                a.closed = "0"
            after = replace(after, record=not after.handle, orphan=False)
    a.after = after
    a.soon = _ack(after)
    return a


def _general(t, s):
    """9293 3.10.7.4: SYN_RCVD and the synchronised states."""
    crossing = (t.state == "SYN_RCVD" and t.active and s.flags == "S." and s.seq == t.rcv - 1)
    if t.state == "SYN_RCVD" and not t.active and s.flags == "S" and s.seq == t.rcv - 1:
        return Answer(t, [f"S. {t.nxt - 1} ack {t.rcv}"])  # SEMANTICS H3: the same SYN-ACK
    if t.state == "SYN_RCVD" and "S" in s.flags and not crossing:
        return _challenge(t)  # whatever the sequence: 5961 4.2
    bad = _paws(t, s)
    if bad:
        return bad
    if crossing and t.una < s.ack <= t.nxt:  # 9293 3.5, figure 8: the crossing SYN-ACK
        after = replace(t, state="ESTABLISHED", una=s.ack)
        return Answer(after, [_ack(after)], opened=True)
    if not _acceptable(t, s):  # first
        if "R" in s.flags:
            return _drop(t, "tcp_rst_out_of_window")
        return _challenge(t)
    if "R" in s.flags:  # second
        return _rst(t, s)
    if "S" in s.flags:  # fourth: 5961 4.2
        return _challenge(t, "tcp_syn_challenged")
    if s.ack is None:  # fifth
        return _drop(t, "tcp_no_ack_flag")
    opened = False
    if t.state == "SYN_RCVD":
        if not t.una < s.ack <= t.nxt:
            return Answer(t, [f"R {s.ack}"], counts=["tcp_syn_rcvd_bad_ack", "rst_out"])
        t = replace(t, state="ESTABLISHED", una=s.ack, handle=True, record=False)
        opened = True
    if s.ack > t.nxt:
        return _challenge(t, "tcp_ack_too_new")
    if s.ack < t.una - t.max_wnd:  # 5961 5.2: discarded and an ACK sent back
        return _challenge(t, "tcp_ack_too_old")
    return _after_ack(replace(t, una=max(t.una, s.ack)), s, opened)


def _after_ack(t, s, opened):
    a = Answer(t, opened=opened)
    if t.fin_sent and t.una == t.nxt:  # our FIN is acknowledged
        if t.state == "FIN_WAIT_1":
            t = replace(t, state="FIN_WAIT_2")
        elif t.state == "CLOSING":
            a.closed = "0" if t.orphan else None
            a.after = replace(t, state="TIME_WAIT", record=not t.handle, orphan=False)
            return a
        elif t.state == "LAST_ACK":
            a = _gone(t, "0") if t.orphan else a
            a.after = replace(t, state="CLOSED", orphan=False)
            return a
        a.after = t
    new = s.len and s.seq + s.len > t.rcv
    if not t.handle and new and t.state in ("FIN_WAIT_1", "FIN_WAIT_2"):
        a = _gone(t, "any", "tcp_data_after_close", "rst_out")  # SEMANTICS B.2, C9
        a.sends = [f"R {s.ack}"]
        return a
    a = _text_and_fin(t, s, a)
    if a.after.state == "FIN_WAIT_2" and a.after.orphan:  # SEMANTICS B.2: a small record
        a.after = replace(a.after, orphan=False, record=True)
        a.closed = "0"
    return a


def _time_wait(t, s):
    """9293 3.10.7.4, 1337, 6191 and SEMANTICS B.4; what they leave open as Linux does: only an
    empty ACK exactly at RCV.NXT has no answer, and a RST has none anywhere."""
    if "R" in s.flags:
        if s.seq == t.rcv and not t.rfc1337:
            return _gone(t, "0", "tcp_tw_rst_taken", "rst_in")
        return _drop(t, "tcp_tw_rst")
    if s.flags == "S":
        newer, older = t.ts and s.ts == "now", t.ts and s.ts == "old"
        if newer or (s.seq > t.rcv and not older):
            after = replace(t, state="SYN_RCVD", rcv=s.seq + 1, record=True)
            return Answer(after, [f"S. {t.nxt + 65537}..2147483647 ack {s.seq + 1}"],
                          counts=["tw_recycled_syn", "tcp_tw_syn_ts" if newer else "tcp_tw_syn_seq"])
        return _challenge(t, "tcp_tw_syn_paws" if older else "tcp_tw_syn_refused")
    if s.ack is None:
        return _drop(t, "tcp_no_ack_flag")
    if t.ts and s.ts == "missing":
        return _drop(t, "tcp_no_ts")
    if t.ts and s.ts == "old":
        return _challenge(t, "tcp_tw_paws")
    if s.span == 0 and s.seq == t.rcv:
        return _drop(t)
    return _challenge(t, "tcp_tw_data")


def restarts(t, s):
    """Does TIME_WAIT start over (SEMANTICS B.4)? For a FIN that comes again and data, not a SYN."""
    return s.ack is not None and s.span > 0 and not set("RS") & set(s.flags) and s.ts == "now"


def answer(t, s):
    """What must happen."""
    if not set("FSR.") & set(s.flags):
        return _drop(t, "tcp_flags")  # SEMANTICS S12: as good as no flag at all
    rules = {"CLOSED": _closed, "LISTEN": _listen, "SYN_SENT": _syn_sent, "TIME_WAIT": _time_wait}
    return rules.get(t.state, _general)(t, s)
