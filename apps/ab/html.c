/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * html.c - ab's block as an HTML table (-w), with its labels in its order; -x, -y and -z are put
 * into the tags as given. Pure. Unlike ab's, what comes from elsewhere (server, host, path) is
 * escaped. As ab's, it has no Receive errors and no percentages.
 */
#include "ab/report.h"

#include <inttypes.h>
#include <stdarg.h>

static void
put_escaped(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else
			fputc(*text, out);
	}
}

static void
begin_row(FILE *out, const struct ab_report *r, const char *label)
{
	fprintf(out, "<tr %s><th colspan=2 %s>%s:</th><td colspan=2 %s>", r->row_attrs,
		r->cell_attrs, label, r->cell_attrs);
}

static void
text_row(FILE *out, const struct ab_report *r, const char *label, const char *text)
{
	begin_row(out, r, label);
	put_escaped(out, text);
	fputs("</td></tr>\n", out);
}

static void __attribute__((format(printf, 4, 5)))
row(FILE *out, const struct ab_report *r, const char *label, const char *format, ...)
{
	va_list args;

	begin_row(out, r, label);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputs("</td></tr>\n", out);
}

static void
put_counts(FILE *out, const struct ab_report *r)
{
	row(out, r, "Concurrency Level", "%" PRIu64, r->concurrency);
	row(out, r, "Time taken for tests", "%.3f seconds", r->seconds);
	row(out, r, "Complete requests", "%" PRIu64, r->done);
	row(out, r, "Failed requests", "%" PRIu64, r->bad);
	if (r->bad != 0)
		fprintf(out,
			"<tr %s><td colspan=4 %s >   (Connect: %" PRIu64 ", Length: %" PRIu64
			", Exceptions: %" PRIu64 ")</td></tr>\n",
			r->row_attrs, r->cell_attrs, r->bad_connect, r->bad_length, r->bad_except);
	if (r->not_2xx != 0)
		row(out, r, "Non-2xx responses", "%" PRIu64, r->not_2xx);
	if (r->keepalive)
		row(out, r, "Keep-Alive requests", "%" PRIu64, r->kept_alive);
	row(out, r, "Total transferred", "%" PRIu64 " bytes", r->bytes_read);
	if (r->send_body)
		row(out, r, "Total body sent", "%" PRIu64, r->bytes_posted);
	row(out, r, "HTML transferred", "%" PRIu64 " bytes", r->bytes_body);
}

static void
put_rate(FILE *out, const struct ab_report *r, double bytes, const char *what)
{
	fprintf(out, "<tr %s><td colspan=2 %s>&nbsp;</td><td colspan=2 %s>%.2f kb/s %s</td></tr>\n",
		r->row_attrs, r->cell_attrs, r->cell_attrs, bytes / 1024 / r->seconds, what);
}

static void
put_rates(FILE *out, const struct ab_report *r)
{
	double read = (double)r->bytes_read, posted = (double)r->bytes_posted;

	if (r->seconds <= 0)
		return;
	row(out, r, "Requests per second", "%.2f", (double)r->done / r->seconds);
	row(out, r, "Transfer rate", "%.2f kb/s received", read / 1024 / r->seconds);
	if (r->send_body) {
		put_rate(out, r, posted, "sent");
		put_rate(out, r, read + posted, "total");
	}
}

static void
put_times_row(FILE *out, const struct ab_report *r, const char *label, const struct ab_row *times)
{
	const char *cell = r->cell_attrs;

	fprintf(out,
		"<tr %s><th %s>%s:</th><td %s>%5" PRIu64 "</td><td %s>%5" PRIu64
		"</td><td %s>%5" PRIu64 "</td></tr>\n",
		r->row_attrs, cell, label, cell, ab_round_ms(times->min_us), cell,
		ab_round_ms(times->mean_us), cell, ab_round_ms(times->max_us));
}

static void
put_times(FILE *out, const struct ab_report *r)
{
	const char *cell = r->cell_attrs;

	fprintf(out, "<tr %s><th %s colspan=4>Connection Times (ms)</th></tr>\n", r->row_attrs,
		cell);
	fprintf(out,
		"<tr %s><th %s>&nbsp;</th> <th %s>min</th>   <th %s>avg</th>   <th "
		"%s>max</th></tr>\n",
		r->row_attrs, cell, cell, cell, cell);
	put_times_row(out, r, "Connect", &r->times.connect);
	put_times_row(out, r, "Processing", &r->times.processing);
	put_times_row(out, r, "Total", &r->times.total);
}

void
ab_html_print(FILE *out, const struct ab_report *r)
{
	fprintf(out, "<table %s>\n", r->table_attrs);
	text_row(out, r, "Server Software", r->server);
	text_row(out, r, "Server Hostname", r->host);
	row(out, r, "Server Port", "%u", r->port);
	text_row(out, r, "Document Path", r->path);
	if (r->any_length)
		row(out, r, "Document Length", "Variable");
	else
		row(out, r, "Document Length", "%" PRIu64 " bytes", r->document_length);
	put_counts(out, r);
	put_rates(out, r);
	put_times(out, r);
	fputs("</table>\n", out);
}
