/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev.c - a device's life: made, configured, started, closed; one corq_port for each of its queues.
 *
 * What the driver says wins over the table of kinds; what was asked for and not granted is named in
 * the line of error. Pools are a core's own, on the core's NUMA node, RX and TX apart: received
 * data that an application holds on to can never take the buffers that the ACKs need. (On loop they
 * are one: see loop.c.)
 *
 * Start and stop only, main thread. corq_dev_link: any thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mempool.h>

#include "port/port_int.h"

#define DESC_WANTED 1024
#define POLL_MS     20

struct corq_dev {
	struct corq_eal *eal;
	const struct dev_kind *kind;
	struct corq_dev_spec spec;
	struct corq_dev_conf conf; /* mac and log: see own_mac, may dangle otherwise */
	uint8_t own_mac[6];
	struct corq_loop *loop; /* kind loop, and nothing below then */
	char name[32];
	uint16_t port_id;
	bool made, started;
	uint32_t mtu;
	uint64_t tx_offloads;
	struct eth_port *ports[CORQ_EAL_CORES_MAX];
};

static void
set_defaults(struct corq_dev_conf *conf, const struct dev_kind *kind)
{
	if (conf->rx_frames == 0)
		conf->rx_frames = PORT_FRAMES_DEFAULT;
	if (conf->tx_frames == 0)
		conf->tx_frames = PORT_FRAMES_DEFAULT;
	if (conf->wait_ms == 0)
		conf->wait_ms = kind->wait_ms;
}

uint32_t
corq_dev_mem_mb(const struct corq_dev_spec *spec, const struct corq_dev_conf *asked)
{
	const struct dev_kind *kind = corq_dev_kind_row(spec->kind);
	struct corq_dev_conf conf = *asked;
	uint32_t room;

	set_defaults(&conf, kind);
	if (kind->driver == NULL)
		return corq_loop_mem_mb(&conf);
	room = kind->room(kind->mtu(spec, &conf));
	/* on 4 KiB pages no object crosses one, and with zero-copy they come from EAL's heap */
	if (spec->zero_copy)
		room = CORQ_MAX(room, 4096u);
	return conf.n_queues * (corq_pool_mem_mb(conf.rx_frames, room) +
				       corq_pool_mem_mb(conf.tx_frames, room) + 1);
}

/* ---- open ---- */

static int
make_vdev(struct corq_dev *dev, char *err, size_t errlen)
{
	char args[320], why[EAL_LINE_LEN];
	int rc;

	for (int i = 0; i < 16; i++) {
		snprintf(dev->name, sizeof(dev->name), "%s%d", dev->kind->driver, i);
		if (rte_eth_dev_get_port_by_name(dev->name, &dev->port_id) != 0)
			break;
	}
	dev->kind->vdev_args(&dev->spec, &dev->conf, args, sizeof(args));
	rc = rte_eal_hotplug_add("vdev", dev->name, args);
	if (rc != 0 || rte_eth_dev_get_port_by_name(dev->name, &dev->port_id) != 0) {
		corq_eal_reason(dev->eal, why, sizeof(why));
		corq_port_err(err, errlen, "%s (%s) can not be made%s%s", dev->kind->name,
			dev->kind->driver, why[0] != '\0' ? ": " : ": is DPDK's driver installed?",
			why);
		return rc != 0 ? rc : -ENODEV;
	}
	dev->made = true;
	return 0;
}

static int
refused(struct corq_dev *dev, const char *what, uint32_t asked, uint32_t granted, int rc, char *err,
	size_t errlen)
{
	char why[EAL_LINE_LEN];

	corq_eal_reason(dev->eal, why, sizeof(why));
	corq_port_err(err, errlen, "port %u (%s): %s: %u asked for, %u granted: %s%s%s",
		dev->port_id, dev->name, what, asked, granted, rte_strerror(-rc),
		why[0] != '\0' ? "; " : "", why);
	return rc;
}

static int
configure(struct corq_dev *dev, struct rte_eth_dev_info *info, char *err, size_t errlen)
{
	const uint64_t want = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	struct rte_eth_conf conf;
	uint16_t n = (uint16_t)dev->conf.n_queues, max;
	int rc = rte_eth_dev_info_get(dev->port_id, info);

	if (rc != 0)
		return refused(dev, "device info", 1, 0, rc, err, errlen);
	max = CORQ_MIN(info->max_rx_queues, info->max_tx_queues);
	if (n > max)
		return refused(dev, "queues", n, max, -ERANGE, err, errlen);
	memset(&conf, 0, sizeof(conf));
	dev->tx_offloads = info->tx_offload_capa & want;
	conf.txmode.offloads = dev->tx_offloads;
	rc = rte_eth_dev_configure(dev->port_id, n, n, &conf);
	if (rc != 0)
		return refused(dev, "queues", n, 0, rc, err, errlen);
	return 0;
}

static int
make_pools(struct corq_dev *dev, struct eth_port *ep, uint32_t core, char *err, size_t errlen)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct pool_conf conf = {.name = name,
		.data_room = dev->kind->room(dev->mtu),
		.socket = corq_eal_core_socket(dev->eal, core),
		/* zero-copy shares EAL's memory with the peer, so buffers must lie in it */
		.own_memory = !corq_eal_on_huge_pages(dev->eal) && !dev->spec.zero_copy};

	snprintf(name, sizeof(name), "rx%u.%u", dev->port_id, ep->queue);
	conf.n = dev->conf.rx_frames;
	ep->rx_pool = corq_pool_create(dev->eal, &conf, err, errlen);
	if (ep->rx_pool == NULL)
		return -ENOMEM;
	snprintf(name, sizeof(name), "tx%u.%u", dev->port_id, ep->queue);
	conf.n = dev->conf.tx_frames;
	ep->tx_pool = corq_pool_create(dev->eal, &conf, err, errlen);
	return ep->tx_pool != NULL ? 0 : -ENOMEM;
}

/* Chains and borrowed memory: zero-copy memif loses track of what its peer held when that dies. */
static int
set_caps(struct corq_dev *dev, struct eth_port *ep, int socket)
{
	uint32_t n;

	if (!(dev->tx_offloads & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) || dev->spec.zero_copy)
		return 0;
	n = rte_align32pow2(2 * dev->conf.tx_frames);
	ep->ext.slot = rte_zmalloc_socket("corq_ext", n * sizeof(void *), CORQ_CACHELINE, socket);
	if (ep->ext.slot == NULL)
		return -ENOMEM;
	ep->ext.mask = n - 1;
	ep->port.caps |= CORQ_PORT_CAP_CHAIN;
	return 0;
}

static int
make_port(struct corq_dev *dev, uint32_t i, char *err, size_t errlen)
{
	uint32_t core = dev->conf.first_core + i;
	int socket = corq_eal_core_socket(dev->eal, core);
	struct eth_port *ep = rte_zmalloc_socket("corq_port", sizeof(*ep), CORQ_CACHELINE, socket);
	int rc;

	if (ep == NULL) {
		corq_port_err(err, errlen, "too little memory");
		return -ENOMEM;
	}
	dev->ports[i] = ep;
	ep->port.ops = dev->kind->guard ? &corq_eth_guarded_ops : &corq_eth_ops;
	ep->port.mtu = (uint16_t)dev->mtu;
	ep->port.queue = (uint16_t)i;
	memcpy(ep->port.mac, dev->own_mac, 6);
	ep->clock = *corq_eal_clock(dev->eal);
	ep->port_id = dev->port_id;
	ep->queue = (uint16_t)i;
	ep->max_frame = (uint16_t)(dev->mtu + PORT_L2_MAX);
	ep->count_missed = i == 0;
	ep->yield = corq_eal_shares_cpus(dev->eal);
	rc = make_pools(dev, ep, core, err, errlen);
	if (rc == 0 && (rc = set_caps(dev, ep, socket)) != 0)
		corq_port_err(err, errlen, "too little memory");
	return rc;
}

static int
set_up_queues(struct corq_dev *dev, struct rte_eth_dev_info *info, char *err, size_t errlen)
{
	uint16_t n_rx = DESC_WANTED, n_tx = DESC_WANTED;
	int rc = rte_eth_dev_adjust_nb_rx_tx_desc(dev->port_id, &n_rx, &n_tx);

	if (rc != 0)
		return refused(dev, "descriptors", DESC_WANTED, n_rx, rc, err, errlen);
	for (uint16_t q = 0; q < dev->conf.n_queues; q++) {
		unsigned int socket =
			(unsigned int)corq_eal_core_socket(dev->eal, dev->conf.first_core + q);

		rc = rte_eth_rx_queue_setup(dev->port_id, q, n_rx, socket, &info->default_rxconf,
			dev->ports[q]->rx_pool);
		if (rc != 0)
			return refused(dev, "rx queue", (uint32_t)q + 1, q, rc, err, errlen);
		info->default_txconf.offloads = dev->tx_offloads;
		rc = rte_eth_tx_queue_setup(dev->port_id, q, n_tx, socket, &info->default_txconf);
		if (rc != 0)
			return refused(dev, "tx queue", (uint32_t)q + 1, q, rc, err, errlen);
	}
	return 0;
}

static int
open_ethdev(struct corq_dev *dev, char *err, size_t errlen)
{
	struct rte_eth_dev_info info;
	int rc = dev->kind->guard ? corq_memif_guard_install() : 0;

	if (rc != 0) {
		corq_port_err(err, errlen, "no signal handler for SIGSEGV: %s", strerror(-rc));
		return rc;
	}
	dev->mtu = dev->kind->mtu(&dev->spec, &dev->conf);
	rc = make_vdev(dev, err, errlen);
	if (rc == 0)
		rc = configure(dev, &info, err, errlen);
	if (rc != 0)
		return rc;
	if (dev->conf.mac == NULL) {
		struct rte_ether_addr mac;

		rc = rte_eth_macaddr_get(dev->port_id, &mac);
		if (rc != 0)
			return refused(dev, "MAC address", 1, 0, rc, err, errlen);
		memcpy(dev->own_mac, mac.addr_bytes, 6);
	}
	for (uint32_t i = 0; i < dev->conf.n_queues && rc == 0; i++)
		rc = make_port(dev, i, err, errlen);
	return rc != 0 ? rc : set_up_queues(dev, &info, err, errlen);
}

int
corq_dev_open(struct corq_dev **out, struct corq_eal *eal, const struct corq_dev_spec *spec,
	const struct corq_dev_conf *conf, char *err, size_t errlen)
{
	struct corq_dev_conf quiet = *conf;
	struct corq_dev *dev;
	int rc;

	*out = NULL;
	quiet.log = NULL; /* the caller's own corq_dev_check has warned */
	rc = corq_dev_check(spec, &quiet, err, errlen);
	if (rc != 0)
		return rc;
	dev = calloc(1, sizeof(*dev));
	if (dev == NULL) {
		corq_port_err(err, errlen, "too little memory");
		return -ENOMEM;
	}
	dev->eal = eal;
	dev->kind = corq_dev_kind_row(spec->kind);
	dev->spec = *spec;
	dev->conf = *conf;
	set_defaults(&dev->conf, dev->kind);
	if (conf->mac != NULL) {
		memcpy(dev->own_mac, conf->mac, 6);
		dev->conf.mac = dev->own_mac;
	}
	dev->mtu = dev->kind->mtu(spec, conf);
	if (dev->kind->driver == NULL)
		rc = corq_loop_create(&dev->loop, eal, &dev->conf, err, errlen);
	else
		rc = open_ethdev(dev, err, errlen);
	if (rc != 0) {
		corq_dev_close(dev);
		return rc;
	}
	*out = dev;
	return 0;
}

/* ---- start ---- */

static void
sleep_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

/* AF_PACKET sockets have gathered frames since they were opened, of all interfaces at first. */
static void
drop_stale(struct corq_dev *dev)
{
	struct rte_mbuf *m[32];

	for (uint16_t q = 0; q < dev->conf.n_queues; q++) {
		uint16_t n;

		for (int i = 0; i < 256; i++) {
			n = rte_eth_rx_burst(dev->port_id, q, m, 32);
			rte_pktmbuf_free_bulk(m, n);
			if (n == 0)
				break;
		}
	}
}

int
corq_dev_start(struct corq_dev *dev, char *err, size_t errlen)
{
	uint64_t end = corq_eal_now_ns(dev->eal) + dev->conf.wait_ms * CORQ_NS_PER_MS;
	int rc;

	if (dev->loop != NULL)
		return 0;
	/* a memif client's start fails while its server is not there yet */
	while ((rc = rte_eth_dev_start(dev->port_id)) != 0 && corq_eal_now_ns(dev->eal) < end)
		sleep_ms(POLL_MS);
	if (rc != 0) {
		dev->kind->no_link(&dev->spec, err, errlen);
		return -ETIMEDOUT;
	}
	dev->started = true;
	if (!dev->spec.server) {
		while (!corq_dev_link(dev)) {
			if (corq_eal_now_ns(dev->eal) >= end) {
				dev->kind->no_link(&dev->spec, err, errlen);
				return -ETIMEDOUT;
			}
			sleep_ms(POLL_MS);
		}
	}
	if (!dev->kind->guard)
		drop_stale(dev);
	return 0;
}

int
corq_dev_link(const struct corq_dev *dev)
{
	struct rte_eth_link link;

	if (dev->loop != NULL)
		return 1;
	if (dev->kind->link != NULL)
		return dev->kind->link(&dev->spec);
	if (rte_eth_link_get_nowait(dev->port_id, &link) != 0)
		return 0;
	return link.link_status == RTE_ETH_LINK_UP;
}

/* ---- close ---- */

static void
free_port(struct eth_port *ep)
{
	rte_mempool_free(ep->rx_pool);
	rte_mempool_free(ep->tx_pool);
	rte_free(ep->ext.slot);
	rte_free(ep);
}

void
corq_dev_close(struct corq_dev *dev)
{
	if (dev == NULL)
		return;
	corq_loop_destroy(dev->loop);
	if (dev->started)
		rte_eth_dev_stop(dev->port_id);
	if (dev->made) {
		rte_eth_dev_close(dev->port_id);
		rte_eal_hotplug_remove("vdev", dev->name);
	}
	for (uint32_t i = 0; i < CORQ_EAL_CORES_MAX; i++)
		if (dev->ports[i] != NULL)
			free_port(dev->ports[i]);
	free(dev);
}

/* ---- what it is ---- */

uint32_t
corq_dev_n_ports(const struct corq_dev *dev)
{
	return dev->conf.n_queues + dev->conf.n_peers;
}

struct corq_port *
corq_dev_port(struct corq_dev *dev, uint32_t i)
{
	CORQ_ASSERT(i < corq_dev_n_ports(dev));
	return dev->loop != NULL ? corq_loop_port(dev->loop, i) : &dev->ports[i]->port;
}

const char *
corq_dev_describe(const struct corq_dev *dev, char *buf, size_t len)
{
	snprintf(buf, len, "%s, MTU %u, %u queue%s%s",
		dev->kind->driver != NULL ? dev->kind->driver : dev->kind->name, dev->mtu,
		corq_dev_n_ports(dev), corq_dev_n_ports(dev) == 1 ? "" : "s",
		dev->kind->driver != NULL ? ", no offload" : "");
	return buf;
}

uint32_t
corq_dev_frames_out(const struct corq_dev *dev)
{
	uint32_t n = 0;

	if (dev->loop != NULL)
		return corq_loop_frames_out(dev->loop);
	for (uint32_t i = 0; i < dev->conf.n_queues; i++)
		n += rte_mempool_in_use_count(dev->ports[i]->rx_pool) +
		     rte_mempool_in_use_count(dev->ports[i]->tx_pool);
	return n;
}
