/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits.c - what the system would refuse to EAL, said before EAL dies of it; and the last resort
 * for what nobody foresaw.
 *
 * EAL calls abort() in some places, also on a thread of its own, with lines of a backtrace. While
 * it starts, a handler for SIGABRT ends the process by one line and status 1 instead. Process-wide
 * by nature, hence the static state. Main thread, but for the handler.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "port/port_int.h"

/* Seen with 22.11 without huge pages: 480 MB of libraries, thread stacks and EAL's own. */
#define AS_BASE_MB 640
#define FD_BASE    64
#define FD_CORE    8 /* two pipes of a thread of EAL's, and a queue's sockets */

/* As much as we may have; the limit then, in units. */
static rlim_t
raise_limit(__rlimit_resource_t which)
{
	struct rlimit lim;

	if (getrlimit(which, &lim) != 0)
		return RLIM_INFINITY;
	if (lim.rlim_cur != lim.rlim_max) {
		lim.rlim_cur = lim.rlim_max;
		if (setrlimit(which, &lim) != 0)
			getrlimit(which, &lim);
	}
	return lim.rlim_cur;
}

/* EAL reserves address space for all huge pages that a machine could have. */
bool
corq_limits_allow_huge(void)
{
	return raise_limit(RLIMIT_AS) == RLIM_INFINITY;
}

int
corq_limits_check(const struct corq_eal_conf *conf, bool huge, char *err, size_t errlen)
{
	uint32_t mem_mb = conf->mem_mb;
	/* a descriptor for each page, unless they are all in one file */
	rlim_t fds =
		FD_BASE + FD_CORE * conf->n_cores + (huge && !conf->single_file ? mem_mb / 2 : 0);
	rlim_t as = mem_mb + AS_BASE_MB;
	rlim_t may = raise_limit(RLIMIT_NOFILE);

	if (may < fds) {
		corq_port_err(err, errlen,
			"too few file descriptors: %lu are needed, this process may have %lu; "
			"ulimit -n %lu",
			(unsigned long)fds, (unsigned long)may, (unsigned long)fds);
		return -EMFILE;
	}
	may = raise_limit(RLIMIT_AS);
	if (may != RLIM_INFINITY && may >> 20 < as) {
		corq_port_err(err, errlen,
			"too little memory: %lu MB of address space are needed, this process may "
			"have %lu; ulimit -v unlimited",
			(unsigned long)as, (unsigned long)(may >> 20));
		return -ENOMEM;
	}
	/* memory is a file in memory; one that grows too large is killed */
	may = raise_limit(RLIMIT_FSIZE);
	if (may != RLIM_INFINITY && may >> 20 < as) {
		corq_port_err(err, errlen,
			"files of %lu MB are needed for memory, this process may write %lu; "
			"ulimit -f unlimited",
			(unsigned long)as, (unsigned long)(may >> 20));
		return -EFBIG;
	}
	raise_limit(RLIMIT_MEMLOCK);
	return 0;
}

/* ---- the last resort ---- */

static struct corq_eal *starting;
static struct sigaction before;
static atomic_bool returned; /* rte_eal_init has: who aborts now is a thread that it left */

static void
on_abort(int sig)
{
	char why[EAL_LINE_LEN], line[EAL_LINE_LEN + 64];
	int n;

	(void)sig;
	while (atomic_load_explicit(&returned, memory_order_acquire))
		pause(); /* the main thread is about to end this process with its own line */
	corq_eal_reason(starting, why, sizeof(why));
	n = snprintf(line, sizeof(line), "corq: DPDK does not start: %s\n", why);
	if (n > 0 && write(corq_eal_real_stderr(starting), line, (size_t)n) != n) {
		/* nobody listens */
	}
	_exit(1);
}

void
corq_limits_abort_begin(struct corq_eal *eal)
{
	struct sigaction act = {.sa_handler = on_abort};

	starting = eal;
	sigaction(SIGABRT, &act, &before);
}

/* After a failure the handler stays: one of EAL's threads may still be on its way to abort. */
void
corq_limits_abort_end(bool failed)
{
	/* A1 <-> the loop in on_abort */
	atomic_store_explicit(&returned, true, memory_order_release);
	if (!failed)
		sigaction(SIGABRT, &before, NULL);
}
