/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket.c - the socket calls. The attachment's thread. corq_socket touches its lane and the new
 * slot, nothing that another thread writes but by a close; a socket without a core keeps what it
 * was asked for in its slot.
 */
#include "ctl/instance.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* slot.conn of a socket that no core knows. */
#define WANTS_NONBLOCK 1u

/* Is it a socket that we have? Bad ones leave the fast path here, with the reason. */
static CORQ_NOINLINE int
why_not(int domain, int type, int protocol)
{
	if (domain != AF_INET)
		return -EAFNOSUPPORT;
	if (type & ~0xf & ~(SOCK_NONBLOCK | SOCK_CLOEXEC))
		return -EINVAL;
	if ((type & 0xf) != SOCK_STREAM)
		return -ESOCKTNOSUPPORT;
	return protocol == 0 || protocol == IPPROTO_TCP ? 0 : -EPROTONOSUPPORT;
}

static CORQ_ALWAYS_INLINE bool
is_plain(int domain, int type, int protocol)
{
	return domain == AF_INET && type == SOCK_STREAM && protocol == 0;
}

int
corq_socket(struct corq_att *att, int domain, int type, int protocol, corq_h *out)
{
	corq_h h;
	int rc;

	if (CORQ_UNLIKELY(!is_plain(domain, type, protocol))) {
		rc = why_not(domain, type, protocol);
		if (rc)
			return rc;
	}
	h = corq_lane_alloc(&att->lane, type & SOCK_NONBLOCK ? WANTS_NONBLOCK : 0);
	if (CORQ_UNLIKELY(h == CORQ_H_NONE))
		return -EMFILE;
	*out = h;
	return 0;
}

int
corq_close(struct corq_att *att, corq_h h)
{
	return corq_lane_close(&att->lane, h);
}
