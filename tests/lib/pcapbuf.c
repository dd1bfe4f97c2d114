/* SPDX-License-Identifier: BSD-3-Clause */
/* pcapbuf.c - a ring of packets and the capture file made of it. See pcapbuf.h. */
#include "pcapbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct packet {
	uint64_t ns;
	uint32_t len;
	uint8_t *bytes;
};

struct pcapbuf {
	struct packet *ring;
	uint32_t max, n, next;
};

struct pcapbuf *
pcapbuf_new(uint32_t max)
{
	struct pcapbuf *pb = calloc(1, sizeof(*pb));

	if (pb == NULL)
		abort();
	pb->max = max;
	pb->ring = calloc(max, sizeof(*pb->ring));
	if (pb->ring == NULL)
		abort();
	return pb;
}

void
pcapbuf_free(struct pcapbuf *pb)
{
	if (pb == NULL)
		return;
	for (uint32_t i = 0; i < pb->max; i++)
		free(pb->ring[i].bytes);
	free(pb->ring);
	free(pb);
}

void
pcapbuf_add(struct pcapbuf *pb, uint64_t ns, const uint8_t *bytes, uint32_t len)
{
	struct packet *p = &pb->ring[pb->next];

	free(p->bytes);
	p->bytes = malloc(len ? len : 1);
	if (p->bytes == NULL)
		abort();
	memcpy(p->bytes, bytes, len);
	p->len = len;
	p->ns = ns;
	pb->next = (pb->next + 1) % pb->max;
	if (pb->n < pb->max)
		pb->n++;
}

int
pcapbuf_write(const struct pcapbuf *pb, const char *path)
{
	const uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 262144, 1 /* Ethernet */};
	uint32_t first = (pb->next + pb->max - pb->n) % pb->max;
	FILE *f = fopen(path, "wb");

	if (f == NULL)
		return -1;
	fwrite(head, sizeof(head), 1, f);
	for (uint32_t i = 0; i < pb->n; i++) {
		const struct packet *p = &pb->ring[(first + i) % pb->max];
		uint32_t rec[4] = {(uint32_t)(p->ns / 1000000000u), (uint32_t)(p->ns % 1000000000u),
			p->len, p->len};

		fwrite(rec, sizeof(rec), 1, f);
		fwrite(p->bytes, p->len, 1, f);
	}
	if (ferror(f)) {
		fclose(f);
		return -1;
	}
	return fclose(f) == 0 ? 0 : -1;
}
