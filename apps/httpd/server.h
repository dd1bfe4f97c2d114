/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - an HTTP/1.0 and 1.1 server of static content on the on-core API, a listener on each
 * core. `corq httpd` is a command line around it; `corq ab` embeds it on the loop device.
 *
 * GET, HEAD and OPTIONS; POST and PUT below a prefix, whose bodies are counted and forgotten.
 * Keep-alive, pipelining, ranges, conditional requests, 100-continue. Header bytes are copied,
 * bodies leave from registered memory; long ones and several ranges in pieces (reply.c). A closing
 * response is corked, so that header, body and FIN leave together. request.h says what is refused,
 * plan.h what is answered, site.h what is served.
 *
 * Who closes first (--close): first, the default: FIN with the last byte; after-peer: wait for
 * the client's FIN, an idle time at most; abort-if-empty: as first, but RST to a connection that
 * never sent a request; rst: RST once the response is acknowledged, after an idle time at most.
 * Error answers to requests that may have bytes behind them always send FIN first. After a FIN of
 * ours what the client still sends is read and dropped, until it closes or for 2 s, so that no RST
 * destroys an answer.
 *
 * Deadlines are in deadline.c.
 */
#ifndef CORQ_HTTPD_SERVER_H
#define CORQ_HTTPD_SERVER_H

#include "common/app.h"

#include <corq/instance.h>

struct httpd_log;

#define HTTPD_HEADER_S   10
#define HTTPD_IDLE_S     30
#define HTTPD_SEND_S     60
#define HTTPD_MIN_RATE   1024
#define HTTPD_UPLOAD_MAX (1ull << 30)

struct httpd_opts {
	struct corq_instance *inst;
	uint16_t port;
	enum corq_close_policy close;
	bool fixed; /* one page of `size` bytes for every path */
	uint32_t size;
	const char *dir; /* else this directory */
	bool no_list;    /* without listings */
	/* Uploads: see struct httpd_rules; upload_max 0: the default. */
	const char *upload;
	uint64_t upload_max;
	bool upload_digest; /* SHA-256 */
	/* Seconds; 0: the default. */
	uint32_t header_s, idle_s, send_s;
	uint32_t min_rate; /* bytes a second that a body must come and an answer be taken with */
	uint32_t max_requests; /* a connection; 0: no bound */
	uint32_t max_conns;    /* a core, as the instance has it; 0: 65536 */
	struct httpd_log *log; /* NULL: none */
	uint32_t log_every;    /* each so many-th request goes there */
};

/* Sums over the cores. Each word is exact, the set is not a snapshot. */
struct httpd_counts {
	uint64_t connections;
	/* requests = ok + redirects + client_errors + server_errors; cut_short: of them, those
	 * whose connection ended before all of the response was acknowledged. */
	uint64_t requests, ok, redirects, client_errors, server_errors, cut_short;
	uint64_t partial, not_modified;        /* 206, 304 */
	uint64_t bytes_body, bytes_lost;       /* of 200 and 206: queued; never acknowledged */
	uint64_t uploads, uploads_cut;         /* complete; ended before */
	uint64_t upload_bytes;                 /* of the complete ones */
	uint64_t idle_closed;                  /* no request for the idle time */
	uint64_t header_late, headers_evicted; /* 408: header not complete in time; place needed */
	uint64_t slow_senders, slow_readers;   /* bodies and answers below the minimum rate */
	uint64_t no_memory, no_room;
};

struct httpd_server;

/* Main thread, before corq_run: 0, or a negative errno and a line in err. */
int httpd_server_create(
	const struct httpd_opts *opts, struct httpd_server **out, char *err, size_t err_len);
/* On each core that serves; corq_core_user must point to its struct app_core. */
int httpd_core_start(struct httpd_server *server, struct corq_core *core);
void httpd_server_counts(const struct httpd_server *server, struct httpd_counts *counts);
/* Files that are served, and entries of the directory that are not (site.h). */
uint64_t httpd_server_files(const struct httpd_server *server, uint64_t *skipped);
/* After corq_end. NULL is fine. */
void httpd_server_destroy(struct httpd_server *server);

#endif
