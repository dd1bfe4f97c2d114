#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Requests to corq httpd that no stock client makes, for test_httpd_http.sh: http_client.py HOST WWW JOB...

Jobs: statuses ranges pipeline listing slow-header slow-body slow-reader lazy lost whole loris. Each
prints one line, and the first thing that is wrong ends the program with status 1. WWW is the directory
served.
"""
import email
import html.parser
import os
import random
import select
import socket
import struct
import sys
import time
import urllib.parse

HOST, WWW = sys.argv[1], sys.argv[2]
FIELDS = b"Host: h\r\n"


def connect(rcvbuf=0):
    s = socket.socket()
    if rcvbuf:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    s.settimeout(15)
    s.connect((HOST, 80))
    return s


def read_head(s, rest=b""):
    while b"\r\n\r\n" not in rest:
        more = s.recv(65536)
        if not more:
            raise EOFError(f"closed after {rest!r}")
        rest += more
    head, _, rest = rest.partition(b"\r\n\r\n")
    return head.decode("latin-1"), rest


def field(head, name):
    return email.message_from_string(head.partition("\r\n")[2])[name]


def read_response(s, rest=b"", body=True):
    """(status, header, body, what follows)"""
    head, rest = read_head(s, rest)
    length = int(field(head, "Content-Length") or 0) if body else 0
    if len(rest) >= length:
        return int(head.split()[1]), head, rest[:length], rest[length:]
    whole = bytearray(length)  # 100 MB: in place
    whole[:len(rest)] = rest
    at, view = len(rest), memoryview(whole)
    while at < length:
        n = s.recv_into(view[at:])
        if n == 0:
            raise EOFError(f"closed in the body, {at} of {length}")
        at += n
    return int(head.split()[1]), head, whole, b""


def must(true, what):
    if not true:
        sys.exit(f"http_client: {what}")


def ended(s):
    """The peer's FIN, after at most some more bytes."""
    while True:
        try:
            if not s.recv(65536):
                return True
        except ConnectionResetError:
            return True


def statuses():
    big = b"X: " + b"y" * 9000
    cases = [
        (200, b"GET /page HTTP/1.1\r\n" + FIELDS, True), (200, b"GET /page HTTP/1.0\r\n", False),
        (200, b"GET /page HTTP/1.1\r\n" + FIELDS + b"Connection: close\r\n", False),
        (200, b"\r\nGET /page HTTP/1.0\r\n", False), (200, b"\r\nGET /page HTTP/1.0\r\n", False),  # the log has both
        (204, b"OPTIONS * HTTP/1.1\r\n" + FIELDS, True), (301, b"GET /sub HTTP/1.1\r\n" + FIELDS, True),
        (400, b"GET /page HTTP/1.1\r\n", False), (400, b"GET http:///page HTTP/1.1\r\n" + FIELDS, True),
        (400, b"GET /%00 HTTP/1.1\r\n" + FIELDS, True), (400, b"GET /%2e%2e/x HTTP/1.1\r\n" + FIELDS, True),
        (400, b"GET /page HTTP/1.1\r\n" + FIELDS + b"X: a\r\n b\r\n", False),
        (400, b"GET /page HTTP/1.1\r\n" + FIELDS + b"X : a\r\n", False),
        (400, b"GET /page HTTP/1.1\r\n" + FIELDS + FIELDS, False), (400, b"GET /page HTTP/1.1\r\nHost: a/b\r\n", False),
        (400, b"GET  /page HTTP/1.1\r\n" + FIELDS, False), (400, b"GET /page\t HTTP/1.1\r\n" + FIELDS, False),
        (400, b"OPTIONS /page RTSP/1.0\r\n" + FIELDS, False), (400, b"GET http://u@h/page HTTP/1.1\r\n" + FIELDS, True),
        (200, b"GET /page HTTP/1.0\r\nConnection: keep-alive, close\r\n", False), (400, b"\x16\x03\x01\x02\x00\r\n", False),
        (400, b"POST /up HTTP/1.1\r\n" + FIELDS + b"Content-Length: 3\r\nContent-Length: 3\r\n", False),
        (400, b"POST /up HTTP/1.1\r\n" + FIELDS + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", False),
        (400, b"POST /up HTTP/1.1\r\n" + FIELDS + b"Transfer-Encoding: chunked\r\n\r\n1\r\naXX", False),
        (400, b"POST /up HTTP/1.1\r\n" + FIELDS + b"Transfer-Encoding: chunked\r\n\r\n0\r\nA b: c\r\n", False),
        (413, b"POST /up HTTP/1.1\r\n" + FIELDS + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff", False),
        (404, b"GET /nothing HTTP/1.1\r\n" + FIELDS, True),
        (405, b"DELETE /page HTTP/1.1\r\n" + FIELDS, True), (405, b"PUT /page HTTP/1.1\r\n" + FIELDS, True),
        (412, b"GET /page HTTP/1.1\r\n" + FIELDS + b'If-Match: "x"\r\n', True),
        (413, b"PUT /up HTTP/1.1\r\n" + FIELDS + b"Content-Length: 999999999999\r\n", False),
        (413, b"GET /page HTTP/1.1\r\n" + FIELDS + b"Content-Length: 1048577\r\n", False),
        (414, b"GET /" + b"u" * 4096 + b" HTTP/1.1\r\n" + FIELDS, False),
        (416, b"GET /page HTTP/1.1\r\n" + FIELDS + b"Range: bytes=999999-\r\n", True),
        (417, b"PUT /up HTTP/1.1\r\n" + FIELDS + b"Content-Length: 3\r\nExpect: more\r\n", False),
        (431, b"GET /page HTTP/1.1\r\n" + FIELDS + big + b"\r\n", False),
        (501, b"BREW /page HTTP/1.1\r\n" + FIELDS, False),
        (501, b"PUT /up HTTP/1.1\r\n" + FIELDS + b"Transfer-Encoding: gzip, chunked\r\n", False),
        (505, b"GET /page HTTP/2.0\r\n" + FIELDS, False)]
    for want, request, keeps in cases:
        s = connect()
        s.sendall(request + b"\r\n")
        status, head, body, rest = read_response(s)
        must(status == want, f"{request[:80]!r}: {status}, not {want}")
        must(rest == b"", f"{request[:80]!r}: {rest!r} behind the body")
        must((field(head, "Connection") == "keep-alive") == keeps, f"{request[:80]!r}: {head}")
        must(status != 405 or field(head, "Allow") == "GET, HEAD, OPTIONS", f"Allow: {head}")
        if keeps:  # HEAD after it: the same header, no body
            if want in (200, 301, 304, 404, 412):
                s.sendall(request.replace(b"GET", b"HEAD", 1) + b"\r\n")
                _, again, _, rest = read_response(s, body=False)
                strip = [[l for l in h.split("\r\n") if not l.startswith("Date")] for h in (head, again)]
                must(strip[0] == strip[1] and not rest, f"HEAD differs: {again!r} {rest!r}")
        else:
            must(ended(s), f"{request[:80]!r}: not closed")
        s.close()
    go_on()
    print(f"statuses: {len(cases)} requests answered as they should be")


def go_on():
    """100 (Continue) comes before the body, and only if the body is wanted."""
    s = connect()
    s.sendall(b"PUT /up HTTP/1.1\r\n" + FIELDS + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    head, rest = read_head(s)
    must(head == "HTTP/1.1 100 Continue" and rest == b"", f"no 100: {head} {rest}")
    s.sendall(b"abc")
    status, _, body, _ = read_response(s)
    must(status == 200 and body.startswith(b"3 bytes "), f"after 100: {status} {body!r}")
    s.sendall(b"PUT /page HTTP/1.1\r\n" + FIELDS + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    must(read_response(s)[0] == 405, "100 for a body that nobody wants")
    must(ended(s), "the connection stays after a body that was not read")
    # Chunked beyond --upload-max: the answer comes while we still send.
    s = connect()
    s.sendall(b"PUT /up HTTP/1.1\r\n" + FIELDS + b"Transfer-Encoding: chunked\r\n\r\n")
    piece = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    sent = 0
    try:
        while not select.select([s], [], [], 0)[0] and sent < 400:
            s.sendall(piece)
            sent += 1
    except OSError:
        pass
    must(read_response(s)[0] == 413 and 100 < sent < 400, f"413 after {sent} MiB")


def ranges():
    with open(os.path.join(WWW, "mid"), "rb") as f:
        data = f.read()
    size, rng, n = len(data), random.Random(3), 0
    for count in [1] * 5 + [2, 3, 5, 8, 16, 16]:
        cuts = sorted(rng.sample(range(size), 2 * count))
        if count == 3:  # one of more than 32 MiB among short ones: written in pieces
            cuts = [0, 34000000, 34000001, 34000002, 34000100, size - 1]
        want = [(cuts[2 * i], cuts[2 * i + 1]) for i in range(count)]
        if count > 3:
            want = [(a, min(b, a + rng.randrange(1, 5000) - 1)) for a, b in want]
            rng.shuffle(want)
        s = connect()
        s.sendall(b"GET /mid HTTP/1.1\r\n" + FIELDS + b"Range: bytes=" +
                  ",".join(f"{a}-{b}" for a, b in want).encode() + b"\r\n\r\n")
        status, head, body, rest = read_response(s)
        must(status == 206 and rest == b"", f"ranges {want}: {status}")
        if count == 1:
            a, b = want[0]
            must(field(head, "Content-Range") == f"bytes {a}-{b}/{size}", head)
            must(body == data[a:b + 1], f"range {a}-{b} differs")
        else:
            check_parts(head, body, want, data)
        s.sendall(b"GET /page HTTP/1.1\r\n" + FIELDS + b"\r\n")
        must(read_response(s)[0] == 200, "nothing after a 206")
        n += count
    print(f"ranges: {n} compared")


def check_parts(head, body, want, data):
    kind = field(head, "Content-Type")
    must(kind.startswith("multipart/byteranges; boundary="), kind)
    mark = b"--" + kind.partition("=")[2].encode()
    at = 0
    for i, (a, b) in enumerate(want):
        lead = (b"\r\n" if i else b"") + mark + b"\r\n"
        must(body[at:at + len(lead)] == lead, f"part {i}: no boundary")
        end = body.index(b"\r\n\r\n", at)
        must(f"Content-Range: bytes {a}-{b}/{len(data)}".encode() in body[at:end].split(b"\r\n"), f"part {i}")
        at = end + 4
        must(memoryview(body)[at:at + b - a + 1] == memoryview(data)[a:b + 1], f"part {i} differs")
        at += b - a + 1
    must(body[at:] == b"\r\n" + mark + b"--\r\n", f"the end is {body[at:]!r}")


def pipeline():
    """2000 requests at once: answers in order; a close in the middle is the end."""
    rng, want = random.Random(4), []
    with open(os.path.join(WWW, "page"), "rb") as f:
        page = f.read()
    out = b""
    for _ in range(2000):
        a = rng.randrange(len(page))
        kind = rng.randrange(4)
        if kind == 0:
            out += b"GET /page HTTP/1.1\r\n" + FIELDS + b"\r\n"
            want.append((200, page))
        elif kind == 1:
            out += b"GET /page HTTP/1.1\r\n" + FIELDS + f"Range: bytes={a}-{a}\r\n\r\n".encode()
            want.append((206, page[a:a + 1]))
        elif kind == 2:
            out += b"GET /no%d HTTP/1.1\r\n" % a + FIELDS + b"\r\n"
            want.append((404, None))
        else:
            out += b"PUT /up HTTP/1.1\r\n" + FIELDS + f"Content-Length: {a}\r\n\r\n".encode() + page[:a]
            want.append((200, b"%d bytes" % a))
    s = connect()
    s.setblocking(False)
    rest, sent, answers = b"", 0, []
    deadline = time.monotonic() + 20
    while len(answers) < len(want) and time.monotonic() < deadline:
        readable, writable, _ = select.select([s], [s] if sent < len(out) else [], [], 1)
        if writable:
            sent += s.send(out[sent:sent + 65536])
        if readable:
            more = s.recv(1 << 20)
            must(more, f"closed after {len(answers)} answers")
            rest += more
        while b"\r\n\r\n" in rest:
            head, _, body = rest.partition(b"\r\n\r\n")
            length = int(field(head.decode(), "Content-Length"))
            if len(body) < length:
                break
            answers.append((int(head.split()[1]), body[:length]))
            rest = body[length:]
    must(len(answers) == len(want), f"{len(answers)} of {len(want)} answers")
    for i, ((status, body), (want_status, want_body)) in enumerate(zip(answers, want)):
        must(status == want_status, f"answer {i}: {status}, not {want_status}")
        must(want_body is None or body == want_body or body.split(b" sha256")[0] == want_body, f"answer {i} differs")
    print(f"pipeline: {len(answers)} answers in order")


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.text, self.inside = [], [], False

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.links.append(dict(attrs)["href"])
            self.text.append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "a"

    def handle_data(self, data):
        if self.inside:
            self.text[-1] += data


def listing():
    """Every link of every listing leads somewhere, and the names are those of the directory."""
    def fetch(path):
        s = connect()
        s.sendall(f"GET {path} HTTP/1.1\r\n".encode() + FIELDS + b"\r\n")
        status, head, body, _ = read_response(s)
        must(status == 200, f"{path}: {status}")
        return head, body
    pages, seen = ["/"], 0
    while pages:
        path = pages.pop()
        head, body = fetch(path)
        must(field(head, "Content-Type") == "text/html; charset=utf-8", head)
        links = Links()
        links.feed(body.decode())
        real = os.path.join(WWW, urllib.parse.unquote(path).lstrip("/"))
        names = sorted(n + ("/" if os.path.isdir(os.path.join(real, n)) else "")
                       for n in os.listdir(real) if not n.startswith(".") and n != "fifo")
        must(sorted(t for t in links.text if t != "../") == names, f"{path}: {links.text}, not {names}")
        for link in links.links:
            target = urllib.parse.urljoin(f"http://h{path}", link).removeprefix("http://h")
            if link == "../":
                continue
            if target.endswith("/"):
                pages.append(target)
            elif os.path.getsize(os.path.join(WWW, urllib.parse.unquote(target).lstrip("/"))) < 10**6:
                must(fetch(target)[1] == open(os.path.join(WWW, urllib.parse.unquote(target)[1:]), "rb").read(), target)
            seen += 1
    print(f"listing: {seen} links")


def answered_late(s, what):
    status = read_response(s)[0]
    must(status == 408, f"{what}: {status}")
    must(ended(s), f"{what}: not closed")


def slow_header():
    """A byte now and then does not move the deadline (--header-timeout 2)."""
    s = connect()
    s.sendall(b"GET /page HTTP/1.1\r\n")
    for _ in range(40):
        if select.select([s], [], [], 0.2)[0]:
            break
        s.sendall(b"X")
    answered_late(s, "slow header")
    print("slow-header: 408")


def slow_body():
    s = connect()
    s.sendall(b"PUT /up HTTP/1.1\r\n" + FIELDS + b"Content-Length: 100000\r\n\r\n")
    for _ in range(60):
        if select.select([s], [], [], 0.2)[0]:
            break
        s.sendall(b"b" * 20)  # 100 a second, --min-rate is 1024
    answered_late(s, "slow body")
    print("slow-body: 408")


def slow_reader():
    """Nothing is read (--send-timeout 3): a reset. The other one reads slowly, but enough."""
    lazy, fair = connect(4096), connect(4096)
    for s in (lazy, fair):
        s.sendall(b"GET /big HTTP/1.1\r\n" + FIELDS + b"\r\n")
    begin, reset = time.monotonic(), False
    poll = select.poll()
    poll.register(lazy, 0)  # errors only
    while time.monotonic() < begin + 12:
        if poll.poll(0):
            reset = True
            break
        fair.recv(2000)
        time.sleep(0.1)
    must(reset, "who takes nothing is not reset")
    must(fair.recv(2000), "who takes enough was cut")
    print("slow-reader: reset after %.1f s" % (time.monotonic() - begin))


def lazy():
    """Nothing is read, and the connection is half-closed, or the server's to close: a reset all the same."""
    held = []
    for i in range(40):
        s = connect(2048)
        path, close = (b"/big", b"") if i % 2 else (b"/page", b"Connection: close\r\n")
        s.sendall(b"GET " + path + b" HTTP/1.1\r\n" + FIELDS + close + b"\r\n")
        if i % 2:
            s.shutdown(socket.SHUT_WR)
        held.append(s)
    begin = time.monotonic()
    poll = select.poll()
    for s in held:
        poll.register(s, 0)  # errors only
    while len(poll.poll(0)) < len(held) and time.monotonic() < begin + 20:
        time.sleep(0.2)
    must(len(poll.poll(0)) == len(held), f"{len(held) - len(poll.poll(0))} lazy readers were not reset")
    print(f"lazy: {len(held)} reset after %.1f s" % (time.monotonic() - begin))


def lost():
    """A page behind 400 short answers (405), a short one behind 20 pages, none of them read; then a reset."""
    page, short = (m + b" /page HTTP/1.1\r\n" + FIELDS + b"\r\n" for m in (b"GET", b"DELETE"))
    for requests in (short * 400 + page, page * 20 + short):
        s = connect(2048)
        s.sendall(requests)
        time.sleep(0.3)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    print("lost: 422 requests")


def whole():
    """--max-requests 3: what is pipelined behind the third cuts none of the three answers, unread as they are."""
    request = b"GET /page HTTP/1.1\r\n" + FIELDS + b"X: " + b"y" * 1000 + b"\r\n\r\n"
    for i in range(10):
        s, out = connect(4096), b""
        s.setblocking(False)
        left = memoryview(request * 1000)
        try:
            while left:
                left = left[s.send(left):]
        except OSError:
            pass
        s.setblocking(True)
        s.settimeout(10)
        try:
            while more := s.recv(1500):
                out += more
                s.setblocking(False)
                try:
                    left = left[s.send(left[:20000]):]
                except OSError:
                    pass
                s.settimeout(10)
        except ConnectionResetError:
            pass
        must(out.count(b"HTTP/1.1 200") == 3, f"whole, connection {i}: {out.count(b'HTTP/1.1 200')} answers")
        rest = out
        for _ in range(3):
            head, _, rest = rest.partition(b"\r\n\r\n")
            length = int(field(head.decode(), "Content-Length"))
            must(len(rest) >= length > 4000, f"whole, connection {i}: {len(rest)} of {length} bytes")
            rest = rest[length:]
        s.close()
    print("whole: 30 answers")


def loris():
    """1100 headers that never end (a core keeps 1024), and a client that wants a page in two pieces."""
    held = []
    for _ in range(1100):
        s = connect()
        s.sendall(b"GET /page HTTP/1.1\r\nX")
        held.append(s)
    s = connect()
    s.sendall(b"GET /page HTTP/1.1\r\nHo")
    time.sleep(0.2)
    s.sendall(b"st: h\r\n\r\n")
    must(read_response(s)[0] == 200, "no page beside 1100 slow headers")
    answered_late(held[0], "the oldest")
    print("loris: served")


for job in sys.argv[3:]:
    {"statuses": statuses, "ranges": ranges, "pipeline": pipeline, "listing": listing, "slow-header": slow_header,
     "slow-body": slow_body, "slow-reader": slow_reader, "lazy": lazy, "lost": lost, "whole": whole, "loris": loris}[job]()
