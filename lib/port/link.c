/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - a device's link: waited for at start, looked at while it runs.
 *
 * The core of queue 0 looks at it five times a second at most. When it is down (a peer that went
 * away, an interface set down or deleted) one line says so, and what the cores send is dropped and
 * counted, as on a wire that is cut: a driver that takes no more frames would keep all cores busy
 * with a backlog. Connections live on as long as their timers let them.
 *
 * A memif client has to connect again: the driver is stopped and started, which no core may use
 * meanwhile. So the state goes to LINK_AWAY, each core that sees it there says once that it is out,
 * and when all have, the core of queue 0 goes on. While there is no server it tries again with each
 * look. A memif server and a vhost take the next peer by themselves, and a peer that leaves them is
 * no news.
 *
 * corq_dev_start on the main thread, corq_dev_link on any, the rest on the cores.
 */
#include <errno.h>
#include <time.h>

#include <rte_ethdev.h>

#include "port/port_int.h"

#define POLL_MS       20
#define CONNECT_POLLS 50 /* so often we look for a connection that was begun at start .. */
#define LOOKS_DOWN    5  /* .. and in mid-run */

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

/* A memif client: it has to connect again where others wait. */
static bool
connects(const struct corq_dev *dev)
{
	return dev->kind->guard && !dev->spec.server;
}

/* The server is not there, or has not noticed yet that the client before us left. */
static void
connect_again(struct corq_dev *dev)
{
	if (dev->started)
		rte_eth_dev_stop(dev->port_id);
	dev->started = rte_eth_dev_start(dev->port_id) == 0;
}

static int
await_link(struct corq_dev *dev, uint64_t end, char *err, size_t errlen)
{
	for (uint32_t polls = 1; !dev->started || !corq_dev_link(dev); polls++) {
		if (corq_eal_now_ns(dev->eal) >= end) {
			dev->kind->no_link(&dev->spec, err, errlen);
			if (!dev->kind->may_wait)
				return -ETIMEDOUT;
			corq_log_write(dev->conf.log, CORQ_LOG_WARN, "%s; going on", err);
			return 0;
		}
		sleep_ms(POLL_MS);
		if (connects(dev) && (!dev->started || polls % CONNECT_POLLS == 0))
			connect_again(dev);
	}
	return 0;
}

int
corq_dev_start(struct corq_dev *dev, char *err, size_t errlen)
{
	uint64_t end = corq_eal_now_ns(dev->eal) + dev->conf.wait_ms * CORQ_NS_PER_MS;
	int rc;

	if (dev->loop != NULL)
		return 0;
	rc = rte_eth_dev_start(dev->port_id);
	dev->started = rc == 0;
	/* a memif client's start fails while its server is not there yet */
	if (rc != 0 && !connects(dev))
		return corq_dev_refused(dev, "start", 1, 0, rc, err, errlen);
	rc = dev->kind->started != NULL
		     ? dev->kind->started(&dev->spec, &dev->conf, dev->mtu, &dev->hold, err, errlen)
		     : 0;
	if (rc == 0 && !dev->spec.server)
		rc = await_link(dev, end, err, errlen);
	if (rc == 0 && !dev->kind->guard)
		drop_stale(dev);
	return rc;
}

/* 1 up, 0 down, -1 gone for good. */
static int
ask_link(const struct corq_dev *dev)
{
	struct rte_eth_link link;

	if (dev->loop != NULL)
		return 1;
	if (atomic_load_explicit(&dev->gone, memory_order_relaxed))
		return -1;
	if (dev->kind->link != NULL)
		return dev->kind->link(&dev->hold);
	if (rte_eth_link_get_nowait(dev->port_id, &link) != 0)
		return 0;
	return link.link_status == RTE_ETH_LINK_UP;
}

int
corq_dev_link(const struct corq_dev *dev)
{
	return ask_link(dev) > 0;
}

/* ---- while it runs ---- */

/* Any core may say that it is up again; all else is up to the core of queue 0. */
static bool
change_state(struct corq_dev *dev, enum link_state from, enum link_state to)
{
	unsigned int now = atomic_load_explicit(&dev->state, memory_order_relaxed);

	if (link_state_of(now) != from)
		return false;
	if (to == LINK_AWAY)
		atomic_store_explicit(&dev->parked, 0, memory_order_relaxed);
	/* R1: whoever sees the new state sees no core counted, and the driver as we left it */
	return atomic_compare_exchange_strong_explicit(&dev->state, &now,
		((now >> 2) + 1) << 2 | (unsigned int)to, memory_order_release,
		memory_order_relaxed);
}

void
corq_link_park(struct eth_port *ep, unsigned int state)
{
	if (ep->parked == state)
		return;
	ep->parked = state;
	/* R2: our last use of the driver is over */
	atomic_fetch_add_explicit(&ep->dev->parked, 1, memory_order_release);
}

/* True when the driver connects again, or did not need to. */
static bool
start_again(struct corq_dev *dev)
{
	/* A2 <-> R2 */
	unsigned int out = atomic_load_explicit(&dev->parked, memory_order_acquire);

	if (out != dev->conf.n_queues)
		return false;
	connect_again(dev);
	return dev->started;
}

static const char *
name_of(const struct corq_dev *dev)
{
	return dev->spec.ifname[0] != '\0'   ? dev->spec.ifname
	       : dev->spec.socket[0] != '\0' ? dev->spec.socket
					     : dev->name;
}

static void
tell(struct eth_port *ep, const char *what)
{
	struct corq_dev *dev = ep->dev;

	if (dev->spec.server)
		return;
	corq_log_limited(dev->conf.log, &ep->limit, corq_clock_now(&ep->clock), CORQ_LOG_WARN,
		"%s:%s %s", dev->kind->name, name_of(dev), what);
}

void
corq_link_back(struct eth_port *ep)
{
	if (corq_dev_link(ep->dev) && change_state(ep->dev, LINK_DOWN, LINK_UP))
		tell(ep, "is back");
}

/* The driver's sockets lose an interface that is deleted or moved away, and do not find it again.
 */
static void
look_if_gone(struct eth_port *ep)
{
	struct corq_dev *dev = ep->dev;

	if (atomic_load_explicit(&dev->gone, memory_order_relaxed) || ask_link(dev) >= 0)
		return;
	atomic_store_explicit(&dev->gone, true, memory_order_relaxed);
	change_state(dev, LINK_UP, LINK_DOWN);
	tell(ep, "is gone: deleted, or in another namespace; what we send is dropped until corq is "
		 "started again");
}

void
corq_link_look(struct eth_port *ep)
{
	struct corq_dev *dev = ep->dev;
	enum link_state state;

	look_if_gone(ep);
	state = link_state_of(atomic_load_explicit(&dev->state, memory_order_relaxed));
	if (state == LINK_AWAY && start_again(dev))
		change_state(dev, LINK_AWAY, LINK_DOWN);
	else if (state == LINK_DOWN && !corq_dev_link(dev) && connects(dev) &&
		 ++dev->looks_down % LOOKS_DOWN == 0)
		change_state(dev, LINK_DOWN, LINK_AWAY); /* the server met it half way only */
	else if (state == LINK_DOWN)
		corq_link_back(ep);
	else if (state == LINK_UP && !corq_dev_link(dev) &&
		 change_state(dev, LINK_UP, connects(dev) ? LINK_AWAY : LINK_DOWN))
		tell(ep, "lost its link; what we send is dropped until it is back");
}
