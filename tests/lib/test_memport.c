/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memport.c - the memory port itself: what tests rely on when they rely on it. */
#include "memport.h"
#include "memport_nic.h"
#include "net/csum.h"
#include "net/emit.h"
#include "net/seg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const uint8_t peer[6] = {2, 0, 0, 0, 0, 2};

static struct memport *
port_with(uint32_t caps, uint32_t tx_frames, bool late)
{
	struct memport_config cfg = {
		.caps = caps, .tx_frames = tx_frames, .rx_frames = 4, .late_completion = late};

	return memport_new(&cfg);
}

static struct corq_frame *
tx_frame(struct memport *mp)
{
	struct corq_port *port = memport_port(mp);
	struct corq_frame *f;

	assert_int_equal(port->ops->tx_alloc(port, &f, 1), 1);
	assert_ptr_equal(f->data, f->buf_start + CORQ_FRAME_HEADROOM);
	return f;
}

/* A TCP segment of len bytes in a frame, as the engine builds one. */
static struct corq_frame *
segment(struct memport *mp, uint32_t len, uint8_t flags, uint16_t segsz, uint32_t caps)
{
	struct corq_addr src, dst;
	struct corq_tcp_out o = {.src = &src,
		.dst = &dst,
		.sport = 80,
		.dport = 40000,
		.seq = 1000,
		.ack = 7,
		.wnd = 100,
		.flags = flags,
		.ttl = 64};
	struct corq_frame *f = tx_frame(mp);

	corq_addr_parse("10.0.0.1", &src);
	corq_addr_parse("10.0.0.2", &dst);
	for (uint32_t i = 0; i < len; i++)
		f->data[i] = (uint8_t)i;
	f->len = (uint16_t)len;
	f->pkt_len = len;
	if (segsz) {
		f->flags |= CORQ_FRAME_TX_TSO;
		f->tso_segsz = segsz;
	}
	corq_emit_tcp(f, &o, peer, memport_port(mp)->mac, caps);
	return f;
}

static uint16_t
send_one(struct memport *mp, struct corq_frame *f)
{
	return memport_port(mp)->ops->tx_burst(memport_port(mp), &f, 1);
}

static void
verify_csums(const struct memport_pkt *p)
{
	const uint8_t *ip = p->bytes + CORQ_ETH_HLEN, *tcp = ip + CORQ_IP4_HLEN;
	uint32_t len = p->len - CORQ_ETH_HLEN - CORQ_IP4_HLEN;

	assert_int_equal(corq_get_be16(ip + 2), len + CORQ_IP4_HLEN);
	assert_int_equal(memport_sum(ip, CORQ_IP4_HLEN, 0), 0xffff);
	assert_int_equal(
		memport_sum(tcp, len, memport_sum(ip + 12, 8, CORQ_IPPROTO_TCP + len)), 0xffff);
}

static void
test_software_segment(void **state)
{
	struct memport *mp = port_with(0, 0, false);
	struct memport_pkt *p;

	(void)state;
	assert_int_equal(send_one(mp, segment(mp, 101, CORQ_TH_ACK, 0, 0)), 1);
	p = memport_take_tx(mp);
	assert_non_null(p);
	verify_csums(p);
	assert_int_equal(p->len, 54 + 101);
	assert_null(memport_violation(mp));
	free(p);
	memport_free(mp);
}

static void
test_offloads(void **state)
{
	const uint32_t caps = CORQ_PORT_CAP_TSO | CORQ_PORT_CAP_L4_CSUM | CORQ_PORT_CAP_IP_CSUM;
	const uint32_t emit = CORQ_EMIT_L4_OFFLOAD | CORQ_EMIT_IP_OFFLOAD;
	struct memport *mp = port_with(caps, 0, false);
	uint8_t flags = CORQ_TH_ACK | CORQ_TH_PSH | CORQ_TH_FIN;
	struct memport_pkt *p;

	(void)state;
	send_one(mp, segment(mp, 100, flags, 0, emit));
	p = memport_take_tx(mp);
	verify_csums(p);
	free(p);
	send_one(mp, segment(mp, 250, flags, 100, emit));
	for (uint32_t i = 0; i < 3; i++) {
		const uint8_t *tcp;

		p = memport_take_tx(mp);
		assert_non_null(p);
		verify_csums(p);
		tcp = p->bytes + CORQ_ETH_HLEN + CORQ_IP4_HLEN;
		assert_int_equal(corq_get_be32(tcp + 4), 1000 + 100 * i);
		assert_int_equal(tcp[13], i == 2 ? flags : CORQ_TH_ACK);
		assert_int_equal(p->len, 54 + (i == 2 ? 50 : 100));
		assert_int_equal(tcp[20], (uint8_t)(100 * i));
		free(p);
	}
	assert_null(memport_take_tx(mp));
	assert_null(memport_violation(mp));
	memport_free(mp);
}

static void
expect_violation(struct memport *mp, const char *text)
{
	struct memport_pkt *p;

	assert_non_null(memport_violation(mp));
	if (strstr(memport_violation(mp), text) == NULL)
		fail_msg("'%s' is not '%s'", memport_violation(mp), text);
	while ((p = memport_take_tx(mp)) != NULL)
		free(p);
	memport_free(mp);
}

static void
test_violations(void **state)
{
	struct memport *mp = port_with(0, 0, false);
	struct corq_frame *f;

	(void)state;
	send_one(mp, segment(mp, 100, CORQ_TH_ACK, 0, CORQ_EMIT_L4_OFFLOAD));
	expect_violation(mp, "not offered");

	mp = port_with(0, 0, false);
	f = segment(mp, 100, CORQ_TH_ACK, 0, 0);
	f->pkt_len++;
	send_one(mp, f);
	expect_violation(mp, "pkt_len");

	mp = port_with(0, 0, false);
	f = segment(mp, 100, CORQ_TH_ACK, 0, 0);
	f->next = segment(mp, 0, CORQ_TH_ACK, 0, 0);
	f->pkt_len += f->next->len;
	send_one(mp, f);
	expect_violation(mp, "chain");

	mp = port_with(0, 0, false);
	send_one(mp, segment(mp, 1500, CORQ_TH_ACK, 0, 0));
	expect_violation(mp, "above the MTU");

	mp = port_with(CORQ_PORT_CAP_L4_CSUM, 0, false);
	f = segment(mp, 100, CORQ_TH_ACK, 0, CORQ_EMIT_L4_OFFLOAD);
	f->data[CORQ_ETH_HLEN + CORQ_IP4_HLEN + 16] ^= 1;
	send_one(mp, f);
	expect_violation(mp, "pseudo-header");
}

static void
test_late_completion(void **state)
{
	struct memport *mp = port_with(CORQ_PORT_CAP_CHAIN, 0, true);
	struct corq_port *port = memport_port(mp);
	uint8_t bytes[10] = {1, 2, 3};
	struct corq_frame *f = segment(mp, 0, CORQ_TH_ACK, 0, 0);
	struct memport_counts n;
	void *ext[4];

	(void)state;
	f->next = tx_frame(mp);
	f->next->data = bytes;
	f->next->len = sizeof(bytes);
	f->next->flags |= CORQ_FRAME_EXT;
	f->next->ext = bytes;
	f->pkt_len += sizeof(bytes);
	send_one(mp, f);
	memport_counts(mp, &n);
	assert_int_equal(n.tx_out, 2);
	assert_int_equal(port->ops->released(port, ext, 4, 0), 0);
	assert_int_equal(port->ops->released(port, ext, 4, 1), 1);
	assert_ptr_equal(ext[0], bytes);
	memport_counts(mp, &n);
	assert_int_equal(n.tx_out, 0);
	assert_null(memport_violation(mp));

	f = segment(mp, 0, CORQ_TH_ACK, 0, 0);
	f->next = tx_frame(mp);
	f->next->data = bytes;
	f->next->len = sizeof(bytes);
	f->next->flags |= CORQ_FRAME_EXT;
	f->pkt_len += sizeof(bytes);
	send_one(mp, f);
	bytes[5] = 99; /* while the device has it */
	memport_complete(mp);
	expect_violation(mp, "changed");
}

static void
test_receive(void **state)
{
	struct memport *mp = port_with(0, 0, false);
	struct corq_port *port = memport_port(mp);
	const uint16_t split[] = {60, 30};
	const struct memport_how how = {.split = split, .n_split = 2, .flags = CORQ_FRAME_RX_HASH};
	struct corq_frame *f[4], *part;
	struct memport_counts n;
	uint8_t bytes[100];

	(void)state;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	assert_true(memport_inject_as(mp, bytes, 100, &how));
	assert_true(memport_inject(mp, bytes, 100));
	assert_false(memport_inject(mp, bytes, 100)); /* four frames are out */
	assert_int_equal(port->n_rx_nombuf, 1);
	memport_set_rx_max(mp, 1);
	assert_int_equal(port->ops->rx_burst(port, f, 4), 1);
	assert_int_equal(port->backlog, 1);
	memport_set_rx_max(mp, 0);
	assert_int_equal(port->ops->rx_burst(port, f + 1, 3), 1);
	assert_int_equal(port->backlog, 0);
	assert_int_equal(f[0]->pkt_len, 100);
	assert_int_equal(f[0]->len, 60);
	assert_int_equal(f[0]->flags, CORQ_FRAME_RX_HASH);
	assert_int_equal(f[0]->next->len, 30);
	assert_int_equal(f[0]->next->next->data[0], 90);
	part = f[0]->next; /* a chain may be taken apart: each part goes back alone */
	f[0]->next = NULL;
	f[2] = part;
	port->ops->free_bulk(port, f, 3);
	memport_counts(mp, &n);
	assert_int_equal(n.rx_out, 0);
	memport_free(mp);
}

static void
test_limits(void **state)
{
	struct memport *mp = port_with(0, 3, false);
	struct corq_port *port = memport_port(mp);
	struct corq_frame *f[4];
	struct memport_pkt *p;

	(void)state;
	assert_int_equal(port->ops->tx_alloc(port, f, 4), 3);
	port->ops->free_bulk(port, f, 3);
	for (int i = 0; i < 3; i++)
		f[i] = segment(mp, 10, CORQ_TH_ACK, 0, 0);
	memport_set_tx_room(mp, 2);
	assert_int_equal(port->ops->tx_burst(port, f, 3), 2);
	assert_int_equal(port->ops->tx_burst(port, f + 2, 1), 0);
	memport_set_tx_room(mp, UINT32_MAX);
	assert_int_equal(port->ops->tx_burst(port, f + 2, 1), 1);
	while ((p = memport_take_tx(mp)) != NULL)
		free(p);
	memport_limit_tx(mp, 0);
	assert_int_equal(port->ops->tx_alloc(port, f, 1), 0);
	memport_free(mp);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_software_segment),
		cmocka_unit_test(test_offloads),
		cmocka_unit_test(test_violations),
		cmocka_unit_test(test_late_completion),
		cmocka_unit_test(test_receive),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
