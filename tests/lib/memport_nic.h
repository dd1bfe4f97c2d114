/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memport_nic.h - what a NIC does to a packet on its way out: cut it, fill in checksums.
 *
 * Its own arithmetic, on purpose: the library's checksum and splitter code is what is tested.
 */
#ifndef CORQ_TEST_MEMPORT_NIC_H
#define CORQ_TEST_MEMPORT_NIC_H

#include "memport.h"

/* Carries out the offloads that f asks for and captures what comes out. bytes may be changed. */
void memport_nic_send(struct memport *mp, const struct corq_port *port, const struct corq_frame *f,
	uint8_t *bytes, uint32_t len);

/* memport.c */
void memport_capture(struct memport *mp, const uint8_t *bytes, uint32_t len);
void memport_violate(struct memport *mp, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The Internet checksum, slow and plain: the folded, not complemented sum of len bytes. */
uint16_t memport_sum(const uint8_t *p, uint32_t len, uint32_t start);

#endif
