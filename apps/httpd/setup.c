/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setup.c - starting and ending the server, and adding its counters up. See server.h. Main thread,
 * but httpd_core_start.
 */
#include "httpd/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
make_cores(struct httpd_server *server)
{
	server->n_cores = corq_cores(server->opts.inst);
	server->cores = calloc(server->n_cores, sizeof(struct httpd_core *));
	if (server->cores == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < server->n_cores; i++) {
		struct httpd_core *hc = aligned_alloc(64, (sizeof(*hc) + 63) / 64 * 64);

		if (hc == NULL)
			return -ENOMEM;
		memset(hc, 0, sizeof(*hc));
		server->cores[i] = hc;
		hc->server = server;
		httpd_request_settings(&hc->settings);
		httpd_body_settings(&hc->body_settings);
		hc->log_wait = server->opts.log_every;
		if (server->opts.log != NULL)
			hc->log = httpd_log_ring(server->opts.log, i);
		if (httpd_state_create(hc, server->opts.max_conns) != 0)
			return -ENOMEM;
	}
	return 0;
}

static uint64_t
seconds_or(uint32_t seconds, uint32_t normal)
{
	return (seconds != 0 ? seconds : normal) * HTTPD_SECOND_NS;
}

static void
take_opts(struct httpd_server *server, const struct httpd_opts *opts)
{
	server->opts = *opts;
	if (opts->max_conns == 0)
		server->opts.max_conns = 65536;
	server->header_ns = seconds_or(opts->header_s, HTTPD_HEADER_S);
	server->idle_ns = seconds_or(opts->idle_s, HTTPD_IDLE_S);
	server->send_ns = seconds_or(opts->send_s, HTTPD_SEND_S);
	server->rules.upload = opts->upload;
	server->rules.upload_max = opts->upload_max != 0 ? opts->upload_max : HTTPD_UPLOAD_MAX;
	server->rules.upload_digest = opts->upload_digest;
}

int
httpd_server_create(
	const struct httpd_opts *opts, struct httpd_server **out, char *err, size_t err_len)
{
	struct httpd_server *server = calloc(1, sizeof(*server));
	int rc = -ENOMEM;

	if (server != NULL) {
		take_opts(server, opts);
		rc = opts->fixed ? httpd_site_fixed(&server->site, opts->size, err, err_len)
				 : httpd_site_load(
					   &server->site, opts->dir, !opts->no_list, err, err_len);
		if (rc != 0) {
			httpd_server_destroy(server);
			return rc;
		}
		rc = make_cores(server);
	}
	if (rc != 0) {
		snprintf(err, err_len, "not enough memory");
		httpd_server_destroy(server);
		return rc;
	}
	rc = corq_mem_register(opts->inst, server->site.arena, server->site.arena_len, NULL, NULL,
		&server->site.mem);
	if (rc != 0) {
		snprintf(err, err_len, "cannot register %zu bytes of content with the device",
			server->site.arena_len);
		httpd_server_destroy(server);
		return rc;
	}
	*out = server;
	return 0;
}

int
httpd_core_start(struct httpd_server *server, struct corq_core *core)
{
	struct httpd_core *hc = server->cores[corq_core_index(core)];
	struct corq_listen_opts opts = {
		.port = server->opts.port,
		.ops = &httpd_ops,
		.user = (void *)(uintptr_t)WORD_INLINE,
	};
	struct corq_listener *listener;

	hc->core = core;
	app_core_of(core)->httpd = hc;
	return corq_core_listen(core, &opts, &listener);
}

void
httpd_server_counts(const struct httpd_server *server, struct httpd_counts *counts)
{
	uint64_t *to = (uint64_t *)counts;

	memset(counts, 0, sizeof(*counts));
	for (unsigned i = 0; i < server->n_cores; i++) {
		const uint64_t *from = (const uint64_t *)&server->cores[i]->counts;

		for (size_t w = 0; w < sizeof(*counts) / sizeof(*to); w++)
			to[w] += __atomic_load_n(&from[w], __ATOMIC_RELAXED);
	}
}

uint64_t
httpd_server_files(const struct httpd_server *server, uint64_t *skipped)
{
	*skipped = server->site.skipped;
	return server->site.served;
}

void
httpd_server_destroy(struct httpd_server *server)
{
	if (server == NULL)
		return;
	for (unsigned i = 0; server->cores != NULL && i < server->n_cores; i++) {
		struct httpd_core *hc = server->cores[i];

		if (hc != NULL)
			httpd_state_destroy(hc);
		free(hc);
	}
	free(server->cores);
	httpd_site_free(&server->site);
	free(server);
}
