/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.c - see limits.h.
 */
#include "opensock/limits.h"
#include "common/app.h"
#include "common/cpu.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

/* A TCP socket with its file, inode and directory entry: 3.8 KB of slab on Linux 6; rounded up. */
#define KERNEL_SOCKET_BYTES 4096
/* corq: a slot is 16 bytes; maps, lists and pages in part used are the rest. */
#define HANDLE_BYTES        24
/* A thread: stack, histograms, rings. */
#define THREAD_BYTES        (256u << 10)

static uint64_t
descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return 1024;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r) != 0)
		getrlimit(RLIMIT_NOFILE, &r);
	return r.rlim_cur;
}

static void
bound(struct opensock_side_figures *s, uint64_t most, const char *why)
{
	if (s->count <= most)
		return;
	s->count = most;
	snprintf(s->bound, sizeof(s->bound), "%s", why);
}

int
opensock_limit_kernel(const struct opensock_options *opts, struct opensock_side_figures *kernel)
{
	uint64_t limit = descriptors(), most = opensock_kernel_most(opts, limit);
	uint64_t memory = app_memory_left() / 2 / KERNEL_SOCKET_BYTES;
	char why[128];

	kernel->asked = opts->kernel_count_given ? opts->kernel_count : opts->count;
	kernel->count = kernel->asked;
	snprintf(why, sizeof(why), "RLIMIT_NOFILE is %" PRIu64 " (ulimit -Hn)", limit);
	if (most == 0) {
		app_error("%s: too few for the loop of -t %u; raise it, or use fewer threads", why,
			opts->threads);
		return APP_USAGE;
	}
	if (opts->kernel_count_given && kernel->asked > most) {
		app_error("--kernel-n %" PRIu64 ": %s, of which %" PRIu64
			  " can be open before the loop; raise it, or ask for less",
			kernel->asked, why, most);
		return APP_USAGE;
	}
	bound(kernel, most, why);
	if (memory != 0 && !opts->dup && !opts->kernel_count_given)
		bound(kernel, memory, "half of the free memory; --kernel-fill dup takes less");
	if (opts->order != OPENSOCK_LIFO && kernel->count < opts->threads) {
		app_error("--order %s: the kernel's %" PRIu64 " sockets are too few for -t %u",
			opensock_order_name(opts->order), kernel->count, opts->threads);
		return APP_USAGE;
	}
	return APP_OK;
}

int
opensock_limit_memory(
	const struct opensock_options *opts, const struct opensock_figures *f, uint32_t handles)
{
	uint64_t left = app_memory_left(), want = (uint64_t)opts->threads * THREAD_BYTES;

	if (opts->use[OPENSOCK_CORQ])
		want += (uint64_t)handles * HANDLE_BYTES + opts->count * sizeof(uint64_t);
	if (opts->use[OPENSOCK_KERNEL])
		want += f->side[OPENSOCK_KERNEL].count *
			(sizeof(uint64_t) + (opts->dup ? sizeof(void *) : KERNEL_SOCKET_BYTES));
	if (left == 0 || want <= left)
		return APP_OK;
	app_error("the run wants %" PRIu64 " MiB of memory, %" PRIu64
		  " are left; use a lower -n or -t",
		want >> 20, left >> 20);
	return APP_FAILED;
}

int64_t
opensock_resident(void)
{
	/* statm is cheaper, but wrong by some pages a thread */
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	int64_t kb = -1;

	while (file != NULL && kb < 0 && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "Rss: %" SCNd64, &kb) != 1)
			kb = -1;
	if (file != NULL)
		fclose(file);
	return kb < 0 ? -1 : kb * 1024;
}
