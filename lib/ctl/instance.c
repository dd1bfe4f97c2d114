/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instance.c - an instance: cores on a platform's devices, their addresses, running and stopping,
 * registered memory and the sums of figures.
 *
 * Set-up and end are one thread's business. While it runs, corq_stop may be called from anywhere (a
 * signal handler too: it stores one word a core), and figures may be read by any thread:
 * each is a word of its own that only its core writes (core/figures.c).
 */
#include "base/atomic.h"
#include "ctl/addresses.h"
#include "ctl/instance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* ---- configuration ---- */

static void
log_line(void *arg, enum corq_log_level level, const char *line)
{
	struct corq_instance *inst = arg;

	if (inst->line)
		inst->line(inst->line_arg, line);
	else if (level == CORQ_LOG_INFO)
		fprintf(stderr, "corq: %s\n", line);
	else
		fprintf(stderr, "corq: %s: %s\n", corq_log_level_name(level), line);
}

static int
parse_gw(const struct corq_instance *inst, struct corq_core_config *cc, const struct corq_config *c,
	char *err, size_t err_len)
{
	const char *why;

	if (!c->gw || strcmp(c->gw, "none") == 0)
		return 0;
	if (corq_addr_parse(c->gw, &cc->gw) < 0) {
		snprintf(err, err_len, "--gw '%s': not an address", c->gw);
		return -EINVAL;
	}
	if (!corq_addr_in_prefix(&cc->gw, &inst->addr[0].first, inst->addr[0].prefix_len)) {
		snprintf(err, err_len, "--gw %s: not on the link of --ip", c->gw);
		return -EINVAL;
	}
	why = corq_addr_unfit(&cc->gw, &inst->addr[0]);
	if (why) {
		snprintf(err, err_len, "--gw %s: it is %s; give a router's address", c->gw, why);
		return -EINVAL;
	}
	cc->has_gw = true;
	return 0;
}

static void
add_range(struct corq_core_config *cc, const struct corq_addr_range *r, bool connect)
{
	struct corq_range *x = &cc->ranges[cc->n_ranges++];

	*x = (struct corq_range){.first = r->first,
		.count = (uint32_t)CORQ_MIN(corq_addr_range_count(r), UINT32_MAX),
		.connect = connect};
	/* bits of the 16-byte form */
	cc->prefix_len = (uint8_t)(r->prefix_len + (corq_addr_is_v4(&r->first) ? 96 : 0));
}

static int
core_config(struct corq_instance *inst, unsigned i, const struct corq_config *c, uint64_t seed,
	struct corq_core_config *cc, char *err, size_t err_len)
{
	bool side_b = i >= inst->m.n_side_a;
	int rc;

	memset(cc, 0, sizeof(*cc));
	rc = corq_tcp_config_resolve(&cc->tcp, c, inst->m.port[i]->mtu, err, err_len);
	if (rc)
		return rc;
	cc->index = i;
	cc->group = side_b ? inst->m.n_side_a : 0;
	cc->n = side_b ? inst->m.n_ports - inst->m.n_side_a : inst->m.n_side_a;
	cc->side = inst->m.both_sides ? CORQ_SIDE_BOTH : side_b ? CORQ_SIDE_B : CORQ_SIDE_A;
	cc->seed = seed + side_b;
	cc->max_neigh = 4096;
	cc->tx_frames = c->tx_frames;
	cc->log = &inst->log;
	cc->offload_hint = inst->m.hint;
	cc->idle_sleep = !c->busy_poll;
	add_range(cc, &inst->addr[side_b], true);
	if (inst->m.both_sides)
		add_range(cc, &inst->addr[CORQ_SIDE_B], false);
	rc = parse_gw(inst, cc, c, err, err_len);
	if (rc || !corq_config_is_loop(c))
		return rc;
	/* The other end of loop is one station, however many addresses it has: one next hop. */
	cc->prefix_len = 128;
	cc->has_gw = true;
	cc->gw = inst->addr[side_b ? CORQ_SIDE_A : CORQ_SIDE_B].first;
	return 0;
}

/* ---- start and end ---- */

static int
make_core(struct corq_instance *inst, unsigned i, const struct corq_config *c, uint64_t seed,
	char *err, size_t err_len)
{
	struct corq_core_config cc;
	void *mem;
	int rc;

	rc = core_config(inst, i, c, seed, &cc, err, err_len);
	if (rc)
		return rc;
	inst->core_bytes[i] = corq_core_bytes(&cc);
	mem = inst->pf->alloc(&inst->m, i, inst->core_bytes[i]);
	if (!mem) {
		snprintf(err, err_len,
			"too little memory: core %u wants %zu MiB; lower --max-conns", i,
			inst->core_bytes[i] >> 20);
		return -ENOMEM;
	}
	inst->core[i] = mem;
	rc = corq_core_init(&inst->core[i], mem, &cc, inst->m.port[i], err, err_len);
	if (rc)
		return rc;
	inst->core[i]->regions = inst->regions;
	inst->core[i]->n_regions = &inst->n_regions;
	inst->core[i]->inst = inst;
	return 0;
}

static int
join_group(struct corq_instance *inst, unsigned g, unsigned first, unsigned n, char *err,
	size_t err_len)
{
	if (n < 2)
		return 0;
	inst->handoff_bytes[g] = corq_handoff_bytes(n);
	inst->handoff[g] = inst->pf->alloc(&inst->m, first, inst->handoff_bytes[g]);
	if (!inst->handoff[g]) {
		snprintf(err, err_len, "too little memory for the hand-off rings of %u cores", n);
		return -ENOMEM;
	}
	corq_handoff_join(&inst->core[first], n, inst->handoff[g]);
	return 0;
}

static uint64_t
secret(const struct corq_config *c)
{
	uint64_t s = c->seed;

	if (s == 0 && getrandom(&s, sizeof(s), 0) != sizeof(s))
		abort(); /* the kernel has no entropy: nothing safe can be said */
	return s;
}

static int
make_cores(struct corq_instance *inst, const struct corq_config *c, char *err, size_t err_len)
{
	uint64_t seed = secret(c);
	int rc = 0;

	for (unsigned i = 0; i < inst->m.n_ports && !rc; i++)
		rc = make_core(inst, i, c, seed, err, err_len);
	if (!rc)
		rc = join_group(inst, 0, 0, inst->m.n_side_a, err, err_len);
	if (!rc)
		rc = join_group(inst, 1, inst->m.n_side_a, inst->m.n_ports - inst->m.n_side_a, err,
			err_len);
	return rc;
}

int
corq_instance_start(const struct corq_platform *pf, const struct corq_config *config,
	struct corq_instance **out, char *err, size_t err_len)
{
	struct corq_instance *inst = calloc(1, sizeof(*inst));
	int rc;

	if (!inst) {
		snprintf(err, err_len, "out of memory");
		return -ENOMEM;
	}
	inst->pf = pf;
	inst->line = config->log;
	inst->line_arg = config->log_arg;
	inst->log = (struct corq_log){log_line, inst, CORQ_LOG_INFO};
	rc = corq_addresses_parse(config, inst->addr, err, err_len);
	if (rc) {
		free(inst);
		return rc;
	}
	rc = pf->open(&inst->m, config, &inst->log, err, err_len);
	if (rc) {
		free(inst);
		return rc;
	}
	rc = corq_attachments_start(inst, config->max_handles, err, err_len);
	if (!rc)
		rc = make_cores(inst, config, err, err_len);
	if (!rc)
		rc = pf->start(&inst->m, err, err_len);
	if (rc) {
		corq_end(inst);
		return rc;
	}
	*out = inst;
	return 0;
}

void
corq_end(struct corq_instance *inst)
{
	for (unsigned i = 0; i < inst->m.n_ports; i++)
		if (inst->core[i])
			corq_core_drain(inst->core[i]);
	corq_attachments_end(inst);
	inst->pf->close(&inst->m);
	for (unsigned i = 0; i < inst->m.n_ports; i++)
		if (inst->core[i])
			inst->pf->free(&inst->m, inst->core[i], inst->core_bytes[i]);
	for (unsigned g = 0; g < 2; g++)
		if (inst->handoff[g])
			inst->pf->free(&inst->m, inst->handoff[g], inst->handoff_bytes[g]);
	free(inst);
}

/* ---- running ---- */

static void
quiet_turns(struct corq_core *core)
{
	for (int i = 0; i < 64; i++)
		if (!corq_core_turn(core) && core->n_tx == 0)
			break;
}

/* After the word to stop: what is left open is reset, so that no peer waits for us; closes under
 * way get some turns to end; then whoever is left is told, and gone. */
static void
last_turns(struct corq_core *core)
{
	uint32_t from = 0;

	core->hook = NULL; /* nothing is opened any more */
	while (corq_core_reset_some(core, &from, 256))
		corq_core_turn(core);
	quiet_turns(core);
	for (from = 0; corq_core_forget_some(core, &from, 256);)
		corq_core_turn(core);
	quiet_turns(core);
	if (core->port->ops->count)
		core->port->ops->count(core->port);
	corq_core_publish(core);
}

static int
core_main(void *arg)
{
	struct corq_core *core = arg;
	struct corq_instance *inst = core->inst;
	int rc = inst->start ? inst->start(core, inst->start_arg) : 0;

	if (rc < 0) {
		corq_stop(inst);
		return rc;
	}
	while (!corq_load_relaxed_u32(&core->stop))
		corq_core_turn(core);
	last_turns(core);
	return 0;
}

int
corq_run(struct corq_instance *inst, int (*start)(struct corq_core *core, void *arg), void *arg)
{
	unsigned n = inst->m.n_ports, launched;
	int rc = 0, r;

	inst->start = start;
	inst->start_arg = arg;
	for (launched = 0; launched < n; launched++) {
		rc = inst->pf->launch(&inst->m, launched, core_main, inst->core[launched]);
		if (rc) {
			corq_stop(inst);
			break;
		}
	}
	for (unsigned i = 0; i < launched; i++) {
		r = inst->pf->join(&inst->m, i);
		rc = rc ? rc : r;
	}
	return rc;
}

void
corq_stop(struct corq_instance *inst)
{
	for (unsigned i = 0; i < inst->m.n_ports; i++)
		corq_store_release_u32(&inst->core[i]->stop, 1);
}

/* ---- facts ---- */

unsigned
corq_cores(const struct corq_instance *inst)
{
	return inst->m.n_ports;
}

struct corq_core *
corq_core_at(struct corq_instance *inst, unsigned index)
{
	return index < inst->m.n_ports ? inst->core[index] : NULL;
}

struct corq_addr
corq_address(const struct corq_instance *inst, enum corq_side side, uint64_t *count)
{
	const struct corq_addr_range *r = &inst->addr[side == CORQ_SIDE_B];

	if (count)
		*count = corq_addr_range_count(r);
	return r->first;
}

const char *
corq_address_unfit(const struct corq_instance *inst, const struct corq_addr *addr)
{
	return corq_addr_unfit(addr, &inst->addr[CORQ_SIDE_A]);
}

int
corq_mem_register(struct corq_instance *inst, const void *base, size_t len,
	void (*release)(struct corq_core *core, void *arg, uint64_t cookie), void *arg,
	struct corq_mem **out)
{
	struct corq_region *r;

	if (inst->n_regions == CORQ_MAX_REGIONS)
		return -ENOBUFS;
	r = &inst->regions[inst->n_regions++];
	*r = (struct corq_region){base, len, release, arg};
	*out = (struct corq_mem *)r;
	return 0;
}

void
corq_stats(const struct corq_instance *inst, struct corq_stats *out)
{
	uint64_t *sum = (uint64_t *)out;

	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < inst->m.n_ports; i++) {
		struct corq_stats one;

		corq_core_stats(inst->core[i], &one);
		for (size_t w = 0; w < sizeof(one) / sizeof(uint64_t); w++)
			sum[w] += ((const uint64_t *)&one)[w];
	}
}

const char *
corq_reason_at(unsigned i, const char **text, bool *is_drop)
{
	if (i >= CORQ_R_COUNT)
		return NULL;
	*text = corq_reason_text((enum corq_reason)i);
	*is_drop = corq_reason_severity((enum corq_reason)i) == CORQ_SEV_DROP;
	return corq_reason_name((enum corq_reason)i);
}

uint64_t
corq_reason_count(const struct corq_instance *inst, unsigned i)
{
	uint64_t n = 0;

	for (unsigned c = 0; c < inst->m.n_ports; c++)
		n += corq_core_reason_count(inst->core[c], i);
	return n;
}
