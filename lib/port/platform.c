/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * platform.c - DPDK as the machine below an instance (ctl/platform.h), and the public corq_start.
 *
 * Main thread only.
 */
#include "ctl/addresses.h"
#include "ctl/platform.h"
#include "port/port_dpdk.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(CORQ_EAL_CORES_MAX <= CORQ_MAX_CORES, "a machine has room for all ports");

struct platform {
	struct corq_eal *eal;
	struct corq_dev *dev;
};

static int
parse_mac(const char *text, uint8_t mac[6], char *err, size_t err_len)
{
	unsigned b[6];
	char end;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		    &end) != 6 ||
		(b[0] & 1) || !(b[0] | b[1] | b[2] | b[3] | b[4] | b[5])) {
		snprintf(err, err_len, "--mac '%s': give a unicast address, as 02:00:00:00:00:01",
			text);
		return -EINVAL;
	}
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)b[i];
	return 0;
}

static int
count_args(char *const *argv)
{
	int n = 0;

	while (argv && argv[n])
		n++;
	return n;
}

static int
open_machine(struct corq_machine *m, struct platform *p, const struct corq_config *c,
	struct corq_dev_spec *spec, struct corq_dev_conf *dc, char *err, size_t err_len)
{
	struct corq_eal_conf ec = {.name = c->name,
		.n_cores = m->n_ports,
		.share_cpus = c->share_cpus,
		.huge = c->no_huge ? CORQ_HUGE_OFF : CORQ_HUGE_AUTO,
		.mem_mb = corq_dev_mem_mb(spec, dc),
		.verbose = c->verbose,
		.argv = c->eal_args,
		.argc = count_args(c->eal_args),
		.log = dc->log};
	int rc;

	corq_dev_eal_conf(spec, &ec);
	rc = corq_eal_init(&p->eal, &ec, err, err_len);
	if (rc)
		return rc;
	rc = corq_dev_open(&p->dev, p->eal, spec, dc, err, err_len);
	if (rc) {
		corq_eal_cleanup(p->eal);
		return rc;
	}
	if (corq_dev_n_ports(p->dev) != m->n_ports)
		abort(); /* loop gives both sides their ports, others one a queue */
	for (unsigned i = 0; i < m->n_ports; i++)
		m->port[i] = corq_dev_port(p->dev, i);
	return 0;
}

/* Handles alone: no EAL, no device, no core. */
static int
open_none(struct corq_machine *m)
{
	struct platform *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	m->state = p;
	return 0;
}

static int
platform_open(struct corq_machine *m, const struct corq_config *c, const struct corq_log *log,
	char *err, size_t err_len)
{
	unsigned cores = c->cores ? c->cores : 1;
	struct corq_dev_spec spec;
	struct corq_dev_conf dc = {.n_queues = cores,
		.mtu = c->mtu,
		.ip = c->ip,
		.rx_frames = c->rx_frames,
		.tx_frames = c->tx_frames,
		.log = log};
	struct platform *p;
	uint8_t mac[6];
	int rc;

	if (corq_config_is_none(c))
		return open_none(m);
	rc = corq_dev_parse(c->dev ? c->dev : "loop", &spec, err, err_len);
	if (!rc && c->mac) {
		rc = parse_mac(c->mac, mac, err, err_len);
		dc.mac = mac;
	}
	if (rc)
		return rc;
	m->n_side_a = m->n_ports = cores;
	if (spec.kind == CORQ_DEV_LOOP && c->loop_one_core) {
		if (cores > 1) {
			snprintf(err, err_len, "--loop-one-core with --cores %u: it takes one core",
				cores);
			return -EINVAL;
		}
		m->both_sides = true;
	} else if (spec.kind == CORQ_DEV_LOOP) {
		dc.n_peers = cores;
		m->n_ports = 2 * cores;
	}
	rc = corq_eal_check_cores(m->n_ports, c->share_cpus, err, err_len);
	if (rc < 0 && spec.kind == CORQ_DEV_LOOP && cores == 1)
		snprintf(err, err_len,
			"too few cores: loop runs its two ends on two CPUs, this "
			"process may use one; --loop-one-core runs both on one");
	if (rc == 1)
		corq_log_write(log, CORQ_LOG_WARN, "%s", err);
	if (rc >= 0)
		rc = corq_dev_check(&spec, &dc, err, err_len);
	if (rc < 0)
		return rc;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	m->state = p;
	corq_dev_hint(&spec, m->hint, sizeof(m->hint));
	rc = open_machine(m, p, c, &spec, &dc, err, err_len);
	if (rc)
		free(p);
	return rc;
}

static int
platform_start(struct corq_machine *m, char *err, size_t err_len)
{
	struct platform *p = m->state;

	return p->dev ? corq_dev_start(p->dev, err, err_len) : 0;
}

static void
platform_close(struct corq_machine *m)
{
	struct platform *p = m->state;

	if (p->dev) {
		corq_dev_close(p->dev);
		corq_eal_cleanup(p->eal);
	}
	free(p);
}

static void *
platform_alloc(struct corq_machine *m, unsigned core, size_t bytes)
{
	struct platform *p = m->state;

	return corq_port_alloc(bytes, corq_eal_core_socket(p->eal, core));
}

static void
platform_free(struct corq_machine *m, void *mem, size_t bytes)
{
	(void)m;
	corq_port_free(mem, bytes);
}

static unsigned
platform_nodes(struct corq_machine *m)
{
	(void)m;
	return corq_port_nodes();
}

static unsigned
platform_node_here(struct corq_machine *m)
{
	(void)m;
	return corq_port_node_here();
}

static void *
platform_alloc_on(struct corq_machine *m, unsigned node, size_t bytes, bool dense)
{
	(void)m;
	return dense ? corq_port_alloc(bytes, (int)node) : corq_port_alloc_sparse(bytes, (int)node);
}

static void
platform_place(struct corq_machine *m, void *p, size_t bytes, unsigned node)
{
	(void)m;
	corq_port_place(p, bytes, node);
}

static int
platform_launch(struct corq_machine *m, unsigned core, int (*fn)(void *), void *arg)
{
	struct platform *p = m->state;

	return corq_eal_launch(p->eal, core, fn, arg);
}

static int
platform_join(struct corq_machine *m, unsigned core)
{
	struct platform *p = m->state;

	return corq_eal_join(p->eal, core);
}

static const struct corq_platform dpdk_platform = {
	.open = platform_open,
	.start = platform_start,
	.close = platform_close,
	.alloc = platform_alloc,
	.free = platform_free,
	.nodes = platform_nodes,
	.node_here = platform_node_here,
	.alloc_on = platform_alloc_on,
	.place = platform_place,
	.launch = platform_launch,
	.join = platform_join,
};

int
corq_start(const struct corq_config *config, struct corq_instance **out, char *err, size_t err_len)
{
	return corq_instance_start(&dpdk_platform, config, out, err, err_len);
}

uint64_t
corq_tsc_hz(void)
{
	return rte_get_tsc_hz();
}
