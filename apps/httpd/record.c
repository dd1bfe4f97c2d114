/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.c - which requests go to the access log, and what it is told of them. On the core. The
 * record waits in the connection's extra until its answer is acknowledged, the next request of the
 * connection is answered (pipelining: then its time ends there), or the connection ends.
 */
#include "httpd/state.h"

#include <string.h>

void
httpd_record_begin(struct httpd_core *hc, struct corq_conn *conn, uint16_t status)
{
	struct httpd_extra *extra;
	struct corq_conn_info info;

	hc->log_wait = hc->server->opts.log_every;
	extra = httpd_use(hc, conn, EXTRA_LOGGED);
	if (extra == NULL)
		return;
	corq_conn_get_info(hc->core, conn, &info);
	extra->began_ns = hc->began_ns;
	extra->record.addr = info.raddr;
	extra->record.body_bytes = 0;
	extra->record.wall_s = hc->wall_s;
	extra->record.status = status;
	extra->record.line_len = (uint16_t)httpd_smaller(hc->line_len, HTTPD_LOG_LINE_MAX);
	memcpy(extra->record.line, hc->line, extra->record.line_len);
	httpd_choose_ops(hc, conn);
}

void
httpd_record_end(
	struct httpd_core *hc, struct corq_conn *conn, enum httpd_end end, uint64_t unacked)
{
	struct httpd_extra *extra = httpd_extra_of(conn);
	uint64_t us = (corq_core_now(hc->core) - extra->began_ns) / 1000;

	extra->record.us = (uint32_t)httpd_smaller(us, UINT32_MAX);
	extra->record.end = (uint8_t)end;
	extra->record.body_bytes -= httpd_smaller(unacked, extra->record.body_bytes);
	httpd_log_push(hc->log, &extra->record);
	httpd_unuse(hc, conn, EXTRA_LOGGED);
}

void
httpd_record_next(struct httpd_core *hc, struct corq_conn *conn)
{
	if (!httpd_uses(conn, EXTRA_LOGGED))
		return;
	httpd_record_end(hc, conn, HTTPD_END_KEPT, 0);
	httpd_choose_ops(hc, conn);
}

void
httpd_record_keep(struct httpd_core *hc, struct corq_conn *conn, struct httpd_extra *extra)
{
	if (hc->log == NULL)
		return;
	httpd_record_next(hc, conn); /* its place is taken */
	extra->began_ns = hc->began_ns;
	extra->record.line_len = (uint16_t)hc->line_len;
	memcpy(extra->record.line, hc->line, hc->line_len);
}

void
httpd_record_recall(struct httpd_core *hc, const struct httpd_extra *extra)
{
	if (hc->log == NULL)
		return;
	hc->began_ns = extra->began_ns;
	hc->line_len = extra->record.line_len;
	hc->line = memcpy(hc->line_text, extra->record.line, extra->record.line_len);
}
