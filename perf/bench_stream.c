/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_stream.c - one flow over a device: Gbit/s, and cycles a KiB on either side. */
#include "drive.h"

int
main(int argc, char **argv)
{
	static struct drive d = {.name = "stream",
		.load = {.kind = LOAD_STREAM, .slots = 1, .request = 100, .response = 100},
		.runs = 5,
		.warm_ms = 500,
		.window_ms = 1000};

	return drive_main(&d, argc, argv);
}
