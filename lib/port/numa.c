/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * numa.c - NUMA nodes: how many, where a thread runs, where memory shall lie. By libnuma; on a
 * machine without NUMA there is one node, and placing does nothing. Placing is a preference: it
 * never fails. Any thread.
 */
#include "port/port_dpdk.h"

#include <numa.h>
#include <sched.h>

unsigned
corq_port_nodes(void)
{
	int n = numa_available() < 0 ? 1 : numa_max_node() + 1;

	return n > 0 ? (unsigned)n : 1;
}

unsigned
corq_port_node_here(void)
{
	int cpu = sched_getcpu(), node;

	if (cpu < 0 || numa_available() < 0)
		return 0;
	node = numa_node_of_cpu(cpu);
	return node < 0 ? 0 : (unsigned)node;
}

void
corq_port_place(void *p, size_t bytes, unsigned node)
{
	if (corq_port_nodes() > 1 && node < corq_port_nodes())
		numa_tonode_memory(p, bytes, (int)node);
}
