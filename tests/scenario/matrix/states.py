# SPDX-License-Identifier: BSD-3-Clause
"""states.py - how a script reaches each state, and what is known there (the oracle's Tcb).

The peer's window is 2000 and ours 4000. In ESTABLISHED, FIN_WAIT_1 and CLOSE_WAIT 100 bytes were
written and 50 of them acknowledged, so that there is an ACK inside what is in flight.
"""

from oracle import Tcb

OPTIONS = ["option rcv_buf 4000", "option win 2000"]
WND = 4000


def _open(ts):
    mss = "mss 1012, TS val now ecr 0" if ts else "mss 1000"
    return [f"inject S 0 <{mss}>", "expect S. 0 ack 1 win 4000 <*>", "+10ms inject . 1 ack 1",
            "event on_open"]


def _flight(ts):
    return _open(ts) + ["call write 100", "expect P. 1:101(100) ack 1", "+10ms inject . 1 ack 51"]


_PEER_FIN = ["inject F. 1 ack 51", "event on_peer_fin"]
_ALL = dict(max_wnd=2000, rcv=1, wnd=WND)
_FIN_IN = dict(max_wnd=2000, rcv=2, wnd=WND - 1)


def _setups(ts):
    """name: (listener, script, Tcb)"""
    est, fin = _flight(ts), ["expect F. 101 ack 1"]
    fin1 = {"": est + ["call shutdown"] + fin, "_ORPHAN": est + ["call close"] + fin}
    wait = est + _PEER_FIN + ["+0..0.1 expect . 101 ack 2 win 3999"]
    last = ["expect F. 101 ack 2 win 3999"]
    out = {
        "SYN_RCVD": (True, _open(ts)[:2], Tcb("SYN_RCVD", 0, 1, record=True, **_ALL)),
        "ESTABLISHED": (True, est, Tcb("ESTABLISHED", 51, 101, handle=True, **_ALL)),
        "ESTABLISHED_IDLE": (True, _open(ts), Tcb("ESTABLISHED", 1, 1, handle=True, **_ALL)),
        "CLOSE_WAIT": (True, wait, Tcb("CLOSE_WAIT", 51, 101, handle=True, **_FIN_IN)),
    }
    for end, owner in (("", dict(handle=True)), ("_ORPHAN", dict(orphan=True))):
        sent = dict(owner, fin_sent=True)
        verb = "call close" if end else "call shutdown"
        out["FIN_WAIT_1" + end] = (True, fin1[end],
                                   Tcb("FIN_WAIT_1", 51, 102, **sent, **_ALL))
        out["CLOSING" + end] = (True, fin1[end] + ["inject F. 1 ack 51",
                                                   "expect . 102 ack 2 win 3999"]
                                + ([] if end else ["event on_peer_fin"]),
                                Tcb("CLOSING", 51, 102, **sent, **_FIN_IN))
        out["LAST_ACK" + end] = (True, wait + [verb] + last,
                                 Tcb("LAST_ACK", 51, 102, **sent, **_FIN_IN))
    out["FIN_WAIT_2"] = (True, fin1[""] + ["inject . 1 ack 102"],
                         Tcb("FIN_WAIT_2", 102, 102, handle=True, fin_sent=True, **_ALL))
    # A record does not keep MAX.SND.WND: the most that a window field can say.
    record = dict(record=True, fin_sent=True)
    fields = dict(_ALL, max_wnd=65535)
    fin2 = fin1["_ORPHAN"] + ["inject . 1 ack 102", "event on_close 0"]
    out["FIN_WAIT_2_RECORD"] = (True, fin2, Tcb("FIN_WAIT_2", 102, 102, **record, **fields))
    out["TIME_WAIT"] = (True, fin2 + ["inject F. 1 ack 102", "expect . 102 ack 2"],
                        Tcb("TIME_WAIT", 102, 102, **record, **_FIN_IN))
    return out


def setups(ts=False):
    out = _setups(ts)
    if ts:
        from dataclasses import replace
        return {n: (l, s, replace(t, ts=True)) for n, (l, s, t) in out.items()}
    active = ["call connect $port", "expect S 0 <*>"]
    out["SYN_RCVD_ACTIVE"] = (False, active + ["inject S 0 <mss 1000>", "expect S. 0 ack 1 <*>"],
                              Tcb("SYN_RCVD", 0, 1, handle=True, active=True, **_ALL))
    out["SYN_SENT"] = (False, active, Tcb("SYN_SENT", 0, 1, 0, WND, 2000, handle=True, active=True))
    out["CLOSED"] = (False, [], Tcb("CLOSED", 50, 100, 1, WND, 2000))
    out["LISTEN"] = (True, [], Tcb("LISTEN", 50, 100, 1, WND, 2000))
    return out
