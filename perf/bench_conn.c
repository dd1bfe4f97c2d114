/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_conn.c - connections a second over a device, and requests a second with --keepalive: one
 * core a side, the product's defaults. --pause-ms stops one side's core for so long after the last
 * window and watches how soon the rate is back (within 80 % of the last window's) and how many
 * half-open connections that made.
 */
#include "drive.h"

int
main(int argc, char **argv)
{
	static struct drive d = {.name = "conn",
		.load = {.kind = LOAD_CONN, .slots = 256, .request = 100, .response = 100},
		.runs = 5,
		.warm_ms = 500,
		.window_ms = 1000};

	return drive_main(&d, argc, argv);
}
