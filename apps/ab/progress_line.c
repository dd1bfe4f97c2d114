/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress_line.c - the text of the progress bar. Pure.
 *
 *   [=======>            ]  37 %   251403/s  p99  1.234 ms  0 failed  ETA    0:12
 *
 * Fields have a fixed width (one that outgrows its own widens the text by as much), so that the
 * bar does not jump; an ETA with hours and the count of failures are the rare exceptions.
 * The share is that of -n or of -t, whichever is nearer to its end. A narrow terminal loses the bar
 * first, then the end of the text.
 */
#include "ab/progress.h"

#include <stdio.h>
#include <string.h>

#define BAR_MAX 30

static double
share_of(const struct ab_progress_view *v)
{
	double share = v->requests != 0 ? (double)v->done / (double)v->requests : 0;

	if (v->limit_s > 0 && v->seconds / v->limit_s > share)
		share = v->seconds / v->limit_s;
	return share > 1 ? 1 : share;
}

static void
say_eta(const struct ab_progress_view *v, double share, char *out, size_t len)
{
	/* Time that is left is known for -t; for -n it follows from what was done. */
	double left = share > 0 ? v->seconds * (1 - share) / share : -1;
	unsigned long s = left >= 0 ? (unsigned long)(left + 0.5) : 0;

	if (left < 0 || left > 1e7)
		snprintf(out, len, "ETA %7s", "?");
	else if (s >= 3600)
		snprintf(out, len, "ETA %lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(out, len, "ETA %4lu:%02lu", s / 60, s % 60);
}

static void
say_p99(uint64_t ns, char *out, size_t len)
{
	if (ns == 0)
		snprintf(out, len, "p99 %9s", "?");
	else if (ns < 10000000000ull)
		snprintf(out, len, "p99 %6.*f ms", ns < 100000000 ? 3 : 0, (double)ns / 1e6);
	else
		snprintf(out, len, "p99 %7.1f s", (double)ns / 1e9);
}

void
ab_progress_line(const struct ab_progress_view *v, unsigned columns, char *out, size_t len)
{
	char text[160], p99[32], eta[48], bar[BAR_MAX + 1];
	double share = share_of(v);
	unsigned width, filled;

	say_p99(v->p99_ns, p99, sizeof(p99));
	say_eta(v, share, eta, sizeof(eta));
	snprintf(text, sizeof(text), "%3u %%  %7.0f/s  %s  %llu failed  %s",
		(unsigned)(share * 100), v->rate, p99, (unsigned long long)v->failed, eta);
	width = strlen(text) + 5 < columns ? columns - (unsigned)strlen(text) - 4 : 0;
	width = width > BAR_MAX ? BAR_MAX : width;
	if (width < 5) {
		snprintf(out, len < columns + 1 ? len : columns + 1, "%s", text);
		return;
	}
	filled = (unsigned)(share * width);
	memset(bar, ' ', width);
	memset(bar, '=', filled);
	if (filled < width)
		bar[filled] = '>';
	bar[width] = '\0';
	snprintf(out, len, "[%s] %s", bar, text);
}
