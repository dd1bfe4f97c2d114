/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sizes.c - see sizes.h.
 *
 * A slot without keep-alive has its open connection and one or two that close, so twice -c
 * connections are made room for. An address has AB_PORTS ports to one destination, so on loop,
 * where addresses cost nothing, we take as many as all those need.
 *
 * Memory is what a connected slot really touches. Measured on loop, both ends, -c 1000000: 1250 MB
 * with -k, 870 MB without (TIME_WAITs of all tuples included), 113 MB of that for -c 10. What is in
 * flight on all connections at once comes on top.
 */
#include "ab/sizes.h"

#include "ab/times.h"
#include "common/cpu.h"

#define BYTES_SLOT   700ull         /* a slot, its connection and what is in flight */
#define BYTES_SERVER 700ull         /* loop: the other end */
#define BYTES_BASE   (120ull << 20) /* DPDK and buffers */

void
ab_sizes_find(
	uint32_t concurrency, uint32_t cores, uint64_t samples, bool loop, struct ab_sizes *out)
{
	uint64_t conns = 2ull * concurrency;
	uint32_t want = 2 * (concurrency / cores + 1);

	for (out->max_conns = 65536; out->max_conns < want;)
		out->max_conns *= 2;
	out->addresses = (uint32_t)((conns + AB_PORTS - 1) / AB_PORTS);
	out->bytes = BYTES_BASE + samples * sizeof(struct ab_sample) +
		     concurrency * (BYTES_SLOT + (loop ? BYTES_SERVER : 0));
	out->range[0] = '\0';
	/* Within 10.0.0.0/17: the server's side of loop is 10.0.128.1. */
	if (loop && out->addresses > 1)
		snprintf(out->range, sizeof(out->range), "10.0.0.1-10.0.%u.%u/16",
			out->addresses / 256, out->addresses % 256);
}

static int
check_memory(const struct ab_options *opts, const struct ab_sizes *sizes)
{
	uint64_t left = app_memory_left(), need = sizes->bytes;
	bool records = opts->gnuplot != NULL;
	const char *lower = opts->exact_times > AB_SAMPLES_MAX ? "--exact-times or -c" : "-c";

	if (records)
		need += opts->requests * sizeof(struct ab_record);
	if (left == 0 || need <= left)
		return APP_OK;
	app_error("-c %u%s about %llu MB of memory, %llu MB are free; lower %s, or free some",
		opts->concurrency, records ? " with -g needs" : " needs",
		(unsigned long long)(need >> 20), (unsigned long long)(left >> 20),
		records ? "-n or -c" : lower);
	return APP_FAILED;
}

int
ab_sizes_apply(struct ab_options *opts, bool loop, struct ab_sizes *sizes)
{
	struct corq_config *config = &opts->device.config;

	ab_sizes_find(opts->concurrency, config->cores == 0 ? 1 : config->cores,
		opts->requests < opts->exact_times ? opts->requests : opts->exact_times, loop,
		sizes);
	if (config->max_conns == 0 && sizes->max_conns > 65536)
		config->max_conns = sizes->max_conns;
	if (config->ip == NULL && sizes->range[0] != '\0')
		config->ip = sizes->range;
	return check_memory(opts, sizes);
}

int
ab_sizes_check(const struct ab_options *opts, uint64_t addresses)
{
	uint64_t tuples = addresses * AB_PORTS;

	if (opts->concurrency <= tuples)
		return APP_OK;
	app_error(
		"-c %u needs %u addresses of ours (%u ports each), --ip has %llu; give it a range, "
		"--ip A-B/LEN",
		opts->concurrency, (opts->concurrency + AB_PORTS - 1) / AB_PORTS, AB_PORTS,
		(unsigned long long)addresses);
	return APP_USAGE;
}
