/* SPDX-License-Identifier: BSD-3-Clause */
/* parse_segment.c - what follows inject and expect: TCP segments, ARP, ICMP, bytes. See script.h.
 */
#include "script.h"
#include "net/frame.h"
#include "net/seg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- flags and sequence numbers ---- */

static bool
parse_flags(struct parser *p, const char *word, struct segment *s)
{
	static const char letters[] = "FSRP.UEC";

	if (!strcmp(word, "*")) {
		s->any_flags = true;
		return true;
	}
	if (!strcmp(word, "-"))
		return true;
	for (; *word != '\0'; word++) {
		const char *l = strchr(letters, *word);

		if (*word == 'p') { /* PSH or not */
			s->any_psh = true;
			continue;
		}
		if (l == NULL)
			return parser_fail(p, "'%c' is no flag (of %s)", *word, letters);
		s->flags |= (uint8_t)(1u << (l - letters));
	}
	return true;
}

/* N, N:M or N:M(L); anything else that parse_value takes has no length of its own. */
static bool
parse_seq(struct parser *p, char *word, struct segment *s)
{
	char *colon = strchr(word, ':'), *paren = strchr(word, '(');
	int64_t end, len;

	s->len.kind = VALUE_RANGE;
	s->len.lo = s->len.hi = 0;
	if (colon == NULL) {
		if (!parse_value(p, word, &s->seq))
			return false;
		if (s->seq.kind == VALUE_ANY)
			s->len.kind = VALUE_ANY;
		return true;
	}
	*colon = '\0';
	if (paren != NULL)
		*paren = '\0';
	if (!parse_value(p, word, &s->seq) || !parse_number(p, colon + 1, &end))
		return false;
	if (s->seq.lo != s->seq.hi)
		return parser_fail(p, "a range of sequence numbers has no end");
	if (paren != NULL) {
		if (paren[1] == '\0' || paren[strlen(paren + 1)] != ')')
			return parser_fail(p, "')' is missing");
		paren[strlen(paren + 1)] = '\0';
		if (!parse_number(p, paren + 1, &len))
			return false;
		if ((uint32_t)(end - s->seq.lo) != (uint32_t)len)
			return parser_fail(p, "%lld:%lld is not %lld bytes", (long long)s->seq.lo,
				(long long)end, (long long)len);
	}
	s->len.lo = s->len.hi = (int64_t)(uint32_t)(end - s->seq.lo);
	return true;
}

/* ---- options ---- */

static bool
parse_hex(struct parser *p, const char *word, uint8_t *out, size_t max, unsigned *n)
{
	*n = 0;
	while (*word != '\0') {
		unsigned v;
		int used = 0;

		if (*word == ':') {
			word++;
			continue;
		}
		if (sscanf(word, "%2x%n", &v, &used) != 1 || used != 2)
			return parser_fail(p, "'%s' is not hexadecimal bytes", word);
		if (*n == max)
			return parser_fail(p, "too many bytes");
		out[(*n)++] = (uint8_t)v;
		word += used;
	}
	return true;
}

static bool
parse_sack(struct parser *p, char **w, unsigned n, struct opt *o)
{
	if (n == 0 || n > OPT_SACK_MAX)
		return parser_fail(p, "sack wants 1 to %d blocks", OPT_SACK_MAX);
	for (unsigned i = 0; i < n; i++) {
		char *colon = strchr(w[i], ':');
		int64_t a, b;

		if (colon == NULL)
			return parser_fail(p, "'%s' is not START:END", w[i]);
		*colon = '\0';
		if (!parse_number(p, w[i], &a) || !parse_number(p, colon + 1, &b))
			return false;
		o->sack[i][0] = (uint32_t)a;
		o->sack[i][1] = (uint32_t)b;
	}
	o->n = n;
	return true;
}

static bool
parse_opt(struct parser *p, char **w, unsigned n, struct opt *o)
{
	if (!strcmp(w[0], "mss") && n == 2) {
		o->kind = OPT_MSS;
		return parse_value(p, w[1], &o->v[0]);
	}
	if (!strcmp(w[0], "wscale") && n == 2) {
		o->kind = OPT_WSCALE;
		return parse_value(p, w[1], &o->v[0]);
	}
	if (!strcmp(w[0], "TS") && n == 5 && !strcmp(w[1], "val") && !strcmp(w[3], "ecr")) {
		o->kind = OPT_TS;
		return parse_value(p, w[2], &o->v[0]) && parse_value(p, w[4], &o->v[1]);
	}
	if (!strcmp(w[0], "sack")) {
		o->kind = OPT_SACK;
		return parse_sack(p, w + 1, n - 1, o);
	}
	if (!strcmp(w[0], "raw") && n == 2) {
		o->kind = OPT_RAW;
		return parse_hex(p, w[1], o->raw, sizeof(o->raw), &o->n);
	}
	o->kind = !strcmp(w[0], "sackOK") ? OPT_SACK_OK : !strcmp(w[0], "nop") ? OPT_NOP : OPT_EOL;
	if (n != 1 || (o->kind == OPT_EOL && strcmp(w[0], "eol") != 0))
		return parser_fail(p,
			"unknown option '%s' (mss N, wscale N, sackOK, sack A:B.., "
			"TS val V ecr E, nop, eol, raw HEX)",
			w[0]);
	return true;
}

/* <a, b, c>; <> is none, <*> any. */
static bool
parse_opts(struct parser *p, char *word, struct segment *s)
{
	char *save_opt, *save_word, *one;

	s->has_opts = true;
	word[strlen(word) - 1] = '\0';
	word++;
	if (!strcmp(word, "*")) {
		s->any_opts = true;
		return true;
	}
	for (one = strtok_r(word, ",", &save_opt); one; one = strtok_r(NULL, ",", &save_opt)) {
		char *w[8], *t;
		unsigned n = 0;

		for (t = strtok_r(one, " \t", &save_word); t && n < 8;
			t = strtok_r(NULL, " \t", &save_word))
			w[n++] = t;
		if (n == 0)
			continue;
		if (s->n_opts == SEG_OPTS_MAX)
			return parser_fail(p, "too many options");
		if (!parse_opt(p, w, n, &s->opts[s->n_opts++]))
			return false;
	}
	return true;
}

/* ---- the other words of a segment ---- */

static bool
parse_mac(struct parser *p, const char *word, uint8_t mac[6])
{
	unsigned n;

	if (!parse_hex(p, word, mac, 6, &n) || n != 6)
		return parser_fail(p, "'%s' is not an Ethernet address", word);
	return true;
}

static bool
parse_split(struct parser *p, char *word, struct segment *s)
{
	char *save, *t;
	int64_t v;

	for (t = strtok_r(word, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		if (s->n_split == 8 || !parse_number(p, t, &v))
			return parser_fail(p, "split wants at most 8 sizes: A,B,..");
		s->split[s->n_split++] = (uint16_t)v;
	}
	return true;
}

static bool
copy_word(struct parser *p, char out[48], const char *word)
{
	if (strlen(word) >= 48)
		return parser_fail(p, "'%s' is too long", word);
	strcpy(out, word);
	return true;
}

/* Words without an argument. */
static bool
segment_flag(const char *w, struct segment *s)
{
	if (!strcmp(w, "badcsum"))
		s->bad_tcp_csum = true;
	else if (!strcmp(w, "badipcsum"))
		s->bad_ip_csum = true;
	else if (!strcmp(w, "partialcsum"))
		s->csum_partial = true;
	else if (!strcmp(w, "hwgood"))
		s->rx_flags |= CORQ_FRAME_L4_CSUM_GOOD | CORQ_FRAME_IP_CSUM_GOOD;
	else if (!strcmp(w, "hwbad"))
		s->rx_flags |= CORQ_FRAME_L4_CSUM_BAD;
	else
		return false;
	return true;
}

static bool
segment_number(struct parser *p, const char *w, const char *arg, struct segment *s, bool *known)
{
	int64_t v = 0;
	const char *names[] = {"hlen", "iplen", "fill", "ttl", "ecn", "sport", "dport"};
	unsigned i;

	*known = false;
	for (i = 0; i < 7 && strcmp(w, names[i]) != 0; i++)
		;
	if (i == 7)
		return true;
	*known = true;
	if (!parse_number(p, arg, &v))
		return false;
	switch (i) {
	case 0:
		s->hlen = (int)v;
		break;
	case 1:
		s->ip_len = (int)v;
		break;
	case 2:
		s->fill = (int)v;
		break;
	case 3:
		s->ttl = (int)v;
		break;
	case 4:
		s->ecn = (int)v;
		break;
	case 5:
		s->sport = (int)v;
		break;
	default:
		s->dport = (int)v;
		break;
	}
	return true;
}

/* A word of an injected segment, with its argument or NULL; *used says how many were taken. */
static bool
parse_inject_word(struct parser *p, char *w, char *arg, struct segment *s, unsigned *used)
{
	bool known;

	*used = 1;
	if (segment_flag(w, s))
		return true;
	*used = 2;
	if (arg == NULL)
		return parser_fail(p, "'%s' means nothing here", w);
	if (!segment_number(p, w, arg, s, &known))
		return false;
	if (known)
		return true;
	if (!strcmp(w, "src"))
		return copy_word(p, s->src, arg);
	if (!strcmp(w, "dst"))
		return copy_word(p, s->dst, arg);
	if (!strcmp(w, "split"))
		return parse_split(p, arg, s);
	if (!strcmp(w, "dmac"))
		return s->has_dmac = true, parse_mac(p, arg, s->dmac);
	return parser_fail(p, "'%s' means nothing here", w);
}

static bool
parse_tcp(struct parser *p, char **words, unsigned n, bool inject, struct segment *s)
{
	unsigned i = 2, used;

	s->hlen = s->ip_len = s->fill = s->ttl = s->ecn = s->sport = s->dport = -1;
	if (n < 2)
		return parser_fail(p, "a segment is FLAGS SEQ ..");
	if (!parse_flags(p, words[0], s) || !parse_seq(p, words[1], s))
		return false;
	while (i < n) {
		char *w = words[i], *arg = i + 1 < n ? words[i + 1] : NULL;
		struct value *v = !strcmp(w, "ack")   ? &s->ack
				  : !strcmp(w, "win") ? &s->win
				  : !strcmp(w, "urg") ? &s->urg
						      : NULL;

		if (*w == '<') {
			if (!parse_opts(p, w, s))
				return false;
			i++;
		} else if (v != NULL && arg != NULL) {
			if (!parse_value(p, arg, v))
				return false;
			i += 2;
		} else if (inject) {
			if (!parse_inject_word(p, w, arg, s, &used))
				return false;
			i += used;
		} else {
			return parser_fail(p, "'%s' means nothing here", w);
		}
	}
	if ((s->flags & CORQ_TH_ACK) && s->ack.kind == VALUE_NONE)
		return parser_fail(p, "the flags say ACK: say 'ack N' (or 'ack *')");
	if (inject && (s->any_flags || s->any_psh || s->seq.kind == VALUE_ANY ||
			      s->len.kind == VALUE_ANY))
		return parser_fail(p, "'*' and 'p' cannot be injected");
	return true;
}

/* ---- ARP, ICMP, bytes ---- */

static bool
parse_arp(struct parser *p, char **words, unsigned n, struct packet_spec *out)
{
	out->kind = PACKET_ARP;
	if (n < 3)
		return parser_fail(p, "write 'arp request|reply ADDRESS [from ADDRESS] [mac M]'");
	out->arp_op = !strcmp(words[1], "request") ? 1 : !strcmp(words[1], "reply") ? 2 : 0;
	if (out->arp_op == 0)
		return parser_fail(p, "'%s' is not request or reply", words[1]);
	if (!copy_word(p, out->arp_target, words[2]))
		return false;
	for (unsigned i = 3; i < n; i += 2) {
		if (i + 1 < n && !strcmp(words[i], "from")) {
			if (!copy_word(p, out->arp_sender, words[i + 1]))
				return false;
		} else if (i + 1 < n && !strcmp(words[i], "mac")) {
			out->has_arp_mac = true;
			if (!parse_mac(p, words[i + 1], out->arp_mac))
				return false;
		} else {
			return parser_fail(p, "'%s' means nothing here", words[i]);
		}
	}
	return true;
}

static bool
icmp_type(const char *word, uint8_t *type, uint8_t *code)
{
	static const struct {
		const char *name;
		uint8_t type, code;
	} names[] = {{"echo", 8, 0}, {"echo_reply", 0, 0}, {"net_unreach", 3, 0},
		{"host_unreach", 3, 1}, {"port_unreach", 3, 3}, {"frag_needed", 3, 4},
		{"admin_unreach", 3, 13}, {"quench", 4, 0}, {"time_exceeded", 11, 0}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(names[i].name, word)) {
			*type = names[i].type;
			*code = names[i].code;
			return true;
		}
	}
	return false;
}

static bool
parse_icmp(struct parser *p, char **words, unsigned n, struct packet_spec *out)
{
	int64_t v;

	out->kind = PACKET_ICMP;
	if (n < 2 || !icmp_type(words[1], &out->icmp_type, &out->icmp_code))
		return parser_fail(p, "unknown ICMP message '%s'", n < 2 ? "" : words[1]);
	for (unsigned i = 2; i < n; i++) {
		const char *arg = i + 1 < n ? words[i + 1] : "";

		if (!strcmp(words[i], "foreign")) {
			out->icmp_foreign = true;
			continue;
		}
		if (!strcmp(words[i], "quote")) {
			if (!parse_value(p, arg, &out->icmp_quote))
				return false;
		} else if (!strcmp(words[i], "mtu") && parse_number(p, arg, &v)) {
			out->icmp_mtu = (uint16_t)v;
		} else if (!strcmp(words[i], "len") && parse_number(p, arg, &v)) {
			out->icmp_len = (unsigned)v;
		} else {
			return parser_fail(p, "'%s' means nothing here", words[i]);
		}
		i++;
	}
	return true;
}

static bool
parse_bytes(struct parser *p, char **words, unsigned n, struct packet_spec *out)
{
	unsigned len;

	out->kind = PACKET_BYTES;
	if (n < 2)
		return parser_fail(p, "write 'bytes HEX ..'");
	for (unsigned i = 1; i < n; i++)
		out->n_bytes += strlen(words[i]);
	out->bytes = parser_alloc(p, out->n_bytes);
	len = 0;
	for (unsigned i = 1; i < n; i++) {
		unsigned k;

		if (!parse_hex(p, words[i], out->bytes + len, out->n_bytes - len, &k))
			return false;
		len += k;
	}
	out->n_bytes = len;
	return true;
}

bool
parse_packet(struct parser *p, char **words, unsigned n, bool inject, struct packet_spec *out)
{
	if (!strcmp(words[0], "arp"))
		return parse_arp(p, words, n, out);
	if (!strcmp(words[0], "icmp"))
		return parse_icmp(p, words, n, out);
	if (inject && !strcmp(words[0], "bytes"))
		return parse_bytes(p, words, n, out);
	if (!inject && n == 1 && !strcmp(words[0], "any")) {
		out->kind = PACKET_ANY;
		return true;
	}
	out->kind = PACKET_TCP;
	return parse_tcp(p, words, n, inject, &out->tcp);
}
