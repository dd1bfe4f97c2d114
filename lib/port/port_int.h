/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_int.h - what the files of lib/port share: the clock, a port's private part, pools, the
 * table of device kinds. Nobody outside lib/port includes it.
 *
 * A frame lies in the private area of its mbuf, right behind the mbuf's head, and the buffer right
 * behind the frame:
 *
 *	rte_mbuf (128) | corq_frame (64) | headroom (128) | data room
 *
 * so that either is found from the other by adding a constant. pool.c fills in what never changes
 * (buf_start, room) and asserts the layout.
 */
#ifndef CORQ_PORT_INT_H
#define CORQ_PORT_INT_H

#include <stdatomic.h>

#include <rte_mbuf.h>
#include <rte_cycles.h>

#include "port/port_dpdk.h"

_Static_assert(RTE_PKTMBUF_HEADROOM == CORQ_FRAME_HEADROOM, "headroom of corq and of DPDK");
_Static_assert(sizeof(struct rte_mbuf) % CORQ_CACHELINE == 0, "the frame starts a cache line");

#define PORT_FRAMES_DEFAULT 8192
#define PORT_L2_MAX         18  /* Ethernet header and one VLAN tag */
#define PORT_MTU_MIN        576 /* RFC 791: what any IPv4 host takes; IPv6 wants 1280 */

__attribute__((format(printf, 3, 4))) void corq_port_err(
	char *err, size_t len, const char *fmt, ...);

/* ---- clock.c ---------------------------------------------------------------------------- */

/* now = ns0 + (tsc - tsc0) * mult / 2^32. Constant after start; one copy a port. */
struct corq_clock {
	uint64_t tsc0, ns0, mult;
};

struct corq_clock_sample {
	uint64_t tsc, ns;
};

struct corq_clock_sample corq_clock_sample(void);
/* Calibrates against CLOCK_MONOTONIC over the time since `from`, at least 50 ms (it sleeps). */
void corq_clock_init(struct corq_clock *c, struct corq_clock_sample from);

static inline uint64_t
corq_clock_now(const struct corq_clock *c)
{
	return c->ns0 + (uint64_t)(((unsigned __int128)(rte_rdtsc() - c->tsc0) * c->mult) >> 32);
}

/* ---- eal.c, eal_log.c, eal_args.c -------------------------------------------------------- */

#define EAL_ARGS_MAX 96
#define EAL_ARG_LEN  64
#define EAL_LINE_LEN 160

struct corq_eal_args {
	int argc;
	char *argv[EAL_ARGS_MAX + 1];
	char text[24][EAL_ARG_LEN]; /* the arguments that we build */
	uint32_t n_text;
	char lcores[CORQ_EAL_CORES_MAX * 16 + 600];
};

/* cpus[]: allowed CPUs, n_cpus of them. conf->n_cores engine lcores 0.., main lcore behind them. */
int corq_eal_args_build(struct corq_eal_args *a, const struct corq_eal_conf *conf, bool huge,
	const int *cpus, uint32_t n_cpus, char *err, size_t errlen);
bool corq_eal_args_given(const struct corq_eal_conf *conf, const char *const *names);
uint32_t corq_eal_cpu_list(int *cpus, uint32_t max);
uint32_t corq_eal_huge_pages(void);
uint32_t corq_eal_free_huge_mb(void);

/* The rest of lib/port on an EAL: whether threads share CPUs, the clock. */
bool corq_eal_shares_cpus(const struct corq_eal *eal);
const struct corq_clock *corq_eal_clock(const struct corq_eal *eal);
/* The first error that DPDK logged since the last call, "" for none: the reason of a failure. */
const char *corq_eal_reason(struct corq_eal *eal, char *buf, size_t len);

/* While DPDK, or a library below it, may print by itself: stdout and stderr of the process lead to
 * nowhere. The end hands back how the text begins; len 0: not wanted. Main thread. */
struct eal_quiet {
	int sink, out, err; /* descriptors; sink < 0: nothing is diverted */
};
void corq_eal_quiet(struct corq_eal *eal, struct eal_quiet *q);
void corq_eal_loud(struct eal_quiet *q, char *text, size_t len);

int corq_eal_real_stderr(const struct corq_eal *eal); /* while it is diverted, too */

/* ---- limits.c ----------------------------------------------------------------------------- */

bool corq_limits_allow_huge(void);
/* Raises this process's limits as far as it may; -errno and a line if EAL needs more. */
int corq_limits_check(const struct corq_eal_conf *conf, bool huge, char *err, size_t errlen);
void corq_limits_abort_begin(struct corq_eal *eal);
void corq_limits_abort_end(bool failed);

/* ---- pool.c ------------------------------------------------------------------------------ */

static inline struct corq_frame *
frame_of(struct rte_mbuf *m)
{
	return (struct corq_frame *)(void *)(m + 1);
}

static inline struct rte_mbuf *
mbuf_of(struct corq_frame *f)
{
	return (struct rte_mbuf *)(void *)f - 1;
}

struct pool_conf {
	const char *name;
	uint32_t n;
	uint32_t data_room; /* bytes behind the headroom */
	int socket;
	bool many;       /* several cores allocate from it */
	bool own_memory; /* not from EAL's heap, but from transparent huge pages */
};

struct rte_mempool *corq_pool_create(
	struct corq_eal *eal, const struct pool_conf *conf, char *err, size_t errlen);
/* MB for n frames of data_room bytes behind the headroom. */
uint32_t corq_pool_mem_mb(uint32_t n, uint32_t data_room);

/* What a frame is when tx_alloc returns it. */
static inline void
frame_reset_tx(struct corq_frame *f)
{
	f->data = f->buf_start + CORQ_FRAME_HEADROOM;
	f->next = NULL;
	f->pkt_len = 0;
	f->len = 0;
	f->rx_hash = 0;
	f->flags = 0;
	f->vlan_tci = 0;
	f->rx_queue = 0;
	f->tso_segsz = 0;
	f->l2_len = f->l3_len = f->l4_len = 0;
	f->hops = 0;
	f->ext = NULL;
	f->user = 0;
}

/* ---- a port of an ethdev, dev_io.c, dev_buf.c -------------------------------------------- */

/* Ends of borrowed memory, oldest first. Only the core's thread touches it. */
struct ext_ring {
	void **slot;
	uint32_t mask, head, tail;
};

struct eth_port {
	struct corq_port port; /* first: ops get its address */
	struct corq_clock clock;
	uint16_t port_id, queue;
	uint16_t max_frame;  /* bytes of the largest frame of this MTU */
	uint64_t missed;     /* what the driver did not count */
	bool count_missed;   /* this port looks at the device's counters and link now and then */
	bool yield;          /* idle gives the CPU away: cores share it */
	uint64_t look_tsc;   /* when this core looks at the link next */
	unsigned int parked; /* the state (link.c) in which this core said that it is out */
	struct corq_log_limit limit; /* of what this core says about the link */
	struct corq_dev *dev;
	uint32_t ext_out; /* CORQ_FRAME_EXT parts that the device holds */
	struct rte_mempool *rx_pool, *tx_pool;
	struct ext_ring ext;
} CORQ_ALIGNED_LINE;

extern const struct corq_port_ops corq_eth_ops;
/* The same behind corq_memif_guard: a memif peer may vanish in the middle of a burst. */
extern const struct corq_port_ops corq_eth_guarded_ops;

#define IO_BATCH 64 /* mbufs in hand at once */

static inline struct eth_port *
eth_of(struct corq_port *port)
{
	return (struct eth_port *)(void *)port;
}

/* dev_buf.c: operations of a port, and the parts of a frame that borrow memory. */
void corq_eth_free_bulk(struct corq_port *port, struct corq_frame **frames, uint16_t n);
uint16_t corq_eth_tx_alloc(struct corq_port *port, struct corq_frame **frames, uint16_t n);
uint16_t corq_eth_released(struct corq_port *port, void **ext, uint16_t n, int provoke);
uint64_t corq_eth_now_ns(struct corq_port *port);
void corq_eth_idle(struct corq_port *port, uint64_t ns);
void corq_ext_attach(struct eth_port *ep, struct corq_frame *f, struct rte_mbuf *m);
/* The peer vanished in the middle of a burst: what borrowed memory still hangs on it is over. */
void corq_ext_lost(struct corq_frame **frames, uint16_t n);

void corq_port_idle(const struct corq_clock *clock, bool yield, uint64_t ns);

/* ---- memif_guard.c ----------------------------------------------------------------------- */

int corq_memif_guard_install(void);
uint16_t corq_memif_guarded_rx(uint16_t port_id, uint16_t queue, struct rte_mbuf **m, uint16_t n);
/* *fault: the peer vanished meanwhile; which of m[] were sent is unknown, all are gone. */
uint16_t corq_memif_guarded_tx(
	uint16_t port_id, uint16_t queue, struct rte_mbuf **m, uint16_t n, bool *fault);

/* ---- kinds.c, memif.c, veth.c, ..: one row a device kind ---------------------------------- */

/* What a device keeps of this host from open to close, beside the driver. */
struct dev_hold {
	unsigned int index; /* of the interface, 0: none */
	int claim;          /* socket whose name claims our address on an interface, or -1 */
	int watch;          /* xdp: pipe to the process that cleans up after us, or -1 */
	int packet[CORQ_EAL_CORES_MAX]; /* veth: the driver's AF_PACKET sockets */
	uint32_t n_packet;
};

struct dev_kind {
	const char *name;
	const char *syntax;
	const char *text;   /* one line for people */
	const char *bus;    /* "vdev", "pci"; NULL: not an ethdev */
	const char *driver; /* name of the vdev without its number; NULL: spec.name is all */
	uint32_t wait_ms;
	bool guard;        /* polling it needs corq_eth_guarded_ops */
	bool shared_mem;   /* device or peer reads our buffers: they lie in EAL's memory, nothing
			      else may be sent */
	bool one_area;     /* the driver wants a pool in one piece: never in EAL's memory */
	bool chatty;       /* libraries below the driver print by themselves */
	bool rss;          /* the device spreads by RSS when told to */
	bool syscalls;     /* each tx_burst is a system call */
	bool kernel_if;    /* ifname is an interface of the kernel's that others see too */
	bool may_wait;     /* a link that stays down is a warning */
	bool mac_is_peers; /* the driver's hardware address is that of the other end */
	uint64_t caps;     /* capabilities that it takes, bits of CAP_* */
	int (*parse)(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen);
	int (*check)(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
		size_t errlen);
	/* The L3 MTU that this device will have. */
	uint32_t (*mtu)(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf);
	/* Bytes that an rx buffer must offer behind its headroom, for that MTU. */
	uint32_t (*room)(uint32_t mtu);
	void (*vdev_args)(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
		char *buf, size_t len);
	/* Before the driver, and after it is gone; NULL: nothing. */
	int (*enter)(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
		struct dev_hold *hold, char *err, size_t errlen);
	void (*leave)(struct dev_hold *hold);
	/* Once the device runs; NULL: nothing to do. */
	int (*started)(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
		uint32_t mtu, struct dev_hold *hold, char *err, size_t errlen);
	/* Link state where the driver has none: 1 up, 0 down, -1 gone for good; NULL: ask the
	 * driver. */
	int (*link)(const struct dev_hold *hold);
	/* Frames that were lost before the driver saw them, since the last call; NULL: the driver
	 * counts them. */
	uint64_t (*missed)(struct dev_hold *hold);
	/* What to say when the link stays down. */
	void (*no_link)(const struct corq_dev_spec *spec, char *err, size_t errlen);
};

const struct dev_kind *corq_dev_kind_row(enum corq_dev_kind kind);

int corq_memif_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen);
int corq_memif_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen);
uint32_t corq_memif_room(uint32_t mtu);
void corq_memif_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len);
void corq_memif_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen);

uint32_t corq_veth_mtu(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf);
uint32_t corq_veth_room(uint32_t mtu);
int corq_veth_started(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
	uint32_t mtu, struct dev_hold *hold, char *err, size_t errlen);
uint64_t corq_veth_missed(struct dev_hold *hold);
void corq_veth_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len);

int corq_xdp_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen);
uint32_t corq_xdp_mtu(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf);
uint32_t corq_xdp_room(uint32_t mtu);
void corq_xdp_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len);
int corq_xdp_enter(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
	struct dev_hold *hold, char *err, size_t errlen);
void corq_xdp_leave(struct dev_hold *hold);

int corq_tap_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen);
int corq_tap_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen);
void corq_tap_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len);
int corq_tap_started(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
	uint32_t mtu, struct dev_hold *hold, char *err, size_t errlen);
void corq_tap_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen);

/* At its start the driver of 22.11 writes the descriptors of all its queues, two for each, into an
 * array of 8 on its stack. */
#define TAP_QUEUES_MAX 4u

int corq_vdev_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen);
int corq_vdev_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen);
void corq_vdev_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen);
void corq_vdev_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len);
int corq_vdev_started(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
	uint32_t mtu, struct dev_hold *hold, char *err, size_t errlen);
/* Does this driver share its memory with another process (virtio-user, vhost)? */
bool corq_vdev_is_virtio(const struct corq_dev_spec *spec);

int corq_pci_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen);
int corq_pci_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen);
/* Is "ADDRESS[,ARGS]" bound to a kernel driver of the uio kind? */
bool corq_pci_is_uio(const char *device);
void corq_pci_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen);

/* ---- netif.c: interfaces of the kernel ---------------------------------------------------- */

struct ifreq;

/* An ioctl (SIOC*IF*) on an interface, its name is put in; -errno. */
int corq_netif_ioctl(const char *ifname, unsigned long request, struct ifreq *ifr);
/* What no name may have that stands in a driver's arguments, or that the kernel refuses. */
#define CORQ_NAME_BAD " \t\n\v\f\r/:,=[]%"
bool corq_netif_name_ok(const char *name, size_t len);
/* KIND:IF, the kind is spec->kind. */
int corq_netif_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen);
uint32_t corq_netif_mtu(const char *ifname);
/* There, up, large enough for conf->mtu, no loopback; warns about the kernel's own address. */
int corq_netif_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen);
/* Claims conf->ip on spec->ifname among all corqs of this network namespace. */
int corq_netif_enter(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
	struct dev_hold *hold, char *err, size_t errlen);
void corq_netif_leave(struct dev_hold *hold);
int corq_netif_link(const struct dev_hold *hold);
void corq_netif_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen);
/* The id of the XDP program on an interface; 0: none. */
uint32_t corq_netif_xdp_prog(const char *ifname);

/* ---- privileges.c -------------------------------------------------------------------------- */

/* The capabilities of `want` (bits of CAP_*) that this process lacks. */
uint64_t corq_caps_missing(uint64_t want);
/* The line "WHAT needs CAP_..: run as root, or setcap ..". -EPERM. */
int corq_caps_line(const char *what, uint64_t missing, char *err, size_t errlen);

/* ---- dev.c, link.c: one device ------------------------------------------------------------- */

enum link_state {
	LINK_UP,
	LINK_DOWN, /* what is sent is dropped, as on a wire that is cut */
	LINK_AWAY, /* the driver is being stopped and started: no core may call it */
};

struct corq_dev {
	struct corq_eal *eal;
	const struct dev_kind *kind;
	struct corq_dev_spec spec;
	struct corq_dev_conf conf; /* mac and log: see own_mac, may dangle otherwise */
	uint8_t own_mac[6];
	struct corq_loop *loop; /* kind loop, and nothing below then */
	struct dev_hold hold;
	char name[32];
	uint16_t port_id;
	bool made, started;
	/* link.c */
	atomic_uint state;   /* enum link_state, and how often it changed << 2 */
	atomic_bool gone;    /* the interface is another's or nobody's now, for good */
	atomic_uint parked;  /* cores that have left the driver alone in this state */
	uint32_t looks_down; /* of the core of queue 0 */
	uint32_t mtu;
	uint64_t tx_offloads;
	struct eth_port *ports[CORQ_EAL_CORES_MAX];
};

/* The line for what the driver did not grant; returns rc. */
int corq_dev_refused(struct corq_dev *dev, const char *what, uint32_t asked, uint32_t granted,
	int rc, char *err, size_t errlen);
/* A core may not call the driver now: it says so (once), and whoever looks goes on. */
void corq_link_park(struct eth_port *ep, unsigned int state);
/* The core of queue 0, now and then: is the link there? Says so when it changed. */
void corq_link_look(struct eth_port *ep);
/* Any core, when frames come in although the link was down. */
void corq_link_back(struct eth_port *ep);

static inline enum link_state
link_state_of(unsigned int state)
{
	return (enum link_state)(state & 3);
}

/* ---- loop.c ------------------------------------------------------------------------------ */

struct corq_loop;

int corq_loop_create(struct corq_loop **loop, struct corq_eal *eal,
	const struct corq_dev_conf *conf, char *err, size_t errlen);
void corq_loop_destroy(struct corq_loop *loop);
struct corq_port *corq_loop_port(struct corq_loop *loop, uint32_t i);
uint32_t corq_loop_frames_out(const struct corq_loop *loop);
uint32_t corq_loop_mem_mb(const struct corq_dev_conf *conf);

#endif
