#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""HTTP clients with habits of their own, over kernel TCP, against corq httpd.

    clients.py ADDRESS PORT DIRECTORY       DIRECTORY is what the server serves

Each client compares every byte with the file. It prints a line a client; the first one that is
wrong ends it with status 1. Called by programs.sh, which made the files: many/1 to many/1000, less
(200 KB), some (5 MB).
"""
import http.client
import pathlib
import random
import socket
import struct
import sys
import threading
import time

HOST, PORT = sys.argv[1], int(sys.argv[2])
TOP = pathlib.Path(sys.argv[3])
SEED = 20240607


class Wrong(Exception):
    pass


def content(path):
    return (TOP / path).read_bytes()


def connect(**options):
    s = socket.socket()
    s.settimeout(30)
    for name, value in options.items():
        level = socket.IPPROTO_TCP if name.startswith("TCP_") else socket.SOL_SOCKET
        s.setsockopt(level, getattr(socket, name), value)
    s.connect((HOST, PORT))
    return s


def get(path, *headers):
    lines = [f"GET /{path} HTTP/1.1", f"Host: {HOST}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def read_response(file):
    """(status, body) of the next response."""
    status = int(file.readline().split()[1])
    length = 0
    while (line := file.readline()) not in (b"\r\n", b""):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, file.read(length)


def expect(what, got, wanted):
    if got != wanted:
        if isinstance(got, bytes):
            got, wanted = f"{len(got)} bytes", f"the {len(wanted)} bytes of the file"
        raise Wrong(f"{what}: {got}, not {wanted}")


def ask(connection, path, method="GET"):
    """With http.client, which keeps the connection as long as the server does."""
    connection.request(method, "/" + path)
    response = connection.getresponse()
    return response.status, response.read(), response


def session(seed, count):
    """Mixed requests on one connection. http.client would open another in silence: it is told not to."""
    pick = random.Random(seed)
    connection = http.client.HTTPConnection(HOST, PORT, timeout=30)
    connection.connect()
    connection.auto_open = 0
    for _ in range(count):
        name = f"many/{pick.randint(1, 1000)}"
        kind = pick.random()
        if kind < 0.8:
            status, body, _ = ask(connection, name)
            expect(name, (status, body == content(name)), (200, True))
        elif kind < 0.9:
            status, body, response = ask(connection, name, "HEAD")
            expect("HEAD", (status, body, int(response.headers["Content-Length"])),
                   (200, b"", (TOP / name).stat().st_size))
        else:
            expect("what is not there", ask(connection, "nothing/here")[0], 404)
    connection.close()


# ---- the clients

def keep_alive():
    session(SEED, 300)


def many_sessions():
    wrong = []

    def run(seed):
        try:
            session(seed, 40)
        except Exception as error:  # of any kind: a thread cannot raise
            wrong.append(error)
    threads = [threading.Thread(target=run, args=(SEED + i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise Wrong(wrong[0])


def pipelined():
    names = [f"many/{i}" for i in range(1, 301)]
    s = connect()
    sender = threading.Thread(target=s.sendall, args=(b"".join(map(get, names)),))
    sender.start()
    with s.makefile("rb") as file:
        for name in names:
            expect(name, read_response(file), (200, content(name)))
    sender.join()
    s.close()


def byte_by_byte():
    s = connect(TCP_NODELAY=1)
    for byte in get("many/77", "Accept: */*"):
        s.send(bytes([byte]))
    with s.makefile("rb") as file:
        expect("the answer", read_response(file), (200, content("many/77")))
    s.close()


def half_closed():
    """The client's FIN comes with its request: all of the answer is still owed, then a FIN."""
    s = connect()
    s.sendall(get("some"))
    s.shutdown(socket.SHUT_WR)
    with s.makefile("rb") as file:
        expect("the answer", read_response(file), (200, content("some")))
        expect("what follows", file.read(), b"")
    s.close()


def small_window():
    """It reads nothing until the window is closed, then little at a time: 100 round trips and more."""
    s = connect(SO_RCVBUF=2304)
    s.sendall(get("less", "Connection: close"))
    time.sleep(1)  # the window's end shows on the wire alone
    got = bytearray()
    while len(got) < 50000:
        got += s.recv(700)
    while block := s.recv(65536):
        got += block
    expect("the body", bytes(got).partition(b"\r\n\r\n")[2], content("less"))
    s.close()


def small_segments():
    s = connect(TCP_MAXSEG=88)
    s.sendall(get("many/999", "Connection: close"))
    with s.makefile("rb") as file:
        expect("the answer", read_response(file), (200, content("many/999")))
    s.close()


def rude():
    """Resets in a header, in a body, and right after the request; the next client sees nothing of it."""
    for i in range(60):
        s = connect()
        s.sendall((get("some")[:20], get("some"), get("some") + get("many/3"))[i % 3])
        if i % 3 == 2:
            s.recv(1000)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    session(SEED + 100, 20)


def main():
    for client in (keep_alive, many_sessions, pipelined, byte_by_byte, half_closed, small_window,
                   small_segments, rude):
        begin = time.monotonic()
        try:
            client()
        except (Wrong, OSError, http.client.HTTPException, ValueError, IndexError) as error:
            print(f"clients.py: {client.__name__} (seed {SEED}): {error!r}", file=sys.stderr)
            return 1
        print(f"{client.__name__}: {time.monotonic() - begin:.2f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
