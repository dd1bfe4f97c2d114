/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port_dpdk.h - what the rest of corq may ask of lib/port; read this first.
 *
 * lib/port is the only folder that includes rte_*.h and the only one that knows a driver. This
 * header names no DPDK type, so that ctl and the programs can include it. Order of use, all on one
 * thread (the caller's, called "main" here):
 *
 *	corq_dev_parse      device string -> spec; no side effect
 *	corq_dev_check      what can be said before EAL runs: interface there and up, socket free
 *	corq_eal_check_cores
 *	corq_eal_init       once a process: memory, engine threads (parked), clock, quiet logs
 *	corq_dev_open       device, pools, one struct corq_port for each core
 *	corq_dev_start      link up within a bounded time
 *	corq_eal_launch     fn(arg) on an engine core; corq_eal_join waits asleep
 *	corq_dev_close, corq_eal_cleanup
 *
 * Errors: 0 or -errno, and one line without newline in err[], which names what failed and the fix.
 * Warnings are one line each, once: corq_eal_check_cores hands its own back, corq_dev_check and
 * corq_eal_init (too few huge pages) write theirs to conf.log.
 *
 * A corq_port belongs to the core whose index corq_dev_port was asked for; only that core's thread
 * calls its ops (core/port.h).
 */
#ifndef CORQ_PORT_DPDK_H
#define CORQ_PORT_DPDK_H

#include "base/log.h"
#include "core/port.h"

#define CORQ_EAL_CORES_MAX 64  /* engine cores of one process */
#define CORQ_PORT_ERR_LEN  256 /* an err[] of this size is never cut */

/* ---- EAL: memory, threads, clock -------------------------------------------------------- */

enum corq_eal_huge {
	CORQ_HUGE_AUTO, /* huge pages when enough are free, else 4 KiB pages and a warning */
	CORQ_HUGE_OFF,
	CORQ_HUGE_NEED, /* too few free ones are an error */
};

struct corq_eal_conf {
	const char *name; /* instance name, part of EAL's file prefix; NULL: "corq" */
	uint32_t n_cores; /* engine cores */
	bool share_cpus;  /* more cores than CPUs is a warning, not an error */
	enum corq_eal_huge huge;
	uint32_t mem_mb;   /* sum of corq_dev_mem_mb of the devices to be opened */
	bool single_file;  /* memif zero-copy and vhost want --single-file-segments */
	bool verbose;      /* DPDK's own lines on stderr */
	const char *pci;   /* "ADDRESS[,ARGS]" to probe; NULL: no PCI bus at all */
	char *const *argv; /* the user's EAL arguments (after "--"), taken last */
	int argc;
	const struct corq_log *log; /* warnings; NULL: silent */
};

struct corq_eal;

/* CPUs this process may run on. */
uint32_t corq_eal_cpus(void);

/*
 * May n engine cores run here? 0: yes. 1: yes, but cores share CPUs, err[] holds the warning.
 * -ERANGE: no, err[] says why ("too few cores: ...").
 */
int corq_eal_check_cores(uint32_t n, bool share_cpus, char *err, size_t errlen);

/* Starts EAL. Once a process, also after a failure: EAL can not be started again. The calling
 * thread becomes EAL's main thread and may float over all CPUs. */
int corq_eal_init(
	struct corq_eal **eal, const struct corq_eal_conf *conf, char *err, size_t errlen);

/* For a program that runs EAL itself and drives cores by corq_core_turn: lcores[i] is the lcore
 * that will be engine core i. corq_eal_launch works on worker lcores only. */
int corq_eal_adopt(
	struct corq_eal **eal, const uint32_t *lcores, uint32_t n, char *err, size_t errlen);

/* After all cores are joined and all devices closed. */
void corq_eal_cleanup(struct corq_eal *eal);

/* Runs fn(arg) on engine core `core`, with signals for people (INT, TERM, HUP, USR1, USR2)
 * blocked there. -EBUSY while it still runs something. */
int corq_eal_launch(struct corq_eal *eal, uint32_t core, int (*fn)(void *arg), void *arg);
/* Waits, asleep, for what corq_eal_launch started; returns what fn returned. */
int corq_eal_join(struct corq_eal *eal, uint32_t core);

bool corq_eal_on_huge_pages(const struct corq_eal *eal);
int corq_eal_core_socket(const struct corq_eal *eal, uint32_t core);
/* The same clock as every port's now_ns: nanoseconds, monotonic, any thread. */
uint64_t corq_eal_now_ns(const struct corq_eal *eal);

/*
 * Memory for the state of cores. Zero, aligned to 2 MiB, lazily backed: reserving many GB costs
 * nothing until touched, and transparent huge pages are asked for. Not DMA memory. socket < 0: any
 * NUMA node. Before start only. NULL when the kernel refuses.
 */
void *corq_port_alloc(size_t bytes, int socket);
void corq_port_free(void *p, size_t bytes);
/* The same with 4 KiB pages, for sparse memory. */
void *corq_port_alloc_sparse(size_t bytes, int socket);

/* numa.c */
unsigned corq_port_nodes(void);
unsigned corq_port_node_here(void);
void corq_port_place(void *p, size_t bytes, unsigned node);

/* ---- devices ---------------------------------------------------------------------------- */

enum corq_dev_kind {
	CORQ_DEV_LOOP,  /* "loop": cores of this process joined in memory */
	CORQ_DEV_MEMIF, /* "memif:ROLE,SOCKET[,id=N][,zc=1]": shared memory to another process */
	CORQ_DEV_VETH,  /* "veth:IF": a kernel interface through AF_PACKET */
	CORQ_DEV_XDP,   /* "xdp:IF": a kernel interface through AF_XDP */
	CORQ_DEV_TAP,   /* "tap:NAME[,HOST[/LEN]]": a new interface of this host */
	CORQ_DEV_VDEV,  /* "vdev:NAME[,ARGS]": any of DPDK's virtual devices */
	CORQ_DEV_PCI,   /* "pci:ADDRESS[,ARGS]": a NIC */
	CORQ_DEV_KINDS
};

struct corq_dev_spec {
	enum corq_dev_kind kind;
	bool server;    /* memif: we listen */
	bool zero_copy; /* memif client: zc=1; needs corq_eal_conf.single_file */
	int id;         /* memif: id=N; -1: queues - 1, so that unequal core counts never connect */
	char ifname[16];  /* veth, xdp, tap */
	char socket[108]; /* memif: path, or @name for an abstract one */
	char host[24];    /* tap: the address of the host's end; "": the lowest that is free */
	char name[32];    /* vdev: name; pci: address */
	char args[288];   /* vdev, pci: the driver's arguments, "" for none */
};

struct corq_dev_conf {
	uint32_t n_queues;  /* one core each. loop: side A (clients) */
	uint32_t n_peers;   /* loop: cores of side B (servers); 0: side A receives what it sends,
			       so that one core runs both ends */
	uint32_t mtu;       /* largest L3 packet; 0: the device's, 1500 on loop and memif */
	uint32_t rx_frames; /* buffers a core: 0 = 8192 */
	uint32_t tx_frames; /* buffers a core: 0 = 8192 */
	const uint8_t *mac; /* 6 bytes; NULL: the device's own */
	const char *ip;     /* "A[-B]/LEN", ours: claimed on an interface of the kernel's, and
			       what the host's end of a tap must fit; NULL: neither */
	uint32_t wait_ms;   /* corq_dev_start waits so long for the link. 0: the kind's own time
			       (kinds.c); a memif server does not wait */
	const struct corq_log *log; /* warnings; NULL: silent */
};

struct corq_dev;

/* "loop", "memif:server,/run/x.sock", "veth:eth1"; corq_device_at lists all. -EINVAL and a line
 * otherwise. */
int corq_dev_parse(const char *s, struct corq_dev_spec *spec, char *err, size_t errlen);
/* Before EAL: 0, or -errno and the line. Warns (conf.log) about what may go wrong: an
 * address of the kernel's on the interface, queues that are not ours. */
int corq_dev_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen);
/* What EAL must be told because of this device: single_file, huge, pci. `conf` refers to
 * `spec` afterwards. */
void corq_dev_eal_conf(const struct corq_dev_spec *spec, struct corq_eal_conf *conf);
/* EAL memory in MB that corq_dev_open of this will take. */
uint32_t corq_dev_mem_mb(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf);

int corq_dev_open(struct corq_dev **dev, struct corq_eal *eal, const struct corq_dev_spec *spec,
	const struct corq_dev_conf *conf, char *err, size_t errlen);
int corq_dev_start(struct corq_dev *dev, char *err, size_t errlen);
void corq_dev_close(struct corq_dev *dev);

/* Ports: 0 .. n_queues - 1; on loop side B follows side A. */
uint32_t corq_dev_n_ports(const struct corq_dev *dev);
struct corq_port *corq_dev_port(struct corq_dev *dev, uint32_t i);
/* Any thread: 1 the link is up, 0 down (a memif peer went away). */
int corq_dev_link(const struct corq_dev *dev);
/* "net_memif, MTU 1500, 2 queues, no offload". */
const char *corq_dev_describe(const struct corq_dev *dev, char *buf, size_t len);
/* After the cores have stopped: buffers of all pools that are not back. 0: no leak, but for what
 * a zero-copy memif keeps in its rings. */
uint32_t corq_dev_frames_out(const struct corq_dev *dev);

/*
 * The line for "the other end of IF leaves checksums or segmentation to its device": names the
 * ethtool command, and the peer when it is in our network namespace. Returns buf.
 */
const char *corq_port_offload_hint(const char *ifname, char *buf, size_t len);
/* The same for a device of any kind: "" where there is no such interface. */
const char *corq_dev_hint(const struct corq_dev_spec *spec, char *buf, size_t len);

#endif
