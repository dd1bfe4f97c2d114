/* SPDX-License-Identifier: BSD-3-Clause */
/* mkseg.c - writes frames for tests; see mkseg.h. */
#include "mkseg.h"
#include "memport_nic.h"

#include <string.h>

static void
put16(uint8_t *p, uint32_t x)
{
	p[0] = (uint8_t)(x >> 8);
	p[1] = (uint8_t)x;
}

static void
put32(uint8_t *p, uint32_t x)
{
	put16(p, x >> 16);
	put16(p + 2, x);
}

static uint32_t
get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* Appends n bytes padded with NOPs in front. */
static void
opt(struct mkseg *m, const uint8_t *p, unsigned n)
{
	unsigned pad = (4 - n % 4) % 4;

	if (m->opt_len + pad + n > sizeof(m->opt))
		return;
	memset(m->opt + m->opt_len, 1, pad);
	memcpy(m->opt + m->opt_len + pad, p, n);
	m->opt_len = (uint8_t)(m->opt_len + pad + n);
}

void
mkseg_opt_ts(struct mkseg *m, uint32_t val, uint32_t ecr)
{
	uint8_t o[10] = {8, 10};

	put32(o + 2, val);
	put32(o + 6, ecr);
	opt(m, o, sizeof(o));
}

void
mkseg_opt_mss(struct mkseg *m, uint16_t mss)
{
	uint8_t o[4] = {2, 4};

	put16(o + 2, mss);
	opt(m, o, sizeof(o));
}

void
mkseg_opt_wscale(struct mkseg *m, uint8_t shift)
{
	const uint8_t o[3] = {3, 3, shift};

	opt(m, o, sizeof(o));
}

void
mkseg_opt_sack_ok(struct mkseg *m)
{
	const uint8_t o[2] = {4, 2};

	opt(m, o, sizeof(o));
}

void
mkseg_opt_sack(struct mkseg *m, const uint32_t (*block)[2], unsigned n)
{
	uint8_t o[34] = {5};

	if (n == 0 || n > 4)
		return;
	o[1] = (uint8_t)(2 + 8 * n);
	for (unsigned i = 0; i < n; i++) {
		put32(o + 2 + 8 * i, block[i][0]);
		put32(o + 6 + 8 * i, block[i][1]);
	}
	opt(m, o, o[1]);
}

static uint32_t
put_ip4(const struct mkseg *m, uint8_t *p, uint32_t l4_len)
{
	memset(p, 0, 20);
	p[0] = 0x45;
	p[1] = m->ecn;
	put16(p + 2, 20 + l4_len);
	put16(p + 6, 0x4000);
	p[8] = m->ttl ? m->ttl : 64;
	p[9] = 6;
	memcpy(p + 12, &m->src.b[12], 4);
	memcpy(p + 16, &m->dst.b[12], 4);
	return 20;
}

static uint32_t
put_ip6(const struct mkseg *m, uint8_t *p, uint32_t l4_len)
{
	memset(p, 0, 40);
	put32(p, 6u << 28 | (uint32_t)m->ecn << 20);
	put16(p + 4, l4_len);
	p[6] = 6;
	p[7] = m->ttl ? m->ttl : 64;
	memcpy(p + 8, m->src.b, 16);
	memcpy(p + 24, m->dst.b, 16);
	return 40;
}

uint32_t
mkseg_build(const struct mkseg *m, uint8_t out[MKSEG_MAX])
{
	bool v4 = corq_addr_is_v4(&m->src) && corq_addr_is_v4(&m->dst);
	uint32_t hlen = 20 + m->opt_len, off = 14 + (v4 ? 20 : 40);
	uint32_t len = CORQ_MIN((uint32_t)m->len, MKSEG_MAX - off - hlen);
	uint8_t *t;

	memcpy(out, m->dmac, 6);
	memcpy(out + 6, m->smac, 6);
	put16(out + 12, v4 ? 0x0800 : 0x86dd);
	if (v4)
		put_ip4(m, out + 14, hlen + len);
	else
		put_ip6(m, out + 14, hlen + len);
	t = out + off;
	memset(t, 0, 20);
	put16(t, m->sport);
	put16(t + 2, m->dport);
	put32(t + 4, m->seq);
	put32(t + 8, m->ack);
	t[12] = (uint8_t)(hlen / 4 << 4);
	t[13] = m->flags;
	put16(t + 14, m->wnd);
	put16(t + 18, m->urg);
	memcpy(t + 20, m->opt, m->opt_len);
	if (len > 0)
		memcpy(t + hlen, m->data, len);
	mkseg_fix_checksums(out, off + hlen + len);
	return off + hlen + len;
}

static void
fix_l4(uint8_t *p, uint32_t len, uint8_t proto, const uint8_t *addrs, uint32_t addr_bytes)
{
	uint32_t at = proto == 6 ? 16 : 2, sum = 0;

	if (len < at + 2)
		return;
	put16(p + at, 0);
	if (proto != 1) /* ICMP for IPv4 has no pseudo-header */
		sum = memport_sum(addrs, addr_bytes, proto + len);
	put16(p + at, (uint16_t)~memport_sum(p, len, sum));
}

void
mkseg_fix_checksums(uint8_t *f, uint32_t len)
{
	uint32_t hlen, total;

	if (len >= 14 + 20 && get16(f + 12) == 0x0800 && f[14] >> 4 == 4) {
		hlen = (f[14] & 15u) * 4;
		total = get16(f + 16);
		if (hlen < 20 || 14 + hlen > len || total < hlen || 14 + total > len)
			return;
		put16(f + 24, 0);
		put16(f + 24, (uint16_t)~memport_sum(f + 14, hlen, 0));
		if (f[23] == 6 || f[23] == 1)
			fix_l4(f + 14 + hlen, total - hlen, f[23], f + 26, 8);
	} else if (len >= 14 + 40 && get16(f + 12) == 0x86dd && f[14] >> 4 == 6) {
		total = get16(f + 18);
		if (14 + 40 + total > len)
			return;
		if (f[20] == 6 || f[20] == 58)
			fix_l4(f + 54, total, f[20], f + 22, 32);
	}
}
