/* SPDX-License-Identifier: BSD-3-Clause */
/* match.c - is this the packet the script expects? and one line of text of a packet. See world.h.
 */
#include "world.h"
#include "net/seg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- values ---- */

/* slack: how far a single number may be off. */
bool
value_holds(const struct value *v, uint32_t base, uint32_t actual, uint32_t slack)
{
	uint32_t rel = v->kind == VALUE_ABS ? actual : actual - base;
	int64_t n = v->lo < 0 ? (int64_t)(int32_t)rel : (int64_t)rel;

	if (v->kind == VALUE_NONE || v->kind == VALUE_ANY)
		return true;
	if (v->lo == v->hi)
		return rel - (uint32_t)v->lo + slack <= 2 * slack;
	return n >= v->lo && n <= v->hi;
}

const char *
value_text(const struct value *v, char *buf, size_t len)
{
	if (v->kind == VALUE_ANY)
		snprintf(buf, len, "*");
	else if (v->kind == VALUE_ABS)
		snprintf(buf, len, "@%lld", (long long)v->lo);
	else if (v->lo == v->hi)
		snprintf(buf, len, "%lld", (long long)v->lo);
	else if (v->hi == INT64_MAX)
		snprintf(buf, len, ">=%lld", (long long)v->lo);
	else if (v->lo == INT64_MIN)
		snprintf(buf, len, "<=%lld", (long long)v->hi);
	else
		snprintf(buf, len, "%lld..%lld", (long long)v->lo, (long long)v->hi);
	return buf;
}

struct text {
	char *buf;
	size_t len, n;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int k;

	if (t->n + 1 >= t->len)
		return;
	va_start(ap, fmt);
	k = vsnprintf(t->buf + t->n, t->len - t->n, fmt, ap);
	va_end(ap);
	if (k > 0)
		t->n += (size_t)k;
	if (t->n >= t->len)
		t->n = t->len - 1;
}

/* ---- options ---- */

static const struct opt *
find_opt(const struct packet *p, const struct opt *like)
{
	for (unsigned i = 0; i < p->n_opts; i++) {
		const struct opt *o = &p->opts[i];

		if (o->kind == like->kind &&
			(o->kind != OPT_RAW ||
				(o->n == like->n && !memcmp(o->raw, like->raw, o->n))))
			return o;
	}
	return NULL;
}

static bool
ts_holds(const struct flow *f, const struct opt *want, const struct opt *got)
{
	struct value ecr = want->v[1];

	if (ecr.kind == VALUE_LAST) {
		ecr.kind = VALUE_RANGE;
		ecr.lo = ecr.hi = f->peer_ts_last;
	}
	/* Our clock is 1 ms: two readings of one moment may differ by one. */
	return value_holds(&want->v[0], f->our_ts_base, (uint32_t)got->v[0].lo, 1) &&
	       value_holds(&ecr, 0, (uint32_t)got->v[1].lo, 0);
}

static bool
opt_holds(const struct flow *f, const struct opt *want, const struct opt *got)
{
	switch (want->kind) {
	case OPT_MSS:
	case OPT_WSCALE:
		return value_holds(&want->v[0], 0, (uint32_t)got->v[0].lo, 0);
	case OPT_TS:
		return ts_holds(f, want, got);
	case OPT_SACK:
		if (want->n != got->n)
			return false;
		for (unsigned i = 0; i < 2 * want->n; i++)
			if (got->sack[i / 2][i % 2] - f->peer_isn != want->sack[i / 2][i % 2])
				return false;
		return true;
	default:
		return true;
	}
}

/* Written options: exactly those, in any order, padding apart. */
static bool
written_opts_hold(const struct flow *f, const struct segment *s, const struct packet *p)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_opts; i++) {
		const struct opt *got;

		if (s->opts[i].kind == OPT_NOP || s->opts[i].kind == OPT_EOL)
			continue;
		got = find_opt(p, &s->opts[i]);
		if (got == NULL || !opt_holds(f, &s->opts[i], got))
			return false;
		n++;
	}
	return n == p->n_opts;
}

/* Nothing written: anything in SYN and RST, else timestamps if agreed, and nothing more. */
static bool
usual_opts_hold(const struct flow *f, const struct packet *p)
{
	bool ts = f->our_ts && f->peer_ts;

	if (p->flags & (CORQ_TH_SYN | CORQ_TH_RST))
		return true;
	return p->n_opts == ts && (!ts || p->opts[0].kind == OPT_TS);
}

/* ---- packets ---- */

static bool
tcp_holds(const struct flow *f, const struct segment *s, const struct packet *p, struct text *why)
{
	char want[64];

	if (!corq_addr_eq(&p->dst, &f->paddr) || p->dport != f->pport ||
		!corq_addr_eq(&p->src, &f->laddr) || p->sport != f->lport)
		add(why, "not of flow '%s' (ports %u -> %u); ", f->name, p->sport, p->dport);
	if (!s->any_flags && s->flags != (p->flags & ~(s->any_psh ? CORQ_TH_PSH : 0)))
		add(why, "flags differ; ");
	if (!value_holds(&s->seq, f->our_isn, p->seq, 0))
		add(why, "seq is not %s; ", value_text(&s->seq, want, sizeof(want)));
	if (!value_holds(&s->len, 0, p->payload_len, 0))
		add(why, "%u bytes, not %s; ", p->payload_len,
			value_text(&s->len, want, sizeof(want)));
	if (!value_holds(&s->ack, f->peer_isn, p->ack, 0))
		add(why, "ack is not %s; ", value_text(&s->ack, want, sizeof(want)));
	if (!value_holds(&s->win, 0, p->win, 0))
		add(why, "win is not %s; ", value_text(&s->win, want, sizeof(want)));
	if (!value_holds(&s->urg, 0, p->urg, 0))
		add(why, "urg is not %s; ", value_text(&s->urg, want, sizeof(want)));
	if (!s->any_opts && !(s->has_opts ? written_opts_hold(f, s, p) : usual_opts_hold(f, p)))
		add(why, "options differ; ");
	return why->n == 0;
}

bool
wire_match(const struct flow *f, const struct packet_spec *spec, const struct packet *p, char *why,
	size_t why_len)
{
	struct text t = {why, why_len, 0};
	struct corq_addr target;

	*why = '\0';
	if (spec->kind == PACKET_ANY)
		return true;
	if (spec->kind != p->kind) {
		add(&t, "another kind of packet");
		return false;
	}
	switch (spec->kind) {
	case PACKET_TCP:
		return tcp_holds(f, &spec->tcp, p, &t);
	case PACKET_ARP:
		target = testcore_addr(spec->arp_target);
		if (p->arp_op != spec->arp_op || !corq_addr_eq(&p->dst, &target))
			add(&t, "another ARP");
		return t.n == 0;
	case PACKET_ICMP:
		if (p->icmp_type != spec->icmp_type || p->icmp_code != spec->icmp_code)
			add(&t, "another ICMP message");
		else if (p->icmp_type == 0 && p->payload_len != spec->icmp_len)
			add(&t, "%u bytes, not %u", p->payload_len, spec->icmp_len);
		return t.n == 0;
	default:
		return false;
	}
}

/* ---- text ---- */

static void
add_opts(struct text *t, const struct packet *p, const struct flow *f, bool out)
{
	uint32_t sack_base = f == NULL ? 0 : out ? f->peer_isn : f->our_isn;
	uint32_t val_base = f != NULL && out ? f->our_ts_base : 0;
	uint32_t ecr_base = f != NULL && !out ? f->our_ts_base : 0;

	if (p->n_opts == 0)
		return;
	for (unsigned i = 0; i < p->n_opts; i++) {
		const struct opt *o = &p->opts[i];

		add(t, "%s", i == 0 ? " <" : ", ");
		switch (o->kind) {
		case OPT_MSS:
			add(t, "mss %lld", (long long)o->v[0].lo);
			break;
		case OPT_WSCALE:
			add(t, "wscale %lld", (long long)o->v[0].lo);
			break;
		case OPT_SACK_OK:
			add(t, "sackOK");
			break;
		case OPT_TS:
			add(t, "TS val %u ecr %u", (uint32_t)o->v[0].lo - val_base,
				o->v[1].lo == 0 ? 0 : (uint32_t)o->v[1].lo - ecr_base);
			break;
		case OPT_SACK:
			add(t, "sack");
			for (unsigned k = 0; k < o->n; k++)
				add(t, " %u:%u", o->sack[k][0] - sack_base,
					o->sack[k][1] - sack_base);
			break;
		default:
			add(t, "raw");
			for (unsigned k = 0; k < o->n; k++)
				add(t, "%s%02x", k ? ":" : " ", o->raw[k]);
			break;
		}
	}
	add(t, ">");
}

static void
add_tcp(struct text *t, const struct packet *p, const struct flow *f, bool out)
{
	bool known = f != NULL && (out ? f->have_our_isn : f->have_peer_isn);
	uint32_t seq = p->seq, ack = p->ack;

	if (known)
		seq -= out ? f->our_isn : f->peer_isn;
	if (f != NULL && (out ? f->have_peer_isn : f->have_our_isn))
		ack -= out ? f->peer_isn : f->our_isn;
	for (unsigned i = 0; i < 8; i++)
		if (p->flags & 1u << i)
			add(t, "%c", "FSRP.UEC"[i]);
	if (p->flags == 0)
		add(t, "-");
	add(t, " %s%u:%u(%u)", known ? "" : "@", seq, seq + p->payload_len, p->payload_len);
	if (p->flags & CORQ_TH_ACK)
		add(t, " ack %u", ack);
	add(t, " win %u", p->win);
	if (p->urg != 0)
		add(t, " urg %u", p->urg);
	add_opts(t, p, f, out);
	if (f == NULL)
		add(t, " (ports %u -> %u: of no flow)", p->sport, p->dport);
	else if (f->next != NULL || strcmp(f->name, "main") != 0)
		add(t, " [%s]", f->name);
}

void
wire_format(const struct packet *p, const struct flow *f, bool out, char *buf, size_t len)
{
	struct text t = {buf, len, 0};
	char a[CORQ_ADDR_STRLEN];

	*buf = '\0';
	switch (p->kind) {
	case PACKET_TCP:
		add_tcp(&t, p, f, out);
		break;
	case PACKET_ARP:
		add(&t, "arp %s %s", p->arp_op == 1 ? "request" : "reply",
			corq_addr_format(&p->dst, a, sizeof(a)));
		add(&t, " from %s", corq_addr_format(&p->src, a, sizeof(a)));
		break;
	case PACKET_ICMP:
		add(&t, "icmp type %u code %u, %u bytes", p->icmp_type, p->icmp_code,
			p->payload_len);
		break;
	default:
		add(&t, "%u bytes", p->len);
		break;
	}
}
