/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoll_server.c - the kernel's server in comparisons: a fixed answer to every request.
 *
 * One thread, one epoll set. A request ends at an empty line, or after --request bytes. The
 * answer is --size bytes in all, an HTTP header in front when it fits, so that curl and ab can
 * talk to it too. It closes first (FIN on the answer: MSG_MORE before close), or with
 * --keepalive when the client does. What is not handled: pipelined requests, TLS, IPv6.
 *
 * What it does to be quick: a new connection is read at once and joins the epoll set only when
 * there is nothing yet; an answer that fits the socket's buffer never waits for EPOLLOUT.
 */
#include "peers.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_EVENTS  256
#define N_ACCEPTS 64 /* in a row, so that open connections get their turn */
#define READ_SIZE 8192

struct conn {
	uint32_t got;   /* bytes of the request so far */
	uint32_t sent;  /* bytes of the answer so far */
	uint8_t line;   /* newlines in a row at the end of what came: 2 ends a request */
	bool answering; /* the request is here, the answer is not out yet */
	bool watched;   /* in the epoll set */
	bool blocked;   /* there for EPOLLOUT */
};

struct server {
	int epoll, listener;
	uint32_t request; /* bytes of a request, 0: until an empty line */
	bool keepalive, defer, fast_close;
	char *answer;
	size_t size;
	struct conn *conns; /* by descriptor */
	unsigned n_conns;
	uint64_t accepted, requests, errors;
};

static volatile sig_atomic_t stopped;

static void
on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

/* --size bytes: a header, if there is room for one, then filler. */
static void
make_answer(struct server *s)
{
	char header[128];
	size_t body = s->size, n = 0;
	int i;

	/* The length's digits may change the header's length, which changes the length. */
	for (i = 0; i < 3; i++) {
		n = (size_t)snprintf(header, sizeof(header),
			"HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: %s\r\n\r\n", body,
			s->keepalive ? "keep-alive" : "close");
		body = s->size > n ? s->size - n : 0;
	}
	s->answer = malloc(s->size);
	if (!s->answer)
		peer_die("malloc");
	memset(s->answer, 'x', s->size);
	if (s->size >= n)
		memcpy(s->answer, header, n);
}

static void
open_listener(struct server *s, const char *addr, uint16_t port, int backlog)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
	int one = 1;

	if (inet_pton(AF_INET, addr, &sin.sin_addr) != 1) {
		errno = 0;
		peer_die("--addr: not an IPv4 address");
	}
	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (s->listener < 0)
		peer_die("socket");
	setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (s->defer)
		setsockopt(s->listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &one, sizeof(one));
	/* Accepted sockets inherit it. */
	setsockopt(s->listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (bind(s->listener, (struct sockaddr *)&sin, sizeof(sin)) != 0)
		peer_die("bind");
	if (listen(s->listener, backlog) != 0)
		peer_die("listen");
}

static void
watch(struct server *s, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.fd = fd};
	bool known = fd != s->listener && s->conns[fd].watched;

	if (epoll_ctl(s->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev) != 0)
		peer_die("epoll_ctl");
	if (fd != s->listener)
		s->conns[fd].watched = true;
}

static void
drop(struct server *s, int fd, bool error)
{
	s->errors += error;
	close(fd); /* leaves the epoll set with it */
}

/* Whether the request ends in these n bytes. */
static bool
request_ends(const struct server *s, struct conn *c, const char *data, size_t n)
{
	size_t i;

	c->got += (uint32_t)n;
	if (s->request)
		return c->got >= s->request;
	for (i = n > 4 && c->got == n ? n - 4 : 0; i < n; i++) {
		if (data[i] == '\n')
			c->line++;
		else if (data[i] != '\r')
			c->line = 0;
	}
	return c->line >= 2;
}

/* Sends what is left of the answer, then closes or waits for the next request. */
static void
answer(struct server *s, int fd, struct conn *c)
{
	int flags = MSG_NOSIGNAL | (s->fast_close && !s->keepalive ? MSG_MORE : 0);
	ssize_t n = send(fd, s->answer + c->sent, s->size - c->sent, flags);

	if (n < 0 && errno != EAGAIN) {
		drop(s, fd, true);
		return;
	}
	if (n > 0)
		c->sent += (uint32_t)n;
	if (c->sent < s->size) {
		if (!c->blocked)
			watch(s, fd, EPOLLOUT);
		c->blocked = true;
		return;
	}
	s->requests++;
	if (!s->keepalive) {
		drop(s, fd, false);
		return;
	}
	if (!c->watched || c->blocked)
		watch(s, fd, EPOLLIN);
	*c = (struct conn){.watched = true};
}

static void
serve(struct server *s, int fd)
{
	char data[READ_SIZE];
	struct conn *c = &s->conns[fd];
	ssize_t n;

	if (!c->answering) {
		n = recv(fd, data, sizeof(data), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			drop(s, fd, n < 0 || c->got > 0);
			return;
		}
		if (n < 0 || !request_ends(s, c, data, (size_t)n)) {
			if (!c->watched)
				watch(s, fd, EPOLLIN);
			return;
		}
		c->answering = true;
	}
	answer(s, fd, c);
}

static void
accept_some(struct server *s)
{
	int i, fd;

	for (i = 0; i < N_ACCEPTS; i++) {
		fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
				return;
			if (errno != EMFILE)
				peer_die("accept4");
			s->errors++;
			return;
		}
		if ((unsigned)fd >= s->n_conns) {
			drop(s, fd, true);
			continue;
		}
		s->accepted++;
		s->conns[fd] = (struct conn){0};
		serve(s, fd);
	}
}

static void
run(struct server *s)
{
	struct epoll_event events[N_EVENTS];
	int i, n;

	watch(s, s->listener, EPOLLIN);
	printf("listening\n");
	fflush(stdout);
	while (!stopped) {
		n = epoll_wait(s->epoll, events, N_EVENTS, -1);
		if (n < 0 && errno != EINTR)
			peer_die("epoll_wait");
		for (i = 0; i < n; i++) {
			if (events[i].data.fd == s->listener)
				accept_some(s);
			else
				serve(s, events[i].data.fd);
		}
	}
	printf("{\"name\": \"epoll_server\", \"accepted\": %" PRIu64 ", \"requests\": %" PRIu64
	       ", \"errors\": %" PRIu64 "}\n",
		s->accepted, s->requests, s->errors);
}

static const struct option options[] = {
	{"addr", required_argument, NULL, 'a'},
	{"port", required_argument, NULL, 'p'},
	{"size", required_argument, NULL, 's'},
	{"request", required_argument, NULL, 'r'},
	{"backlog", required_argument, NULL, 'b'},
	{"cpu", required_argument, NULL, 'c'},
	{"keepalive", no_argument, NULL, 'k'},
	{"defer-accept", no_argument, NULL, 'd'},
	{"separate-fin", no_argument, NULL, 'f'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static void __attribute__((noreturn)) usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: epoll_server [--addr A] [--port N] [--size BYTES] [--request BYTES] "
		"[--backlog N]\n"
		"                    [--cpu N] [--keepalive] [--defer-accept] [--separate-fin]\n"
		"Prints `listening` when it is ready, and its counts as JSON on SIGINT or "
		"SIGTERM.\n");
	exit(status);
}

int
main(int argc, char **argv)
{
	struct server s = {.size = 100, .fast_close = true};
	struct sigaction act = {.sa_handler = on_signal};
	const char *addr = "0.0.0.0";
	int opt, cpu = -1, backlog = 65535;
	uint16_t port = 8080;

	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case 'a':
			addr = optarg;
			break;
		case 'p':
			port = (uint16_t)peer_number("port", optarg, 1, 65535);
			break;
		case 's':
			s.size = peer_number("size", optarg, 1, 1u << 30);
			break;
		case 'r':
			s.request = (uint32_t)peer_number("request", optarg, 1, 1u << 30);
			break;
		case 'b':
			backlog = (int)peer_number("backlog", optarg, 1, 1u << 20);
			break;
		case 'c':
			cpu = (int)peer_number("cpu", optarg, 0, CPU_SETSIZE - 1);
			break;
		case 'k':
			s.keepalive = true;
			break;
		case 'd':
			s.defer = true;
			break;
		case 'f':
			s.fast_close = false;
			break;
		default:
			usage(opt == 'h' ? 0 : 2);
		}
	}
	if (optind != argc)
		usage(2);
	peer_pin(cpu);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	s.n_conns = peer_raise_files();
	s.conns = calloc(s.n_conns, sizeof(*s.conns));
	s.epoll = epoll_create1(0);
	if (!s.conns || s.epoll < 0)
		peer_die("set-up");
	make_answer(&s);
	open_listener(&s, addr, port, backlog);
	run(&s);
	return 0;
}
