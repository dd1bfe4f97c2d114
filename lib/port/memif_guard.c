/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memif_guard.c - lets a core outlive the death of its memif peer.
 *
 * When the peer goes away, DPDK's interrupt thread unmaps the shared rings at once, although a core
 * may be in the middle of a burst on them: net_memif of 22.11 has no lock between the two, and none
 * can be put there from outside. A core that polls is in a burst nearly always, and on a machine
 * where that thread preempts it the process dies by SIGSEGV more often than not.
 *
 * So a burst on a memif queue runs between sigsetjmp and a mark in thread-local memory. A SIGSEGV
 * or SIGBUS of a thread that bears the mark jumps out of the burst; any other goes to the handler
 * that stood there before. The driver holds no lock in a burst, and returns 0 from all later ones
 * (until a new peer connects, when it starts afresh). What the broken burst had in hand is lost: up
 * to 64 buffers each time a peer dies. A fault with the link still up is no lost peer, but a bug:
 * then we abort.
 *
 * Process-wide by nature (a signal handler), hence the static state. Installed by the first memif
 * device, on the main thread; never removed. Costs some 20 cycles a burst.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "port/port_int.h"

static _Thread_local sigjmp_buf *volatile in_burst;
static struct sigaction old_segv, old_bus;
static bool installed;

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	sigjmp_buf *to = in_burst;
	const struct sigaction *old = sig == SIGSEGV ? &old_segv : &old_bus;

	if (to != NULL) {
		in_burst = NULL;
		siglongjmp(*to, 1);
	}
	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(sig, info, context);
		return;
	}
	/* the default: put it back, and the instruction faults again */
	sigaction(sig, old, NULL);
}

int
corq_memif_guard_install(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

	if (installed)
		return 0;
	sigemptyset(&act.sa_mask);
	if (sigaction(SIGSEGV, &act, &old_segv) != 0 || sigaction(SIGBUS, &act, &old_bus) != 0)
		return -errno;
	installed = true;
	return 0;
}

/* The link goes down before anything is unmapped. */
static void
check_peer_lost(uint16_t port_id)
{
	static const char line[] = "corq: fault in net_memif with its link up\n";
	struct rte_eth_link link;

	if (rte_eth_link_get_nowait(port_id, &link) != 0 || link.link_status == RTE_ETH_LINK_DOWN)
		return;
	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0) {
		/* nothing left to tell it to */
	}
	abort();
}

uint16_t
corq_memif_guarded_rx(uint16_t port_id, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	sigjmp_buf back;
	uint16_t got;

	if (CORQ_UNLIKELY(sigsetjmp(back, 0) != 0)) {
		check_peer_lost(port_id);
		return 0;
	}
	in_burst = &back;
	got = rte_eth_rx_burst(port_id, queue, m, n);
	in_burst = NULL;
	return got;
}

uint16_t
corq_memif_guarded_tx(
	uint16_t port_id, uint16_t queue, struct rte_mbuf **m, uint16_t n, bool *fault)
{
	sigjmp_buf back;
	uint16_t sent;

	if (CORQ_UNLIKELY(sigsetjmp(back, 0) != 0)) {
		check_peer_lost(port_id);
		*fault = true;
		return n;
	}
	in_burst = &back;
	sent = rte_eth_tx_burst(port_id, queue, m, n);
	in_burst = NULL;
	return sent;
}
