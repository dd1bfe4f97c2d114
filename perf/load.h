/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load.h - the two programs that the benches run on corq's cores: a closed-loop client, a server.
 *
 * They do a connection's work as perf/peers does it on the kernel: the client opens, sends a
 * request, reads the answer and the end of the stream, closes, and starts anew; the server answers
 * a request that is whole and closes first. With keepalive the client asks again on the same
 * connection; as a stream it writes `bytes` into one connection that the server reads.
 *
 * Public headers only. A client and a server belong to one core each; their functions are called
 * on it. `check` compares every byte received with what must have been sent.
 */
#ifndef CORQ_PERF_LOAD_H
#define CORQ_PERF_LOAD_H

#include <corq/core.h>

#define LOAD_REQUEST_MAX 16384

enum load_kind {
	LOAD_CONN,
	LOAD_KEEPALIVE,
	LOAD_STREAM,
	LOAD_IDLE
};

struct load_opts {
	enum load_kind kind;
	uint32_t slots;             /* connections open at once */
	uint32_t request, response; /* bytes */
	uint32_t open_max;          /* connections opened in one turn; 0: 256 */
	bool check;
	struct corq_addr server;
	uint16_t port;
};

struct load_slot {
	struct load_client *owner;
	struct corq_conn *conn;
	uint64_t got; /* bytes of the present answer */
	struct load_slot *next_free;
};

struct load_client {
	struct load_opts o;
	struct corq_core *core;
	uint64_t limit; /* connections (keepalive: requests; stream: bytes) to do in all, so far */
	uint64_t started, opened, done, failed; /* connections; `done` ended in order */
	uint64_t requests;                      /* answered */
	uint64_t refused; /* connects that found no tuple or no memory: tried again next turn */
	uint64_t wrong;   /* answers of another size or with another byte in them */
	uint64_t bytes;   /* stream: written; else: received */
	int first_error;
	uint32_t live;
	bool hold; /* opens none */
	struct load_slot *slots, *free;
	uint8_t *out, *expect;
};

struct load_server {
	struct load_opts o;
	struct corq_core *core;
	uint64_t accepted, requests, closed, failed, wrong, bytes;
	int first_error;
	uint8_t *out, *expect;
};

/* 0, or a negative errno. Memory is the caller's process's, taken once, here. */
int load_client_init(struct load_client *c, struct corq_core *core, const struct load_opts *o);
int load_server_init(struct load_server *s, struct corq_core *core, const struct load_opts *o);
void load_client_end(struct load_client *c);
void load_server_end(struct load_server *s);

/* More to do: connections, requests or bytes, added to the limit. The hook opens what is wanted. */
void load_client_add(struct load_client *c, uint64_t n);
/* All that was asked for is done, and nothing is open but what keepalive keeps. */
bool load_client_idle(const struct load_client *c);
/* Keepalive, idle, stream: closes all connections in order. */
void load_client_close_all(struct load_client *c);
/* Opens what may be opened; load_client_init makes it the core's hook. */
uint64_t load_client_hook(struct corq_core *core, void *arg, uint64_t now_ns);

#endif
