/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * veth.c - the device kind "veth:IF": a kernel interface, one end of a veth pair as a rule,
 * through DPDK's AF_PACKET driver.
 *
 * The kernel spreads flows over the queues by a hash of its own, and hands a whole flow to another
 * queue when a ring is full; the engine's hand-off repairs both. Each tx_burst is a system call
 * that runs the peer's receive path, some 6000 cycles a packet. What the interface itself must be
 * is netif.c's.
 *
 * The driver of 22.11 does not count what the kernel drops when a ring is full. Its sockets do; we
 * find them among this process's descriptors.
 *
 * Start only, main thread; corq_veth_missed by the core of queue 0.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/socket.h>

#include "port/port_int.h"

/* A TPACKET_V2 slot spends up to 66 bytes in front of the frame; its size must divide the block. */
#define SLOT_OVERHEAD 66u
#define SLOT_SMALL    2048u
#define SLOT_JUMBO    16384u

uint32_t
corq_veth_mtu(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf)
{
	uint32_t mtu = conf->mtu != 0 ? conf->mtu : corq_netif_mtu(spec->ifname);

	return CORQ_MIN(mtu, SLOT_JUMBO - SLOT_OVERHEAD - PORT_L2_MAX);
}

static uint32_t
slot_size(uint32_t mtu)
{
	return mtu + PORT_L2_MAX + SLOT_OVERHEAD <= SLOT_SMALL ? SLOT_SMALL : SLOT_JUMBO;
}

/* The driver wants room for a whole slot. */
uint32_t
corq_veth_room(uint32_t mtu)
{
	return slot_size(mtu);
}

void
corq_veth_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len)
{
	uint32_t slot = slot_size(corq_veth_mtu(spec, conf));

	/* 4 MB a ring with small slots, 8 MB with large ones */
	snprintf(buf, len, "iface=%s,qpairs=%u,blocksz=%u,framesz=%u,framecnt=%u,qdisc_bypass=1",
		spec->ifname, conf->n_queues, slot * 8, slot, slot == SLOT_SMALL ? 2048u : 512u);
}

/* ---- what the rings had no room for ---- */

static bool
is_packet_socket(int fd, unsigned int index)
{
	struct sockaddr_ll addr = {.sll_ifindex = 0};
	socklen_t len = sizeof(addr);

	return getsockname(fd, (struct sockaddr *)&addr, &len) == 0 &&
	       addr.sll_family == AF_PACKET && addr.sll_ifindex == (int)index;
}

int
corq_veth_started(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, uint32_t mtu,
	struct dev_hold *hold, char *err, size_t errlen)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	(void)spec, (void)conf, (void)mtu, (void)err, (void)errlen;
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		int fd = atoi(entry->d_name);

		if (hold->n_packet < CORQ_EAL_CORES_MAX && fd > 2 &&
			is_packet_socket(fd, hold->index))
			hold->packet[hold->n_packet++] = fd;
	}
	if (dir != NULL)
		closedir(dir);
	corq_veth_missed(hold); /* of all interfaces, before the driver bound them */
	return 0;
}

uint64_t
corq_veth_missed(struct dev_hold *hold)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < hold->n_packet; i++) {
		struct tpacket_stats stats = {0, 0};
		socklen_t len = sizeof(stats);

		/* the kernel counts from zero again */
		if (getsockopt(hold->packet[i], SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0)
			n += stats.tp_drops;
	}
	return n;
}
