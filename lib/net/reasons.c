/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reasons.c - names, texts and severities of drops and events, generated from reasons.def.
 *
 * Const tables; called from any thread, never in the data path (that only counts). The list
 * gives codes in upper case for the enum; the compiler folds them to lower case here, character
 * by character, so that no table is built at run time.
 */
#include "net/reasons.h"
#include "base/base.h"

#define NAME_MAX_LEN 32

/* Character i of the string literal s in lower case, 0 beyond its end: a constant. */
#define AT(s, i)     ((s)[(i) < sizeof(s) ? (i) : sizeof(s) - 1])
#define LOWER(s, i)  (char)(AT(s, i) >= 'A' && AT(s, i) <= 'Z' ? AT(s, i) + ('a' - 'A') : AT(s, i))
#define LOWER4(s, i) LOWER(s, i), LOWER(s, (i) + 1), LOWER(s, (i) + 2), LOWER(s, (i) + 3)
#define LOWER_NAME(s)                                                                              \
	{                                                                                          \
		LOWER4(s, 0), LOWER4(s, 4), LOWER4(s, 8), LOWER4(s, 12), LOWER4(s, 16),            \
			LOWER4(s, 20), LOWER4(s, 24), LOWER4(s, 28)                                \
	}

static const char names[][NAME_MAX_LEN] = {
#define CORQ_REASON(code, severity, text) [CORQ_R_##code] = LOWER_NAME(#code),
#include "net/reasons.def"
#undef CORQ_REASON
};
_Static_assert(CORQ_ARRAY_LEN(names) == CORQ_R_COUNT, "a name for each reason");

#define CORQ_REASON(code, severity, text)                                                          \
	_Static_assert(sizeof(#code) <= NAME_MAX_LEN, "raise NAME_MAX_LEN");
#include "net/reasons.def"
#undef CORQ_REASON

static const char *const texts[] = {
#define CORQ_REASON(code, severity, text) [CORQ_R_##code] = text,
#include "net/reasons.def"
#undef CORQ_REASON
};
_Static_assert(CORQ_ARRAY_LEN(texts) == CORQ_R_COUNT, "a text for each reason");

static const unsigned char severities[] = {
#define CORQ_REASON(code, severity, text) [CORQ_R_##code] = CORQ_SEV_##severity,
#include "net/reasons.def"
#undef CORQ_REASON
};
_Static_assert(CORQ_ARRAY_LEN(severities) == CORQ_R_COUNT, "a severity for each reason");

const char *
corq_reason_name(enum corq_reason r)
{
	return (unsigned)r < CORQ_R_COUNT ? names[r] : "?";
}

const char *
corq_reason_text(enum corq_reason r)
{
	return (unsigned)r < CORQ_R_COUNT ? texts[r] : "?";
}

enum corq_severity
corq_reason_severity(enum corq_reason r)
{
	return (unsigned)r < CORQ_R_COUNT ? (enum corq_severity)severities[r] : CORQ_SEV_WARN;
}
