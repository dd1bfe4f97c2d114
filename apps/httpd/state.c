/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.c - see state.h.
 */
#include "httpd/state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static struct httpd_extra *
take_extra(struct httpd_core *hc)
{
	struct httpd_extra *extra = hc->free_extra;

	if (extra != NULL)
		hc->free_extra = extra->next_free;
	else if (hc->n_extras < hc->max_extras)
		extra = &hc->extras[hc->n_extras++];
	else
		hc->counts.no_room++;
	return extra;
}

struct httpd_extra *
httpd_use(struct httpd_core *hc, struct corq_conn *conn, enum httpd_use use)
{
	struct httpd_extra *extra = httpd_extra_of(conn);

	if (extra == NULL) {
		extra = take_extra(hc);
		if (extra == NULL)
			return NULL;
		memset((char *)extra + offsetof(struct httpd_extra, word), 0,
			offsetof(struct httpd_extra, record) - offsetof(struct httpd_extra, word));
		extra->word = httpd_word(conn);
		corq_conn_set_user(conn, extra);
	}
	extra->uses |= use;
	return extra;
}

struct httpd_extra *
httpd_use_sized(struct httpd_core *hc, struct corq_conn *conn)
{
	bool before = httpd_uses(conn, EXTRA_SIZED);
	struct httpd_extra *extra = httpd_use(hc, conn, EXTRA_SIZED);

	if (extra != NULL && !before)
		extra->last = extra->before = (struct httpd_sent){0, 0, 0};
	return extra;
}

void
httpd_unuse(struct httpd_core *hc, struct corq_conn *conn, enum httpd_use use)
{
	struct httpd_extra *extra = httpd_extra_of(conn);

	if (extra == NULL)
		return;
	extra->uses &= ~(unsigned)use;
	if (extra->uses != 0)
		return;
	corq_conn_set_user(conn, (void *)(uintptr_t)extra->word);
	extra->next_free = hc->free_extra;
	hc->free_extra = extra;
}

/* ---- headers in pieces ---- */

static void
unlink_partial(struct httpd_core *hc, struct httpd_partial *partial)
{
	if (partial->prev != NULL)
		partial->prev->next = partial->next;
	else
		hc->oldest = partial->next;
	if (partial->next != NULL)
		partial->next->prev = partial->prev;
	else
		hc->newest = partial->prev;
}

void
httpd_partial_drop(struct httpd_core *hc, struct corq_conn *conn)
{
	struct httpd_extra *extra = httpd_extra_of(conn);

	if (extra == NULL || extra->partial == NULL)
		return;
	unlink_partial(hc, extra->partial);
	extra->partial->next = hc->free_partial;
	hc->free_partial = extra->partial;
	extra->partial = NULL;
	httpd_unuse(hc, conn, EXTRA_HEADER);
}

static struct httpd_partial *
take_partial(struct httpd_core *hc, struct corq_conn *conn)
{
	struct httpd_partial *partial;

	if (hc->free_partial == NULL) {
		hc->counts.headers_evicted++;
		httpd_refuse(hc, hc->oldest->conn, 408);
	}
	partial = hc->free_partial;
	hc->free_partial = partial->next;
	partial->conn = conn;
	partial->next = NULL;
	partial->prev = hc->newest;
	if (hc->newest != NULL)
		hc->newest->next = partial;
	else
		hc->oldest = partial;
	hc->newest = partial;
	return partial;
}

bool
httpd_partial_keep(struct httpd_core *hc, struct corq_conn *conn)
{
	struct httpd_extra *extra = httpd_use(hc, conn, EXTRA_HEADER);

	if (extra == NULL) {
		corq_conn_abort(hc->core, conn);
		return false;
	}
	extra->partial = take_partial(hc, conn);
	extra->partial->began_ns = corq_core_now(hc->core);
	httpd_request_copy(&extra->partial->req, &hc->scratch);
	return true;
}

void
httpd_state_free(struct httpd_core *hc, struct corq_conn *conn)
{
	httpd_partial_drop(hc, conn);
	httpd_unuse(hc, conn, (enum httpd_use) ~0u);
}

/* ---- start and end ---- */

static void *
reserve(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p != MAP_FAILED ? p : NULL;
}

int
httpd_state_create(struct httpd_core *hc, size_t max_conns)
{
	hc->partials = reserve(HTTPD_PARTIALS * sizeof(*hc->partials));
	hc->extras = reserve(max_conns * sizeof(*hc->extras));
	hc->max_extras = max_conns;
	if (hc->partials == NULL || hc->extras == NULL)
		return -ENOMEM;
	for (int i = HTTPD_PARTIALS - 1; i >= 0; i--) {
		hc->partials[i].next = hc->free_partial;
		hc->free_partial = &hc->partials[i];
	}
	return 0;
}

void
httpd_state_destroy(struct httpd_core *hc)
{
	for (size_t i = 0; i < hc->n_extras; i++)
		EVP_MD_CTX_free(hc->extras[i].digest);
	if (hc->partials != NULL)
		munmap(hc->partials, HTTPD_PARTIALS * sizeof(*hc->partials));
	if (hc->extras != NULL)
		munmap(hc->extras, hc->max_extras * sizeof(*hc->extras));
}
