/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unacked.h - what a connection that ended badly did not deliver. Pure.
 */
#ifndef CORQ_HTTPD_UNACKED_H
#define CORQ_HTTPD_UNACKED_H

#include <stdint.h>

struct httpd_unacked {
	uint64_t responses; /* of which a byte is missing */
	uint64_t body;      /* body bytes missing */
};

/*
 * Of the last `bytes` sent, when the last response was `head` and `body` bytes long. Several
 * responses can be under way (pipelining); those before the last one are taken to be like it.
 */
static inline struct httpd_unacked
httpd_unacked(uint64_t bytes, uint64_t head, uint64_t body)
{
	struct httpd_unacked lost = {0, 0};

	while (bytes != 0) {
		uint64_t part = bytes < body ? bytes : body;

		lost.responses++;
		lost.body += part;
		bytes -= part;
		part = bytes < head || head == 0 ? bytes : head;
		bytes -= part;
	}
	return lost;
}

#endif
