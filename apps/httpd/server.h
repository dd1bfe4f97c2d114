/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - an HTTP/1.0 and 1.1 server of static content on the on-core API, a listener on each
 * core. `corq httpd` is a command line around it; `corq ab` embeds it on the loop device.
 *
 * GET and HEAD, keep-alive, pipelining. Header bytes are copied, bodies leave from registered
 * memory. A closing response is corked, so that header, body and FIN leave together; see
 * request.h for what is refused and site.h for what is served.
 *
 * Who closes first (--close): first, the default: FIN with the last byte; after-peer: wait for
 * the client's FIN, 30 s at most; abort-if-empty: as first, but RST to a connection that never
 * sent a request; rst: RST once the response is acknowledged. Error answers to requests that may
 * have bytes behind them always send FIN first and then read on for 2 s, so that no RST destroys
 * the answer.
 *
 * Deadlines: 30 s without a request, 10 s for a header that came in part.
 */
#ifndef CORQ_HTTPD_SERVER_H
#define CORQ_HTTPD_SERVER_H

#include "common/app.h"

#include <corq/instance.h>

struct httpd_opts {
	struct corq_instance *inst;
	uint16_t port;
	enum corq_close_policy close;
	bool fixed; /* one page of `size` bytes for every path */
	uint32_t size;
	const char *dir; /* else this directory */
};

/* Sums over the cores. Each word is exact, the set is not a snapshot. */
struct httpd_counts {
	uint64_t connections;
	/* requests = ok + redirects + client_errors + server_errors; cut_short: of them, those
	 * whose connection ended before all of the response was acknowledged. */
	uint64_t requests, ok, redirects, client_errors, server_errors, cut_short;
	uint64_t bytes_body, bytes_lost; /* of bodies: queued; of them never acknowledged */
	uint64_t idle_closed, header_late, no_memory, no_room;
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
