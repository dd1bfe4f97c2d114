/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cork_kernel.c - the kernel's end of perf/cork_close: sends CORK_BYTES bytes to whoever connects
 * and closes, in the four ways of ../cork_modes.h. One thread, blocking sockets.
 *
 *	cork_kernel --addr A [--port FIRST]
 *
 * Until a signal ends it.
 */
#include "../cork_modes.h"
#include "peers.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static int
open_listener(const char *addr, uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (inet_pton(AF_INET, addr, &sin.sin_addr) != 1) {
		errno = 0;
		peer_die("--addr: not an IPv4 address");
	}
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0)
		peer_die("socket");
	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)) != 0 || listen(fd, 128) != 0)
		peer_die("bind");
	return fd;
}

static void
set_cork(int fd, int on)
{
	if (setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)) != 0)
		peer_die("TCP_CORK");
}

static void
answer(int listener, const struct cork_mode *mode)
{
	static const char bytes[CORK_BYTES];
	int fd = accept(listener, NULL, NULL);

	if (fd < 0) {
		if (errno == ECONNABORTED)
			return;
		peer_die("accept");
	}
	if (mode->cork)
		set_cork(fd, 1);
	if (send(fd, bytes, CORK_BYTES, MSG_NOSIGNAL) != CORK_BYTES && errno != ECONNRESET &&
		errno != EPIPE)
		peer_die("send");
	if (mode->uncork)
		set_cork(fd, 0);
	if (mode->shutdown)
		shutdown(fd, SHUT_WR);
	close(fd);
}

static const struct option options[] = {
	{"addr", required_argument, NULL, 'a'},
	{"port", required_argument, NULL, 'p'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

int
main(int argc, char **argv)
{
	const char *addr = NULL;
	uint16_t port = 7000;
	struct pollfd fds[CORK_MODES];
	int opt;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (opt == 'a')
			addr = optarg;
		else if (opt == 'p')
			port = (uint16_t)peer_number("port", optarg, 1, 65532);
		else
			break;
	}
	if (opt != -1 || optind != argc || !addr) {
		fputs("usage: cork_kernel --addr A [--port FIRST]\n", opt == 'h' ? stdout : stderr);
		return opt == 'h' ? 0 : 2;
	}
	for (unsigned i = 0; i < CORK_MODES; i++)
		fds[i] = (struct pollfd){
			.fd = open_listener(addr, (uint16_t)(port + i)), .events = POLLIN};
	while (poll(fds, CORK_MODES, -1) > 0 || errno == EINTR)
		for (unsigned i = 0; i < CORK_MODES; i++)
			if (fds[i].revents)
				answer(fds[i].fd, &cork_modes[i]);
	peer_die("poll");
}
