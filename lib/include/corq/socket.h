/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket.h - the socket-like API: from any thread, by handle.
 *
 * A thread attaches to an instance and gets an attachment, with which it makes its calls. An
 * attachment is its thread's alone; handles (corq_h) are everybody's: what one thread opened any
 * other may close. A handle that was closed is EBADF for ever, never another socket; of two threads
 * that close one handle one gets 0.
 *
 * Handles come from a lane, the attachment's own part of the instance's slots, in blocks of 4096.
 * No call here takes a lock, but attach and detach. None waits for another thread, but attach,
 * detach, and the call that ends a rest, while another thread takes what was freed there. What
 * others close of a lane's handles comes back to it within some calls, and before it is told
 * EMFILE. A thread that makes no calls for a while says so (corq_thread_idle): then what was freed
 * in its lane is there for others.
 *
 * A thread that ends without corq_detach loses its handles: the next thread that runs out of room,
 * attaches or asks corq_handle_counts closes them.
 *
 * Functions return 0, or a negative errno.
 */
#ifndef CORQ_SOCKET_H
#define CORQ_SOCKET_H

#include <corq/instance.h>
#include <corq/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct corq_att;

/* Which free handle a socket gets. */
enum corq_order {
	CORQ_ORDER_LOWEST, /* the lane's lowest, of those that it knows of */
	CORQ_ORDER_FAST,   /* any, the one freed last as a rule */
};

#define CORQ_MAX_THREADS     1024     /* attachments of an instance */
#define CORQ_THREAD_HANDLES  16777216 /* handles of an attachment */
#define CORQ_MAX_HANDLES     67108864 /* handles of an instance, see corq_config.max_handles */
#define CORQ_DEFAULT_HANDLES 1048576

struct corq_attach_opts {
	uint32_t max_handles; /* that it may have open; 0: CORQ_THREAD_HANDLES */
	enum corq_order order;
};

/*
 * The calling thread begins to use the instance. opts may be NULL: no limit, lowest. Its lane's
 * memory is on the NUMA node on which the thread runs now.
 * -EINVAL: an order that there is not, or more handles than an attachment may have. -ENOMEM.
 * -EUSERS: CORQ_MAX_THREADS are attached.
 */
int corq_attach(
	struct corq_instance *inst, const struct corq_attach_opts *opts, struct corq_att **out);

/* The thread of the attachment ends its use. Handles that were opened with it and are still open
 * are closed, for everybody. */
void corq_detach(struct corq_att *att);

/* The thread makes no call for a while. Its next call ends that by itself. */
void corq_thread_idle(struct corq_att *att);

/*
 * A new TCP socket: domain AF_INET, type SOCK_STREAM (or'ed with SOCK_NONBLOCK, SOCK_CLOEXEC, which
 * all handles are), protocol 0 or IPPROTO_TCP. No core hears of it yet.
 * -EMFILE: the attachment has max_handles open, or the instance has no free slot that this thread
 * can reach; those that others have free come with a later call. -EAFNOSUPPORT: another domain.
 * -ESOCKTNOSUPPORT: another type. -EPROTONOSUPPORT: another protocol. -EINVAL: flags that there are
 * not.
 */
int corq_socket(struct corq_att *att, int domain, int type, int protocol, corq_h *out);

/* Closes any thread's handle. -EBADF: it was closed before, or is none. */
int corq_close(struct corq_att *att, corq_h h);

/* Of an instance. Exact while nobody opens or closes. Not for every turn of a loop: it reads a bit
 * a slot. */
struct corq_handle_counts {
	uint64_t capacity; /* handles that can be open at once: max_handles less retired slots */
	uint64_t open;
	uint64_t stranded; /* free, but in blocks that are lent to lanes: others wait for those */
	uint64_t pending;  /* of those, closed by other threads, and not folded by the owner */
	uint64_t retired;  /* slots that were used 2^38 times and rest for ever */
	uint64_t blocks;   /* of 4096 handles */
	uint64_t blocks_lent;
	uint64_t threads; /* attached */
	uint64_t emfile;  /* times that attached threads were told EMFILE ... */
	uint64_t starved; /* ... of those, while other lanes had free slots */
};
void corq_handle_counts(struct corq_instance *inst, struct corq_handle_counts *out);

#ifdef __cplusplus
}
#endif
#endif
