/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hints.c - see hints.h. Keys are those of extension.c, but for cpu_lost_pct_of_both, which
 * stands there by core. Where a counter is part of another one, the more special comes first.
 */
#include "ab/hints.h"

#include <stddef.h>

#define OF(field) offsetof(struct ab_figures, field)

static const struct hint {
	const char *key;
	size_t at; /* of a uint64_t in struct ab_figures */
	const char *text;
} hints[] = {
	{"conn_refused", OF(refused), "nothing listens on that port, or its backlog was full"},
	{"conn_failed", OF(bad_connect),
		"no connection was made: is the server up, and do its answers find the way "
		"back?"},
	{"conn_timeout", OF(timeouts),
		"no answer within -s seconds: the server is overloaded or lost; a smaller -c "
		"asks less of it at a time, a larger -s waits longer"},
	{"conn_reset", OF(resets),
		"the server reset connections: it crashed, reached a limit of its own "
		"(workers, open files, requests a connection), or a firewall did it"},
	{"responses_cut_short", OF(cut_short),
		"the server closed before the end that it had announced: its log should say why"},
	{"responses_garbage", OF(garbage), "what came is no HTTP: is this port a web server's?"},
	{"responses_length", OF(bad_length),
		"the length differs from the first response's: a page that changes wants -l"},
	{"responses_not_2xx", OF(not_2xx),
		"the server answered with another status than 2xx: such an answer is often "
		"cheaper than the page, so the rate is not that of the page"},
	{"write_errors", OF(write_errors),
		"the connection had ended before the request was written"},
	{"keepalive_closed_idle", OF(idle_closed),
		"the server closed kept connections before it read the request, which was sent "
		"again: its limit of requests or of time for a connection is reached"},
	{"not_closed_by_peer", OF(not_closed),
		"the server kept connections open after its last response: each cost a second "
		"of its slot; --close first does not wait for it"},
	{"syn_met_time_wait", OF(syn_met_time_wait),
		"ports came round while the server still held them in TIME_WAIT: nothing is "
		"lost, each cost three packets; more addresses (--ip A-B/LEN) avoid it"},
	{"ports_refused", OF(own.ports_refused),
		"no local port was free and connects waited: widen --ip, or let the server "
		"close first"},
	{"tw_evicted", OF(own.tw_evicted),
		"TIME_WAITs were given up early since their table was full: raise --max-conns"},
	{"rx_missed", OF(own.rx_missed),
		"frames were lost before we saw them: our core was late or the ring is small"},
	{"rx_nombuf", OF(own.rx_nombuf), "frames were lost for want of buffers"},
	{"rx_csum_partial", OF(csum_partial),
		"the peer left checksums to its device: turn its offloads off (ethtool -K IF "
		"tx off)"},
	{"cpu_lost_pct_of_both", OF(both_lost_pct),
		"other programs had the CPUs of both ends: these are figures of a machine that "
		"others load; run again when it is quiet"},
	{"handoff_dropped", OF(own.handoff_dropped),
		"frames were lost between our cores: one of them is much slower than the others"},
};

const char *
ab_hint_at(const struct ab_figures *f, unsigned i, uint64_t *count, const char **text)
{
	if (i >= sizeof(hints) / sizeof(hints[0]))
		return NULL;
	*count = *(const uint64_t *)(const void *)((const char *)f + hints[i].at);
	*text = hints[i].text;
	return hints[i].key;
}
