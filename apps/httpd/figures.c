/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * figures.c - what is printed when the server ends, as text and as JSON. Main thread.
 */
#include "httpd/options.h"

#include <string.h>

static const char *
plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void
print_count(FILE *out, const char *before, uint64_t n, const char *what)
{
	fprintf(out, "%s%llu %s%s", before, (unsigned long long)n, what, plural(n));
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

static void
put(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

static json_t *
make_tcp(const struct corq_instance *inst)
{
	json_t *o = json_object();
	struct corq_stats stats;

	corq_stats(inst, &stats);
	put(o, "retransmits", stats.segs_retransmitted);
	put(o, "resets_in", stats.rst_in);
	put(o, "resets_out", stats.rst_out);
	put(o, "rx_missed", stats.rx_missed);
	put(o, "rx_nombuf", stats.rx_nombuf);
	put(o, "rx_csum_partial", app_reason_count(inst, "tcp_csum_partial"));
	put(o, "time_wait_now", stats.time_wait_live);
	put(o, "time_wait_recycled", stats.tw_recycled_syn);
	return o;
}

static json_t *
make_json(const struct corq_instance *inst, const struct httpd_counts *c,
	const struct httpd_log_figures *log)
{
	json_t *o = json_object();

	json_object_set_new(o, "schema", json_string("corq-httpd/1"));
	put(o, "connections", c->connections);
	put(o, "requests", c->requests);
	put(o, "ok", c->ok);
	put(o, "redirects", c->redirects);
	put(o, "client_errors", c->client_errors);
	put(o, "server_errors", c->server_errors);
	put(o, "cut_short", c->cut_short);
	put(o, "bytes_body", c->bytes_body - c->bytes_lost);
	put(o, "partial", c->partial);
	put(o, "not_modified", c->not_modified);
	put(o, "uploads", c->uploads);
	put(o, "upload_bytes", c->upload_bytes);
	put(o, "uploads_cut", c->uploads_cut);
	put(o, "idle_closed", c->idle_closed);
	put(o, "headers_late", c->header_late);
	put(o, "headers_evicted", c->headers_evicted);
	put(o, "slow_senders", c->slow_senders);
	put(o, "slow_readers", c->slow_readers);
	put(o, "log_lines", log->lines);
	put(o, "log_dropped", log->dropped);
	put(o, "no_memory", c->no_memory);
	put(o, "no_room", c->no_room);
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
