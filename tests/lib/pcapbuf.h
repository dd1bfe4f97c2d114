/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pcapbuf.h - the last packets of a test, kept in memory and written as a capture when it fails.
 *
 * Classic pcap with nanosecond stamps (magic a1b23c4d), Ethernet. Bounded: the oldest packet goes
 * when `max` are kept. Used by one thread, the test's.
 */
#ifndef CORQ_TEST_PCAPBUF_H
#define CORQ_TEST_PCAPBUF_H

#include <stdint.h>

struct pcapbuf;

struct pcapbuf *pcapbuf_new(uint32_t max);
void pcapbuf_free(struct pcapbuf *pb);
void pcapbuf_add(struct pcapbuf *pb, uint64_t ns, const uint8_t *bytes, uint32_t len);
/* 0, or -1 with errno. */
int pcapbuf_write(const struct pcapbuf *pb, const char *path);

#endif
