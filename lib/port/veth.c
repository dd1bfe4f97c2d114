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
 * Start only, main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "port/port_int.h"

/* A TPACKET_V2 slot spends up to 66 bytes in front of the frame; its size must divide the block. */
#define SLOT_OVERHEAD 66u
#define SLOT_SMALL    2048u
#define SLOT_JUMBO    16384u

int
corq_veth_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	size_t len = strlen(rest);

	if (!corq_netif_name_ok(rest, len)) {
		corq_port_err(err, errlen, "veth wants veth:IF, with the name of an interface");
		return -EINVAL;
	}
	memcpy(spec->ifname, rest, len + 1);
	return 0;
}

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
