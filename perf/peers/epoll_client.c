/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoll_client.c - the kernel's client in comparisons: a closed loop of requests.
 *
 * One thread, one epoll set, --concurrency slots. Each slot connects, sends --request bytes (an
 * HTTP request, padded), reads --size bytes and the end of the stream, closes, and starts anew;
 * with --keepalive it asks again on the same connection. An answer that is too short or too long,
 * a reset, a refused connection and --timeout seconds without any progress are failures.
 *
 * The server closes first, so that TIME_WAIT stands there. Source ports: --bind-range A-B walks
 * over local addresses (IP_BIND_ADDRESS_NO_PORT: the port is chosen at connect, by destination).
 * Prints one JSON object. What is not handled: pipelining, TLS, IPv6.
 */
#include "peers.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_EVENTS  256
#define READ_SIZE 65536

struct slot {
	int fd;         /* -1: none */
	bool connected; /* and the request is out */
	uint64_t got;   /* bytes of the answer */
};

struct client {
	struct sockaddr_in server;
	uint32_t bind_first, n_bind; /* host order; n_bind 0: not bound */
	uint32_t bind_next;
	int epoll;
	struct slot *slots;
	unsigned n_slots, n_open;
	bool keepalive;
	char *request;
	size_t request_size;
	uint64_t size;
	uint64_t limit;  /* requests to start */
	uint64_t end_ns; /* start none after this; 0: no such time */
	uint64_t started, ok, failed, connections;
	const char *first_error;
	int first_errno;
};

static void start_slot(struct client *c, struct slot *s);

static bool
may_start(struct client *c)
{
	if (c->started >= c->limit || (c->end_ns && peer_now_ns() >= c->end_ns))
		return false;
	c->started++;
	return true;
}

static void
close_slot(struct client *c, struct slot *s)
{
	close(s->fd);
	s->fd = -1;
	c->n_open--;
}

static void
fail(struct client *c, struct slot *s, const char *what, int error)
{
	if (!c->failed++) {
		c->first_error = what;
		c->first_errno = error;
	}
	close_slot(c, s);
	start_slot(c, s);
}

/* Sends the request; the socket's buffer is empty, so that all of it fits. */
static bool
ask(struct client *c, struct slot *s)
{
	ssize_t n = send(s->fd, c->request, c->request_size, MSG_NOSIGNAL);

	s->got = 0;
	if (n == (ssize_t)c->request_size)
		return true;
	fail(c, s, "send", n < 0 ? errno : EMSGSIZE);
	return false;
}

static int
new_socket(struct client *c)
{
	struct sockaddr_in local = {.sin_family = AF_INET};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		peer_die("socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!c->n_bind)
		return fd;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	local.sin_addr.s_addr = htonl(c->bind_first + c->bind_next++ % c->n_bind);
	if (bind(fd, (struct sockaddr *)&local, sizeof(local)) != 0)
		peer_die("bind");
	return fd;
}

static void
start_slot(struct client *c, struct slot *s)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = s};

	if (!may_start(c))
		return;
	*s = (struct slot){.fd = new_socket(c)};
	c->n_open++;
	if (connect(s->fd, (struct sockaddr *)&c->server, sizeof(c->server)) != 0 &&
		errno != EINPROGRESS)
		peer_die("connect");
	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, s->fd, &ev) != 0)
		peer_die("epoll_ctl");
}

static void
answered(struct client *c, struct slot *s, bool at_end)
{
	c->ok++;
	if (c->keepalive && !at_end && may_start(c)) {
		ask(c, s);
		return;
	}
	close_slot(c, s);
	start_slot(c, s);
}

/* Edge triggered: reads until there is nothing more. */
static void
take(struct client *c, struct slot *s)
{
	static char data[READ_SIZE];
	ssize_t n;

	for (;;) {
		n = recv(s->fd, data, sizeof(data), 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			fail(c, s, "recv", errno);
			return;
		}
		s->got += (uint64_t)n;
		if (s->got > c->size || (n == 0 && s->got < c->size)) {
			fail(c, s, "answer of another size", 0);
			return;
		}
		if (n == 0 || (c->keepalive && s->got == c->size)) {
			answered(c, s, n == 0);
			return;
		}
	}
}

static void
on_event(struct client *c, struct slot *s, uint32_t events)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (!s->connected) {
		if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
			return;
		getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (error) {
			fail(c, s, "connect", error);
			return;
		}
		s->connected = true;
		c->connections++;
		ask(c, s);
		return; /* an answer that is here already makes an event of its own */
	}
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		take(c, s);
}

/* Whether all requests came to an end; false: nothing happened for timeout_s seconds. */
static bool
run(struct client *c, int timeout_s)
{
	struct epoll_event events[N_EVENTS];
	unsigned u;
	int i, n;

	for (u = 0; u < c->n_slots; u++)
		start_slot(c, &c->slots[u]);
	while (c->n_open) {
		n = epoll_wait(c->epoll, events, N_EVENTS, timeout_s * 1000);
		if (n < 0 && errno != EINTR)
			peer_die("epoll_wait");
		if (n == 0)
			return false;
		/* A slot has one event a batch, and its descriptor is the one that it tells of. */
		for (i = 0; i < n; i++)
			on_event(c, events[i].data.ptr, events[i].events);
	}
	return true;
}

static void
make_request(struct client *c)
{
	static const char head[] = "GET / HTTP/1.1\r\nHost: peer\r\nX: ";
	size_t n = sizeof(head) - 1;

	if (c->request_size < n + 5)
		c->request_size = n + 5;
	c->request = malloc(c->request_size);
	if (!c->request)
		peer_die("malloc");
	memset(c->request, 'x', c->request_size);
	memcpy(c->request, head, n);
	memcpy(c->request + c->request_size - 4, "\r\n\r\n", 4);
}

static void
report(const struct client *c, double seconds)
{
	printf("{\"name\": \"epoll_client\", \"connections_per_second\": %.1f, "
	       "\"requests_per_second\": %.1f, \"ok\": %" PRIu64 ", \"failed\": %" PRIu64
	       ", \"connections\": %" PRIu64 ", \"seconds\": %.3f, \"concurrency\": %u, "
	       "\"keepalive\": %s, \"size\": %" PRIu64 "}\n",
		(double)c->connections / seconds, (double)c->ok / seconds, c->ok, c->failed,
		c->connections, seconds, c->n_slots, c->keepalive ? "true" : "false", c->size);
	if (c->failed)
		fprintf(stderr, "epoll_client: %" PRIu64 " failed; the first: %s%s%s\n", c->failed,
			c->first_error, c->first_errno ? ": " : "",
			c->first_errno ? strerror(c->first_errno) : "");
}

static uint32_t
address(const char *option, const char *text)
{
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) != 1) {
		fprintf(stderr, "--%s: '%s' is not an IPv4 address\n", option, text);
		exit(2);
	}
	return ntohl(in.s_addr);
}

/* "A" or "A-B" */
static void
bind_range(struct client *c, char *text)
{
	char *dash = strchr(text, '-');
	uint32_t last;

	if (dash)
		*dash = 0;
	c->bind_first = address("bind-range", text);
	last = dash ? address("bind-range", dash + 1) : c->bind_first;
	if (last < c->bind_first || last - c->bind_first > 65535) {
		fprintf(stderr, "--bind-range: ends before it begins, or too long\n");
		exit(2);
	}
	c->n_bind = last - c->bind_first + 1;
}

static const struct option options[] = {
	{"addr", required_argument, NULL, 'a'},
	{"port", required_argument, NULL, 'p'},
	{"size", required_argument, NULL, 's'},
	{"request", required_argument, NULL, 'r'},
	{"concurrency", required_argument, NULL, 'C'},
	{"requests", required_argument, NULL, 'n'},
	{"seconds", required_argument, NULL, 't'},
	{"bind-range", required_argument, NULL, 'b'},
	{"timeout", required_argument, NULL, 'T'},
	{"cpu", required_argument, NULL, 'c'},
	{"keepalive", no_argument, NULL, 'k'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static void __attribute__((noreturn)) usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: epoll_client --addr A [--port N] [--size BYTES] [--request BYTES]\n"
		"                    [--concurrency N] [--requests N | --seconds N] [--keepalive]\n"
		"                    [--bind-range A-B] [--timeout SECONDS] [--cpu N]\n");
	exit(status);
}

int
main(int argc, char **argv)
{
	struct client c = {.size = 100, .request_size = 100, .n_slots = 100, .limit = UINT64_MAX};
	uint64_t begin, seconds = 0;
	int opt, cpu = -1, timeout_s = 10;
	bool done;
	unsigned u;

	c.server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(8080)};
	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case 'a':
			c.server.sin_addr.s_addr = htonl(address("addr", optarg));
			break;
		case 'p':
			c.server.sin_port = htons((uint16_t)peer_number("port", optarg, 1, 65535));
			break;
		case 's':
			c.size = peer_number("size", optarg, 1, 1u << 30);
			break;
		case 'r':
			c.request_size = peer_number("request", optarg, 1, 16384);
			break;
		case 'C':
			c.n_slots = (unsigned)peer_number("concurrency", optarg, 1, 1000000);
			break;
		case 'n':
			c.limit = peer_number("requests", optarg, 1, UINT64_MAX - 1);
			break;
		case 't':
			seconds = peer_number("seconds", optarg, 1, 86400);
			break;
		case 'b':
			bind_range(&c, optarg);
			break;
		case 'T':
			timeout_s = (int)peer_number("timeout", optarg, 1, 3600);
			break;
		case 'c':
			cpu = (int)peer_number("cpu", optarg, 0, CPU_SETSIZE - 1);
			break;
		case 'k':
			c.keepalive = true;
			break;
		default:
			usage(opt == 'h' ? 0 : 2);
		}
	}
	if (optind != argc || !c.server.sin_addr.s_addr || (c.limit == UINT64_MAX && !seconds))
		usage(2);
	peer_pin(cpu);
	if (peer_raise_files() < c.n_slots + 16) {
		errno = 0;
		peer_die("--concurrency is above the limit of open files");
	}
	c.slots = calloc(c.n_slots, sizeof(*c.slots));
	c.epoll = epoll_create1(0);
	if (!c.slots || c.epoll < 0)
		peer_die("set-up");
	for (u = 0; u < c.n_slots; u++)
		c.slots[u].fd = -1;
	make_request(&c);
	begin = peer_now_ns();
	c.end_ns = seconds ? begin + seconds * 1000000000u : 0;
	done = run(&c, timeout_s);
	if (!done) {
		c.first_error = c.failed ? c.first_error : "no progress within --timeout";
		c.failed += c.n_open;
	}
	report(&c, (double)(peer_now_ns() - begin) / 1e9);
	return c.failed ? 1 : 0;
}
