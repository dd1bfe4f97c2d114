/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kinds.c - device strings, and the one table of device kinds.
 *
 * A new kind is a row here and a file with its functions; dev.c asks the row and knows no kind by
 * name. Start only, any thread.
 */
#include <errno.h>
#include <string.h>

#include "port/port_int.h"

static int
loop_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	(void)spec;
	if (*rest == '\0')
		return 0;
	corq_port_err(err, errlen, "loop takes no argument");
	return -EINVAL;
}

/* Larger than a NIC's: what a frame's 16 bits of room allow. */
#define LOOP_MTU_MAX 65000

static uint32_t
loop_mtu(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf)
{
	(void)spec;
	return conf->mtu != 0 ? conf->mtu : 1500;
}

static const struct dev_kind kinds[CORQ_DEV_KINDS] = {
	[CORQ_DEV_LOOP] = {.name = "loop", .syntax = "loop", .parse = loop_parse, .mtu = loop_mtu},
	[CORQ_DEV_MEMIF] = {.name = "memif",
		.syntax = "memif:server|client,SOCKET",
		.driver = "net_memif",
		.wait_ms = 10000,
		.guard = true,
		.parse = corq_memif_parse,
		.check = corq_memif_check,
		.mtu = corq_memif_mtu,
		.room = corq_memif_room,
		.vdev_args = corq_memif_vdev_args,
		.no_link = corq_memif_no_link},
	[CORQ_DEV_VETH] = {.name = "veth",
		.syntax = "veth:IF",
		.driver = "net_af_packet",
		.wait_ms = 1000,
		.parse = corq_veth_parse,
		.check = corq_veth_check,
		.mtu = corq_veth_mtu,
		.room = corq_veth_room,
		.vdev_args = corq_veth_vdev_args,
		.link = corq_veth_link,
		.no_link = corq_veth_no_link},
};
_Static_assert(CORQ_ARRAY_LEN(kinds) == CORQ_DEV_KINDS, "one row a kind");

const struct dev_kind *
corq_dev_kind_row(enum corq_dev_kind kind)
{
	return &kinds[kind];
}

static void
unknown_kind(const char *s, char *err, size_t errlen)
{
	char known[128] = "";

	for (int k = 0; k < CORQ_DEV_KINDS; k++) {
		strncat(known, k == 0 ? "" : ", ", sizeof(known) - strlen(known) - 1);
		strncat(known, kinds[k].syntax, sizeof(known) - strlen(known) - 1);
	}
	corq_port_err(err, errlen, "unknown device \"%.64s\"; known: %s", s, known);
}

int
corq_dev_parse(const char *s, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	size_t len = strcspn(s, ":");

	memset(spec, 0, sizeof(*spec));
	spec->id = -1;
	for (int k = 0; k < CORQ_DEV_KINDS; k++) {
		if (strlen(kinds[k].name) != len || strncmp(s, kinds[k].name, len) != 0)
			continue;
		spec->kind = (enum corq_dev_kind)k;
		return kinds[k].parse(s[len] == ':' ? s + len + 1 : s + len, spec, err, errlen);
	}
	unknown_kind(s, err, errlen);
	return -EINVAL;
}

int
corq_dev_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen)
{
	const struct dev_kind *kind = &kinds[spec->kind];
	uint32_t max = kind->driver == NULL ? LOOP_MTU_MAX : 9600;

	if (conf->n_queues == 0 || conf->n_queues + conf->n_peers > CORQ_EAL_CORES_MAX) {
		corq_port_err(err, errlen, "%s: %u cores; 1 to %d are possible", kind->name,
			conf->n_queues + conf->n_peers, CORQ_EAL_CORES_MAX);
		return -ERANGE;
	}
	if (conf->n_peers != 0 && kind->driver != NULL) {
		corq_port_err(err, errlen, "%s has no second side in this process", kind->name);
		return -EINVAL;
	}
	/* RFC 791 for the lower bound that any IPv4 host takes; IPv6 wants 1280 */
	if (conf->mtu != 0 && (conf->mtu < 576 || conf->mtu > max)) {
		corq_port_err(err, errlen, "MTU %u: 576 to %u are possible on %s", conf->mtu, max,
			kind->name);
		return -ERANGE;
	}
	return kind->check != NULL ? kind->check(spec, conf, err, errlen) : 0;
}
