/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * setup.c - starting and ending the server, and adding its counters up. See server.h. Main thread,
 * but httpd_core_start.
 */
#include "httpd/core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int
make_partials(struct httpd_core *hc)
{
	size_t len = HTTPD_PARTIALS * sizeof(struct httpd_partial);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	hc->partials = p;
	for (int i = HTTPD_PARTIALS - 1; i >= 0; i--) {
		hc->partials[i].next_free = hc->free_partial;
		hc->free_partial = &hc->partials[i];
	}
	return 0;
}

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
		if (make_partials(hc) != 0)
			return -ENOMEM;
	}
	return 0;
}

int
httpd_server_create(
	const struct httpd_opts *opts, struct httpd_server **out, char *err, size_t err_len)
{
	struct httpd_server *server = calloc(1, sizeof(*server));
	int rc = -ENOMEM;

	if (server != NULL) {
		server->opts = *opts;
		rc = opts->fixed ? httpd_site_fixed(&server->site, opts->size, err, err_len)
				 : httpd_site_load(&server->site, opts->dir, err, err_len);
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
	rc = httpd_site_register(&server->site, opts->inst);
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

	hc->core = core;
	app_core_of(core)->httpd = hc;
	return corq_core_listen(core, &opts, &hc->listener);
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
	uint64_t n = 0;

	*skipped = server->site.skipped;

	for (size_t i = 0; i < server->site.count; i++)
		n += !server->site.files[i].directory;
	return n;
}

void
httpd_server_destroy(struct httpd_server *server)
{
	if (server == NULL)
		return;
	for (unsigned i = 0; server->cores != NULL && i < server->n_cores; i++) {
		struct httpd_core *hc = server->cores[i];

		if (hc != NULL && hc->partials != NULL)
			munmap(hc->partials, HTTPD_PARTIALS * sizeof(*hc->partials));
		free(hc);
	}
	free(server->cores);
	httpd_site_free(&server->site);
	free(server);
}
