/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem.c - memory for the state of cores (corq_port_alloc), and the error line.
 *
 * Plain private mappings, not EAL's heap: core state may reserve many GB of which most is never
 * touched, and no device reads it. Transparent huge pages are asked for; where the kernel has none
 * it is 4 KiB pages. Any thread: threads that attach get memory too.
 */
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include "port/port_int.h"

#define HUGE_2M ((size_t)2 << 20)

void
corq_port_err(char *err, size_t len, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL || len == 0)
		return;
	va_start(ap, fmt);
	vsnprintf(err, len, fmt, ap);
	va_end(ap);
}

static size_t
round_2m(size_t bytes)
{
	return (bytes + HUGE_2M - 1) & ~(HUGE_2M - 1);
}

static void *
map(size_t bytes, int socket, int advice)
{
	size_t size = round_2m(bytes), head;
	uint8_t *p;

	if (bytes == 0 || size < bytes)
		return NULL;
	/* 2 MiB more, then cut to an aligned piece: else no huge page fits at the ends. */
	p = mmap(NULL, size + HUGE_2M, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	head = round_2m((uintptr_t)p) - (uintptr_t)p;
	if (head != 0)
		munmap(p, head);
	p += head;
	munmap(p + size, HUGE_2M - head);
	madvise(p, size, advice);
	if (socket >= 0)
		corq_port_place(p, size, (unsigned)socket);
	return p;
}

void *
corq_port_alloc(size_t bytes, int socket)
{
	return map(bytes, socket, MADV_HUGEPAGE);
}

void *
corq_port_alloc_sparse(size_t bytes, int socket)
{
	return map(bytes, socket, MADV_NOHUGEPAGE);
}

void
corq_port_free(void *p, size_t bytes)
{
	if (p != NULL)
		munmap(p, round_2m(bytes));
}
