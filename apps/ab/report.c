/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.c - see report.h. Labels, widths and the order of lines are ab's: programs parse them.
 */
#include "ab/report.h"

#include <inttypes.h>
#include <math.h>

static void
print_counts(FILE *out, const struct ab_report *r)
{
	fprintf(out, "Concurrency Level:      %" PRIu64 "\n", r->concurrency);
	fprintf(out, "Time taken for tests:   %.3f seconds\n", r->seconds);
	fprintf(out, "Complete requests:      %" PRIu64 "\n", r->done);
	fprintf(out, "Failed requests:        %" PRIu64 "\n", r->bad);
	if (r->bad != 0)
		fprintf(out,
			"   (Connect: %" PRIu64 ", Receive: %" PRIu64 ", Length: %" PRIu64
			", Exceptions: %" PRIu64 ")\n",
			r->bad_connect, r->bad_receive, r->bad_length, r->bad_except);
	if (r->write_errors != 0)
		fprintf(out, "Write errors:           %" PRIu64 "\n", r->write_errors);
	if (r->not_2xx != 0)
		fprintf(out, "Non-2xx responses:      %" PRIu64 "\n", r->not_2xx);
	if (r->keepalive)
		fprintf(out, "Keep-Alive requests:    %" PRIu64 "\n", r->kept_alive);
	fprintf(out, "Total transferred:      %" PRIu64 " bytes\n", r->bytes_read);
	if (r->send_body)
		fprintf(out, "Total body sent:        %" PRIu64 "\n", r->bytes_posted);
	fprintf(out, "HTML transferred:       %" PRIu64 " bytes\n", r->bytes_body);
}

static void
print_rates(FILE *out, const struct ab_report *r)
{
	double done = (double)r->done, read = (double)r->bytes_read;
	double posted = (double)r->bytes_posted;

	if (r->done == 0 || r->seconds <= 0)
		return;
	fprintf(out, "Requests per second:    %.2f [#/sec] (mean)\n", done / r->seconds);
	fprintf(out, "Time per request:       %.3f [ms] (mean)\n",
		(double)r->concurrency * r->seconds * 1000 / done);
	fprintf(out, "Time per request:       %.3f [ms] (mean, across all concurrent requests)\n",
		r->seconds * 1000 / done);
	fprintf(out, "Transfer rate:          %.2f [Kbytes/sec] received\n",
		read / 1024 / r->seconds);
	if (r->send_body) {
		fprintf(out, "                        %.2f kb/s sent\n",
			posted / 1024 / r->seconds);
		fprintf(out, "                        %.2f kb/s total\n",
			(read + posted) / 1024 / r->seconds);
	}
}

static void
print_row(FILE *out, const char *label, const struct ab_row *row)
{
	fprintf(out, "%-12s%5" PRIu64 " %4" PRIu64 " %5.1f %6" PRIu64 " %7" PRIu64 "\n", label,
		ab_round_ms(row->min_us), ab_round_ms(row->mean_us), row->sd_us / 1000,
		ab_round_ms(row->median_us), ab_round_ms(row->max_us));
}

/* ab compares what it printed: whole milliseconds. */
static void
print_doubt(FILE *out, const char *what, const struct ab_row *row)
{
	double apart =
		fabs((double)ab_round_ms(row->mean_us) - (double)ab_round_ms(row->median_us));
	double sd = row->sd_us / 1000;

	if (apart > 2 * sd)
		fprintf(out,
			"ERROR: The median and mean for %s are more than twice the standard\n"
			"       deviation apart. These results are NOT reliable.\n",
			what);
	else if (apart > sd)
		fprintf(out,
			"WARNING: The median and mean for %s are not within a normal deviation\n"
			"        These results are probably not that reliable.\n",
			what);
}

static void
print_deviations(FILE *out, const struct ab_times *t)
{
	fprintf(out, "              min  mean[+/-sd] median   max\n");
	print_row(out, "Connect:", &t->connect);
	print_row(out, "Processing:", &t->processing);
	print_row(out, "Waiting:", &t->waiting);
	print_row(out, "Total:", &t->total);
	print_doubt(out, "the initial connection time", &t->connect);
	print_doubt(out, "the processing time", &t->processing);
	print_doubt(out, "the waiting time", &t->waiting);
	print_doubt(out, "the total time", &t->total);
}

/* -S: as wide as ab's, where a high maximum runs into the average. */
static void
print_plain_row(FILE *out, const char *label, const struct ab_row *row)
{
	fprintf(out, "%-12s%5" PRIu64 " %5" PRIu64 "%5" PRIu64 "\n", label,
		ab_round_ms(row->min_us), ab_round_ms(row->mean_us), ab_round_ms(row->max_us));
}

static void
print_averages(FILE *out, const struct ab_times *t)
{
	fprintf(out, "              min   avg   max\n");
	print_plain_row(out, "Connect:", &t->connect);
	print_plain_row(out, "Processing:", &t->processing);
	print_plain_row(out, "Waiting:", &t->waiting);
	print_plain_row(out, "Total:", &t->total);
}

static void
print_percentages(FILE *out, const struct ab_times *t)
{
	fprintf(out, "\nPercentage of the requests served within a certain time (ms)\n");
	for (int i = 0; i < AB_PERCENTS; i++) {
		if (ab_percents[i] == 100)
			fprintf(out, " 100%%  %5" PRIu64 " (longest request)\n",
				ab_round_ms(t->served_us[i]));
		else
			fprintf(out, "  %d%%  %5" PRIu64 "\n", ab_percents[i],
				ab_round_ms(t->served_us[i]));
	}
}

static void
print_times(FILE *out, const struct ab_report *r)
{
	fprintf(out, "\nConnection Times (ms)\n");
	if (r->no_deviation)
		print_averages(out, &r->times);
	else
		print_deviations(out, &r->times);
	if (r->done > 1 && !r->no_percentages)
		print_percentages(out, &r->times);
}

void
ab_report_print(FILE *out, const struct ab_report *r)
{
	fprintf(out, "Server Software:        %s\n", r->server);
	fprintf(out, "Server Hostname:        %s\n", r->host);
	fprintf(out, "Server Port:            %u\n\n", r->port);
	fprintf(out, "Document Path:          %s\n", r->path);
	if (r->any_length)
		fprintf(out, "Document Length:        Variable\n\n");
	else
		fprintf(out, "Document Length:        %" PRIu64 " bytes\n\n", r->document_length);
	print_counts(out, r);
	print_rates(out, r);
	if (r->done != 0)
		print_times(out, r);
}
