#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An odd HTTP server, to compare load generators with: odd_server.py ADDRESS PORT [REQUESTS_FILE]

What it does depends on the path and, where it says "some", on the number of the request to that
path from that address (from 0): numbers 3, 13, 23... Never on the time of day. Paths:

plain         1000 bytes with Content-Length      close         the same, delimited by the close
chunked       three chunks, then it closes        chunked-keep  three chunks, keep-alive
vary          100 to 160 bytes, in turn           split         sent byte by byte
404 500 302   that status                         some-500      some are errors
204           no body                             no-server     without a Server line
long-header   6000 bytes of header                huge-header   20000 bytes of header
continue      "100 Continue" before the answer    slow          answers in two parts
keep          keep-alive with Content-Length      keep-no-length  keep-alive without one, closes
keep-3        keep-alive; closes after 3 answers  keep-3-said   the third says Connection: close
reset-before  some are reset without a byte       reset-mid     some are reset in the body
reset-end     some are reset after the whole of it
half          some end in the middle of the body  empty         some end without a byte
garbage       what is no HTTP                     extra         more bytes than it announced
echo          says how long the request's body was; stall  never answers
stall-half    half an answer, and silence       drip          an answer over 1.5 s
peer          the client's address stands in the Server line

Bytes that are no proper answer, then it closes: negative-length huge-length two-lengths
length-and-chunked trailers huge-chunk http09 nul bare-lf status-999 switching only-interim
Without end, until the client closes: flood-interim flood-header flood-line flood-garbage
flood-extra flood-body

HEAD is answered with the same header and no body. An absolute URI (as to a proxy) counts as its
path. Each different request is written to REQUESTS_FILE once, as one line of Python's repr. A
connection has a thread. Prints `listening` when it is ready; runs until it is ended. A path that
is not above is answered with 404. `GET /reset-numbers` starts all numbers from 0 again.
"""
import re
import socket
import struct
import sys
import threading
import time

STATUS = {200: "OK", 204: "No Content", 302: "Found", 404: "Not Found", 500: "Internal Server Error"}
BODY = bytes(97 + i % 26 for i in range(1000))
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
RAW = {
    "negative-length": OK + b"Content-Length: -5\r\n\r\nhello",
    "huge-length": OK + b"Content-Length: 99999999999999999999999\r\n\r\nhello",
    "two-lengths": OK + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
    "length-and-chunked": OK + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\n",
    "trailers": OK + CHUNKED + b"\r\n5\r\nhello\r\n0\r\nX: y\r\nZ: q\r\n\r\n",
    "huge-chunk": OK + CHUNKED + b"\r\nffffffffffffffffff\r\nhello",
    "http09": b"<html>hello</html>",
    "nul": OK + b"Server: a\0b\x1b[31m\xff\r\nX:\0\r\n\r\nhi",
    "bare-lf": b"HTTP/1.1 200 OK\nServer: lf\nContent-Length: 2\n\nhi",
    "status-999": b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nhi",
    "switching": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nhi",
    "only-interim": b"HTTP/1.1 103 Early Hints\r\n\r\n",
}
FLOODS = {  # how it begins, and goes on
    "flood-interim": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
    "flood-header": (OK, b"X-A: " + b"y" * 2000 + b"\r\n"),
    "flood-line": (OK + b"X-A: ", b"x" * 65536),
    "flood-garbage": (b"\0\1\2", b"x" * 65536),
    "flood-extra": (OK + b"Content-Length: 2\r\n\r\nhi", b"x" * 65536),
    "flood-body": (OK + b"\r\n", b"x" * 65536),
}
KNOWN = set(re.findall(r"[a-z0-9-]+", __doc__)) - {"reset-numbers"}


class Log:
    """The numbers of requests by path, and the different requests seen."""

    def __init__(self, name):
        self.lock = threading.Lock()
        self.numbers = {}
        self.seen = set()
        self.file = open(name, "w", encoding="ascii") if name else None

    def number(self, path, request, peer):
        with self.lock:
            if path == "reset-numbers":
                self.numbers.clear()
                return 0
            n = self.numbers.get((peer, path), 0)
            self.numbers[peer, path] = n + 1
            if self.file and request not in self.seen:
                self.seen.add(request)
                print(repr(request), file=self.file, flush=True)
            return n


def reset(conn):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def settle(conn):
    """Until the peer's kernel or stack has acknowledged what was sent (bounded)."""
    for _ in range(200):
        if struct.unpack("I", conn.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28)[24:28])[0] == 0:
            return
        time.sleep(0.002)


def head(status, lines):
    text = f"HTTP/1.1 {status} {STATUS[status]}\r\n" + "".join(line + "\r\n" for line in lines)
    return text.encode("ascii") + b"\r\n"


def length(body):
    return f"Content-Length: {len(body)}"


def chunks(body):
    third = len(body) // 3
    parts = (body[:third], body[third:2 * third], body[2 * third:])
    return [b"%x\r\n%b\r\n" % (len(part), part) for part in parts] + [b"0\r\n\r\n"]


def read_request(conn, rest):
    """(head, body, what came after it), or None at the end of the connection."""
    while b"\r\n\r\n" not in rest:
        more = conn.recv(65536)
        if not more:
            return None
        rest += more
    start, rest = rest.split(b"\r\n\r\n", 1)
    match = re.search(rb"(?i)\ncontent-length: *(\d+)", start)
    want = int(match.group(1)) if match else 0
    while len(rest) < want:
        more = conn.recv(65536)
        if not more:
            return None
        rest += more
    return start, rest[:want], rest[want:]


def pieces(path, n, body, nth, peer):
    """(the parts to send, what happens then: keep, close, reset or stall)"""
    server, some = "Server: " + (peer if path == "peer" else "odd/1"), n % 10 == 3
    plain = head(200, [server, length(BODY)]) + BODY
    if path in ("404", "500", "302") or (path == "some-500" and some):
        status = 500 if path == "some-500" else int(path)
        return [head(status, [server, length(BODY[:77])]) + BODY[:77]], "close"
    if path == "204":
        return [head(204, [server])], "close"
    if path == "close":
        return [head(200, [server]), BODY], "close"
    if path in ("chunked", "chunked-keep"):
        keep = path == "chunked-keep"
        lines = [server, "Transfer-Encoding: chunked", "Connection: " + ("Keep-Alive" if keep else "close")]
        return [head(200, lines)] + chunks(BODY), "keep" if keep else "close"
    if path == "vary":
        part = BODY[:100 + 10 * (n % 7)]
        return [head(200, [server, length(part)]) + part], "close"
    if path == "no-server":
        return [head(200, [length(BODY)]) + BODY], "close"
    if path in ("long-header", "huge-header"):
        lines = [f"X-Fill-{i}: {'f' * 86}" for i in range(60 if path == "long-header" else 200)]
        return [head(200, [server, length(BODY)] + lines) + BODY], "close"
    if path == "split":
        return [bytes([byte]) for byte in plain[:80]] + [plain[80:]], "close"
    if path == "continue":
        return [head(200, []).replace(b"200 OK", b"100 Continue"), plain], "close"
    if path == "slow":
        return [plain[:300], plain[300:]], "close"
    if path in ("keep", "keep-3", "keep-3-said"):
        last = path != "keep" and nth == 3
        said = "close" if last and path == "keep-3-said" else "Keep-Alive"
        return [head(200, [server, length(BODY), "Connection: " + said]) + BODY], "close" if last else "keep"
    if path == "keep-no-length":
        return [head(200, [server, "Connection: Keep-Alive"]) + BODY], "close"
    if path == "reset-before" and some:
        return [], "reset"
    if path == "reset-mid" and some:
        return [plain[:-500]], "reset"
    if path == "reset-end" and some:
        return [plain], "reset"
    if path in RAW:
        return [RAW[path]], "close"
    if path == "half" and some:
        return [plain[:-500]], "close"
    if path == "empty" and some:
        return [], "close"
    if path == "garbage":
        return [bytes(range(1, 128)) * 3 + b"\r\n\r\n" + BODY], "close"
    if path == "extra":
        return [head(200, [server, "Content-Length: 900"]) + BODY], "close"
    if path == "echo":
        text = b"%06d\n" % len(body)
        return [head(200, [server, length(text)]) + text], "close"
    if path in ("stall", "stall-half"):
        return [plain[:-500]] if path == "stall-half" else [], "stall"
    if path == "drip":
        return [plain[i:i + 300] for i in range(0, len(plain), 300)], "close"
    if path not in KNOWN:
        return [head(404, [server, length(b"")])], "close"
    return [plain], "close"


def serve(conn, log):
    rest, nth = b"", 0
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        request = read_request(conn, rest)
        if request is None:
            return
        start, body, rest = request
        method, target = start.split(b" ", 2)[:2]
        path = re.sub(r"^[a-z]+://[^/]*", "", target.decode("latin-1")).strip("/")
        nth += 1
        peer = conn.getpeername()[0]
        parts, then = pieces(path, log.number(path, start + b"\r\n\r\n" + body, peer), body, nth, peer)
        if method == b"HEAD" and parts:
            whole = b"".join(parts)
            parts = [whole[:whole.index(b"\r\n\r\n") + 4]]
        if path in FLOODS:
            conn.sendall(FLOODS[path][0])
            while True:
                conn.sendall(FLOODS[path][1])
        for i, part in enumerate(parts):
            conn.sendall(part)
            if i + 1 < len(parts) and len(part) > 1:
                settle(conn)
            if i + 1 < len(parts) and path == "drip":
                time.sleep(0.5)  # drops are slow by nature
        if then == "stall":
            conn.recv(1)
            return
        if then == "reset":
            settle(conn)
            time.sleep(0.1)  # the client shall have read it
            reset(conn)
        if then != "keep":
            return


def client(conn, log):
    try:
        serve(conn, log)
    except (OSError, ValueError):
        pass
    conn.close()


def main(address, port, name=None):
    log = Log(name)
    with socket.create_server((address, int(port)), backlog=1024) as listener:
        print("listening", flush=True)
        while True:
            conn = listener.accept()[0]
            threading.Thread(target=client, args=(conn, log), daemon=True).start()


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(*sys.argv[1:])
