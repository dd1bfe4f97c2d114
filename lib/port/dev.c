/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev.c - a device's life: made, configured, started, closed; one corq_port for each of its queues.
 *
 * What the driver says wins over the table of kinds; what was asked for and not granted is named in
 * the line of error. Pools are a core's own, on the core's NUMA node, RX and TX apart: received
 * data that an application holds on to can never take the buffers that the ACKs need. (On loop they
 * are one: see loop.c.)
 *
 * Start and stop only, main thread; link.c has what happens in between.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mempool.h>

#include "port/port_int.h"

#define DESC_WANTED 1024

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
	if (kind->bus == NULL)
		return corq_loop_mem_mb(&conf);
	room = kind->room(kind->mtu(spec, &conf));
	/* on 4 KiB pages no object crosses one, and shared ones come from EAL's heap */
	if (spec->zero_copy || kind->shared_mem)
		room = CORQ_MAX(room, 4096u);
	return conf.n_queues * (corq_pool_mem_mb(conf.rx_frames, room) +
				       corq_pool_mem_mb(conf.tx_frames, room) + 1);
}

/* ---- open ---- */

/* The driver's own words, or what comes next to them. */
static int
not_made(struct corq_dev *dev, int rc, char *err, size_t errlen)
{
	char why[EAL_LINE_LEN];

	corq_eal_reason(dev->eal, why, sizeof(why));
	corq_port_err(err, errlen, "%s (%s) cannot be made: %s%s", dev->kind->name, dev->name,
		why[0] != '\0' ? why : "the driver gives no reason, --eal-log may",
		strstr(why, "failed to parse device") != NULL ? ": DPDK has no driver of that name"
		: strstr(why, "cannot attach") != NULL        ? ": are its arguments right?"
							      : "");
	return rc != 0 ? rc : -ENODEV;
}

static int
make_vdev(struct corq_dev *dev, char *err, size_t errlen)
{
	char args[sizeof(dev->spec.args) + 64];
	int rc;

	if (dev->kind->driver == NULL)
		snprintf(dev->name, sizeof(dev->name), "%s", dev->spec.name);
	for (int i = 0; dev->kind->driver != NULL && i < 16; i++) {
		snprintf(dev->name, sizeof(dev->name), "%s%d", dev->kind->driver, i);
		if (rte_eth_dev_get_port_by_name(dev->name, &dev->port_id) != 0)
			break;
	}
	dev->kind->vdev_args(&dev->spec, &dev->conf, args, sizeof(args));
	rc = rte_eal_hotplug_add("vdev", dev->name, args);
	if (rc != 0)
		return not_made(dev, rc, err, errlen);
	dev->made = true;
	if (rte_eth_dev_get_port_by_name(dev->name, &dev->port_id) != 0) {
		rte_eal_hotplug_remove("vdev", dev->name);
		dev->made = false;
		return not_made(dev, -ENODEV, err, errlen);
	}
	return 0;
}

/* EAL has probed it at its start. */
static int
find_pci(struct corq_dev *dev, char *err, size_t errlen)
{
	snprintf(dev->name, sizeof(dev->name), "%s", dev->spec.name);
	if (rte_eth_dev_get_port_by_name(dev->name, &dev->port_id) != 0)
		return not_made(dev, -ENODEV, err, errlen);
	dev->made = true;
	return 0;
}

int
corq_dev_refused(struct corq_dev *dev, const char *what, uint32_t asked, uint32_t granted, int rc,
	char *err, size_t errlen)
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
	const uint64_t tcp = RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP;
	struct rte_eth_conf conf;
	uint16_t n = (uint16_t)dev->conf.n_queues, max;
	int rc = rte_eth_dev_info_get(dev->port_id, info);

	if (rc != 0)
		return corq_dev_refused(dev, "device info", 1, 0, rc, err, errlen);
	max = CORQ_MIN(info->max_rx_queues, info->max_tx_queues);
	if (n > max)
		return corq_dev_refused(dev, "queues", n, max, -ERANGE, err, errlen);
	/* drivers that say nothing have 0 or 65535 there */
	if (dev->kind->shared_mem && info->max_mtu >= 68 && dev->mtu > info->max_mtu)
		return corq_dev_refused(dev, "MTU", dev->mtu, info->max_mtu, -ERANGE, err, errlen);
	memset(&conf, 0, sizeof(conf));
	if (dev->kind->shared_mem)
		conf.rxmode.mtu = dev->mtu;
	else
		dev->tx_offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (dev->kind->rss && n > 1 && (info->flow_type_rss_offloads & tcp)) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & tcp;
	}
	conf.txmode.offloads = dev->tx_offloads;
	rc = rte_eth_dev_configure(dev->port_id, n, n, &conf);
	if (rc != 0)
		return corq_dev_refused(dev, "queues", n, 0, rc, err, errlen);
	return 0;
}

static int
make_pools(struct corq_dev *dev, struct eth_port *ep, uint32_t core, char *err, size_t errlen)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct pool_conf conf = {.name = name,
		.data_room = dev->kind->room(dev->mtu),
		.socket = corq_eal_core_socket(dev->eal, core),
		/* who shares EAL's memory with a peer or a device needs buffers that lie in it */
		.own_memory = dev->kind->one_area ||
			      (!corq_eal_on_huge_pages(dev->eal) && !dev->spec.zero_copy &&
				      !dev->kind->shared_mem)};

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
	int socket = corq_eal_core_socket(dev->eal, i);
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
	ep->port.syscalls = dev->kind->syscalls;
	memcpy(ep->port.mac, dev->own_mac, 6);
	ep->clock = *corq_eal_clock(dev->eal);
	ep->port_id = dev->port_id;
	ep->dev = dev;
	ep->queue = (uint16_t)i;
	ep->max_frame = (uint16_t)(dev->mtu + PORT_L2_MAX);
	ep->limit.per_s = 2;
	ep->count_missed = i == 0;
	ep->yield = corq_eal_shares_cpus(dev->eal);
	rc = make_pools(dev, ep, i, err, errlen);
	if (rc == 0 && (rc = set_caps(dev, ep, socket)) != 0)
		corq_port_err(err, errlen, "too little memory");
	return rc;
}

static int
set_up_queues(struct corq_dev *dev, struct rte_eth_dev_info *info, char *err, size_t errlen)
{
	/* As many as the driver likes, if that is more: AF_XDP fills its ring with 2048 buffers,
	 * and what is lost is counted by it only where a shorter ring is not full before. */
	uint16_t n_rx = CORQ_MAX(DESC_WANTED, info->default_rxportconf.ring_size);
	uint16_t n_tx = DESC_WANTED;
	int rc = rte_eth_dev_adjust_nb_rx_tx_desc(dev->port_id, &n_rx, &n_tx);

	if (rc != 0)
		return corq_dev_refused(dev, "descriptors", DESC_WANTED, n_rx, rc, err, errlen);
	for (uint16_t q = 0; q < dev->conf.n_queues; q++) {
		unsigned int socket = (unsigned int)corq_eal_core_socket(dev->eal, q);

		rc = rte_eth_rx_queue_setup(dev->port_id, q, n_rx, socket, &info->default_rxconf,
			dev->ports[q]->rx_pool);
		if (rc != 0)
			return corq_dev_refused(
				dev, "rx queue", (uint32_t)q + 1, q, rc, err, errlen);
		info->default_txconf.offloads = dev->tx_offloads;
		rc = rte_eth_tx_queue_setup(dev->port_id, q, n_tx, socket, &info->default_txconf);
		if (rc != 0)
			return corq_dev_refused(
				dev, "tx queue", (uint32_t)q + 1, q, rc, err, errlen);
	}
	return 0;
}

/* Ours: the one asked for, or the device's. */
static int
choose_mac(struct corq_dev *dev, char *err, size_t errlen)
{
	struct rte_ether_addr mac;
	int rc;

	if (dev->conf.mac != NULL) {
		memcpy(mac.addr_bytes, dev->own_mac, 6);
		if (dev->kind->rss && rte_eth_dev_default_mac_addr_set(dev->port_id, &mac) != 0)
			rte_eth_promiscuous_enable(dev->port_id);
		return 0;
	}
	rc = rte_eth_macaddr_get(dev->port_id, &mac);
	if (rc != 0)
		return corq_dev_refused(dev, "MAC address", 1, 0, rc, err, errlen);
	if (rte_is_zero_ether_addr(&mac))
		rte_eth_random_addr(mac.addr_bytes);
	if (dev->kind->mac_is_peers)
		mac.addr_bytes[5] ^= 1;
	memcpy(dev->own_mac, mac.addr_bytes, 6);
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
	rc = strcmp(dev->kind->bus, "pci") == 0 ? find_pci(dev, err, errlen)
						: make_vdev(dev, err, errlen);
	if (rc == 0)
		rc = configure(dev, &info, err, errlen);
	if (rc == 0)
		rc = choose_mac(dev, err, errlen);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < dev->conf.n_queues && rc == 0; i++)
		rc = make_port(dev, i, err, errlen);
	return rc != 0 ? rc : set_up_queues(dev, &info, err, errlen);
}

/* A device whose libraries print by themselves does so to nobody. */
static int
open_quietly(struct corq_dev *dev, char *err, size_t errlen)
{
	struct eal_quiet q;
	int rc;

	if (!dev->kind->chatty)
		return open_ethdev(dev, err, errlen);
	corq_eal_quiet(dev->eal, &q);
	rc = open_ethdev(dev, err, errlen);
	corq_eal_loud(&q, NULL, 0);
	return rc;
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
	dev->hold.claim = dev->hold.watch = -1;
	if (dev->kind->enter != NULL)
		rc = dev->kind->enter(spec, conf, &dev->hold, err, errlen);
	if (rc == 0 && dev->kind->bus == NULL)
		rc = corq_loop_create(&dev->loop, eal, &dev->conf, err, errlen);
	else if (rc == 0)
		rc = open_quietly(dev, err, errlen);
	if (rc != 0) {
		corq_dev_close(dev);
		return rc;
	}
	*out = dev;
	return 0;
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

static void
close_driver(struct corq_dev *dev)
{
	struct eal_quiet q = {.sink = -1};

	if (dev->kind->chatty)
		corq_eal_quiet(dev->eal, &q);
	if (dev->started)
		rte_eth_dev_stop(dev->port_id);
	rte_eth_dev_close(dev->port_id);
	if (strcmp(dev->kind->bus, "vdev") == 0)
		rte_eal_hotplug_remove("vdev", dev->name);
	corq_eal_loud(&q, NULL, 0);
}

void
corq_dev_close(struct corq_dev *dev)
{
	if (dev == NULL)
		return;
	corq_loop_destroy(dev->loop);
	if (dev->made)
		close_driver(dev);
	if (dev->kind->leave != NULL)
		dev->kind->leave(&dev->hold);
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
		dev->kind->driver != NULL ? dev->kind->driver
		: dev->name[0] != '\0'    ? dev->name
					  : dev->kind->name,
		dev->mtu, corq_dev_n_ports(dev), corq_dev_n_ports(dev) == 1 ? "" : "s",
		dev->kind->bus != NULL ? ", no offload" : "");
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
