#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A server of plain sockets that closes connections: close_server.py ADDRESS PORT

PORT closes what it has accepted, so it closes first when the client waits for that, and the
TIME_WAIT is this side's; PORT + 1 closes when it reads the end. Prints `listening` when it is
ready; runs until it is ended.
"""
import select
import socket
import sys

BACKLOG = 4096


def listener(address, port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(BACKLOG)
    s.setblocking(False)
    return s


def accept_all(s):
    while True:
        try:
            yield s.accept()[0]
        except BlockingIOError:
            return
        except ConnectionAbortedError:
            pass


def main():
    address, port = sys.argv[1], int(sys.argv[2])
    simple, proper = listener(address, port), listener(address, port + 1)
    open_by_fd = {}
    poll = select.epoll()
    for s in (simple, proper):
        poll.register(s.fileno(), select.EPOLLIN)
    print("listening", flush=True)
    while True:
        for fd, _ in poll.poll():
            if fd == simple.fileno():
                for c in accept_all(simple):
                    c.close()
            elif fd == proper.fileno():
                for c in accept_all(proper):
                    open_by_fd[c.fileno()] = c
                    poll.register(c.fileno(), select.EPOLLIN)
            else:
                c = open_by_fd[fd]
                try:
                    ended = not c.recv(4096)
                except ConnectionError:
                    ended = True
                if ended:
                    poll.unregister(fd)
                    del open_by_fd[fd]
                    c.close()


if __name__ == "__main__":
    main()
