/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reasons.h - the enum and the tables made from reasons.def.
 *
 * A function that may refuse a packet returns an enum corq_reason; CORQ_R_NONE means accepted.
 * Whoever releases the packet counts the reason, once. Const tables only: any thread.
 */
#ifndef CORQ_NET_REASONS_H
#define CORQ_NET_REASONS_H

enum corq_reason {
#define CORQ_REASON(code, severity, text) CORQ_R_##code,
#include "net/reasons.def"
#undef CORQ_REASON
	CORQ_R_COUNT
};

enum corq_severity {
	CORQ_SEV_DROP,  /* a frame was refused */
	CORQ_SEV_EVENT, /* worth counting, nothing was lost */
	CORQ_SEV_WARN,  /* an operator should look */
};

/* The code in lower case, as JSON and telemetry print it; "?" for a value outside the enum. */
const char *corq_reason_name(enum corq_reason r);

/* One line for people; "?" for a value outside the enum. */
const char *corq_reason_text(enum corq_reason r);

/* A value outside the enum counts as CORQ_SEV_WARN. */
enum corq_severity corq_reason_severity(enum corq_reason r);

#endif
