/* SPDX-License-Identifier: BSD-3-Clause */
/* target.c - looks a tuple up in a core, for tests; see target.h. */
#include "target.h"

void
target_of_record(struct corq_engine *e, const struct corq_record *r, struct target *t)
{
	static const uint8_t state[CORQ_REC_KIND_COUNT] = {
		CORQ_CLOSED, CORQ_TIME_WAIT, CORQ_FIN_WAIT_2, CORQ_SYN_RCVD};

	t->record = true;
	t->state = state[r->kind];
	t->rcv_nxt = r->rcv_nxt;
	t->snd_nxt = r->snd_nxt;
	t->snd_una = r->kind == CORQ_REC_HALF_OPEN ? r->snd_nxt - 1 : r->snd_nxt;
	t->ts_recent = r->ts_recent;
	t->ts = r->flags & CORQ_RF_TS;
	t->key = (struct corq_key){.raddr = r->raddr,
		.laddr = corq_engine_laddr_at(e, r->laddr_idx),
		.rport = r->rport,
		.lport = r->lport};
}

void
target_of_conn(const struct corq_conn *c, struct target *t)
{
	t->record = false;
	t->state = c->state;
	t->rcv_nxt = c->rcv_nxt;
	t->snd_una = c->snd_una;
	t->snd_nxt = c->snd_nxt;
	t->ts_recent = c->ts_recent;
	t->ts_off = c->ts_off;
	t->ts = c->flags & CORQ_CF_TS;
	t->key = (struct corq_key){c->raddr, c->laddr, c->rport, c->lport, 0};
}

void
target_look_up(struct corq_engine *e, struct target *t)
{
	struct corq_key key = t->key;
	uint32_t val = corq_engine_lookup(e, &key, corq_engine_hash(e, &key));

	memset(t, 0, sizeof(*t));
	t->key = key;
	if (val == CORQ_NONE)
		return;
	if (val & CORQ_VAL_RECORD)
		target_of_record(e, corq_record_at(e, val & ~CORQ_VAL_RECORD), t);
	else
		target_of_conn(corq_conn_at(e, val), t);
}
