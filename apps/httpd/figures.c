/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures.c - what is printed when the server ends, as text and as JSON. Main thread.
 */
#include "httpd/options.h"

#include <string.h>

const char *
httpd_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void
print_count(FILE *out, const char *before, uint64_t n, const char *what)
{
	fprintf(out, "%s%llu %s%s", before, (unsigned long long)n, what, httpd_plural(n));
}

/* A line of its own, if there is something to say. */
static void
print_key(FILE *out, const char *key, uint64_t n)
{
	if (n != 0)
		fprintf(out, "%s: %llu\n", key, (unsigned long long)n);
}

static void
print_text(FILE *out, const struct corq_instance *inst, const struct httpd_counts *c,
	const struct httpd_log_figures *log)
{
	print_count(out, "corq httpd: ", c->connections, "connection");
	print_count(out, ", ", c->requests, "request");
	fprintf(out, " (%llu ok", (unsigned long long)c->ok);
	print_count(out, ", ", c->redirects, "redirect");
	print_count(out, ", ", c->client_errors, "client error");
	print_count(out, ", ", c->server_errors, "server error");
	fprintf(out, "; %llu of them cut short)", (unsigned long long)c->cut_short);
	print_count(out, ", ", c->bytes_body - c->bytes_lost, "body byte");
	fputs(" acknowledged\n", out);
	print_key(out, "partial", c->partial);
	print_key(out, "not_modified", c->not_modified);
	print_key(out, "uploads", c->uploads);
	print_key(out, "upload_bytes", c->upload_bytes);
	print_key(out, "uploads_cut", c->uploads_cut);
	print_key(out, "idle_closed", c->idle_closed);
	print_key(out, "headers_late", c->header_late);
	print_key(out, "headers_evicted", c->headers_evicted);
	print_key(out, "slow_senders", c->slow_senders);
	print_key(out, "slow_readers", c->slow_readers);
	print_key(out, "log_lines", log->lines);
	print_key(out, "log_dropped", log->dropped);
	print_key(out, "rx_csum_partial", app_reason_count(inst, "tcp_csum_partial"));
	if (c->no_memory + c->no_room != 0)
		app_error("%llu answers found no send memory, %llu no room for a connection's "
			  "state; those connections were reset",
			(unsigned long long)c->no_memory, (unsigned long long)c->no_room);
	fflush(out);
}

static json_t *
make_tcp(const struct corq_instance *inst)
{
	json_t *o = json_object();
	struct corq_stats stats;

	corq_stats(inst, &stats);
	app_json_put(o, "retransmits", stats.segs_retransmitted);
	app_json_put(o, "resets_in", stats.rst_in);
	app_json_put(o, "resets_out", stats.rst_out);
	app_json_put(o, "rx_missed", stats.rx_missed);
	app_json_put(o, "rx_nombuf", stats.rx_nombuf);
	app_json_put(o, "rx_csum_partial", app_reason_count(inst, "tcp_csum_partial"));
	app_json_put(o, "time_wait_now", stats.time_wait_live);
	app_json_put(o, "time_wait_recycled", stats.tw_recycled_syn);
	return o;
}

static json_t *
make_json(const struct corq_instance *inst, const struct httpd_counts *c,
	const struct httpd_log_figures *log)
{
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_string("corq-httpd/1"));
	app_json_put(o, "connections", c->connections);
	app_json_put(o, "requests", c->requests);
	app_json_put(o, "ok", c->ok);
	app_json_put(o, "redirects", c->redirects);
	app_json_put(o, "client_errors", c->client_errors);
	app_json_put(o, "server_errors", c->server_errors);
	app_json_put(o, "cut_short", c->cut_short);
	app_json_put(o, "bytes_body", c->bytes_body - c->bytes_lost);
	app_json_put(o, "partial", c->partial);
	app_json_put(o, "not_modified", c->not_modified);
	app_json_put(o, "uploads", c->uploads);
	app_json_put(o, "upload_bytes", c->upload_bytes);
	app_json_put(o, "uploads_cut", c->uploads_cut);
	app_json_put(o, "idle_closed", c->idle_closed);
	app_json_put(o, "headers_late", c->header_late);
	app_json_put(o, "headers_evicted", c->headers_evicted);
	app_json_put(o, "slow_senders", c->slow_senders);
	app_json_put(o, "slow_readers", c->slow_readers);
	app_json_put(o, "log_lines", log->lines);
	app_json_put(o, "log_dropped", log->dropped);
	app_json_put(o, "no_memory", c->no_memory);
	app_json_put(o, "no_room", c->no_room);
	json_object_set_new(o, "tcp", make_tcp(inst));
	return o;
}

int
httpd_figures_report(struct app_json *json, const struct corq_instance *inst,
	const struct httpd_counts *counts, const struct httpd_log_figures *log)
{
	int rc = APP_OK;

	print_text(app_json_text(json), inst, counts, log);
	if (log->error != 0) {
		app_error(
			"--access-log: cannot write: %s; lines are missing", strerror(log->error));
		rc = APP_FAILED;
	}
	if (json->out != NULL && app_json_write(json, make_json(inst, counts, log)) != APP_OK)
		rc = APP_FAILED;
	return rc;
}
