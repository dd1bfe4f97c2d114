/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kinds.c - device strings, and the one table of device kinds.
 *
 * A new kind is a row here and a file with its functions; dev.c asks the row and knows no kind by
 * name. Start only, any thread.
 */
#include <corq/instance.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
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
asked_mtu(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf)
{
	(void)spec;
	return conf->mtu != 0 ? conf->mtu : 1500;
}

/* Drivers of NICs round down to 1 KiB or to powers of two. */
static uint32_t
usual_room(uint32_t mtu)
{
	uint32_t room = 2048;

	while (room < mtu + PORT_L2_MAX + 8)
		room *= 2;
	/* vmxnet3 has 14 bits for it; who rounds this down puts a frame into two buffers */
	return CORQ_MIN(room, 15360u);
}

#define CAP(name) (UINT64_C(1) << CAP_##name)

static const struct dev_kind kinds[CORQ_DEV_KINDS] = {
	[CORQ_DEV_LOOP] = {.name = "loop",
		.syntax = "loop",
		.text = "two ends in this process",
		.parse = loop_parse,
		.mtu = asked_mtu},
	[CORQ_DEV_MEMIF] = {.name = "memif",
		.syntax = "memif:server|client,SOCKET",
		.text = "shared memory to another process",
		.bus = "vdev",
		.driver = "net_memif",
		.wait_ms = 10000,
		.guard = true,
		.parse = corq_memif_parse,
		.check = corq_memif_check,
		.mtu = asked_mtu,
		.room = corq_memif_room,
		.vdev_args = corq_memif_vdev_args,
		.no_link = corq_memif_no_link},
	[CORQ_DEV_VETH] = {.name = "veth",
		.syntax = "veth:IF",
		.text = "an interface of the kernel's, by AF_PACKET",
		.bus = "vdev",
		.driver = "net_af_packet",
		.syscalls = true,
		.wait_ms = 1000,
		.kernel_if = true,
		.caps = CAP(NET_RAW) | CAP(NET_ADMIN),
		.parse = corq_netif_parse,
		.check = corq_netif_check,
		.mtu = corq_veth_mtu,
		.room = corq_veth_room,
		.vdev_args = corq_veth_vdev_args,
		.started = corq_veth_started,
		.missed = corq_veth_missed,
		.enter = corq_netif_enter,
		.leave = corq_netif_leave,
		.link = corq_netif_link,
		.no_link = corq_netif_no_link},
	[CORQ_DEV_XDP] = {.name = "xdp",
		.syntax = "xdp:IF",
		.text = "an interface of the kernel's, by AF_XDP",
		.bus = "vdev",
		.driver = "net_af_xdp",
		.syscalls = true,
		.wait_ms = 1000,
		.one_area = true,
		.chatty = true,
		.kernel_if = true,
		.caps = CAP(NET_RAW) | CAP(NET_ADMIN) | CAP(SYS_ADMIN) | CAP(IPC_LOCK),
		.parse = corq_netif_parse,
		.check = corq_xdp_check,
		.mtu = corq_xdp_mtu,
		.room = corq_xdp_room,
		.vdev_args = corq_xdp_vdev_args,
		.enter = corq_xdp_enter,
		.leave = corq_xdp_leave,
		.link = corq_netif_link,
		.no_link = corq_netif_no_link},
	[CORQ_DEV_TAP] = {.name = "tap",
		.syntax = "tap:NAME[,HOST/LEN]",
		.text = "a new interface of this host",
		.bus = "vdev",
		.driver = "net_tap",
		.syscalls = true,
		.wait_ms = 2000,
		.mac_is_peers = true,
		.caps = CAP(NET_ADMIN),
		.parse = corq_tap_parse,
		.check = corq_tap_check,
		.mtu = asked_mtu,
		.room = usual_room,
		.vdev_args = corq_tap_vdev_args,
		.started = corq_tap_started,
		.link = corq_netif_link,
		.no_link = corq_tap_no_link},
	[CORQ_DEV_VDEV] = {.name = "vdev",
		.syntax = "vdev:NAME[,ARGS]",
		.text = "a virtual device of DPDK's, with its arguments",
		.bus = "vdev",
		.wait_ms = 1000,
		.shared_mem = true,
		.chatty = true,
		.may_wait = true,
		.parse = corq_vdev_parse,
		.check = corq_vdev_check,
		.mtu = asked_mtu,
		.room = usual_room,
		.vdev_args = corq_vdev_vdev_args,
		.started = corq_vdev_started,
		.missed = corq_veth_missed,
		.no_link = corq_vdev_no_link},
	[CORQ_DEV_PCI] = {.name = "pci",
		.syntax = "pci:ADDRESS[,ARGS]",
		.text = "a NIC, with arguments for its driver",
		.bus = "pci",
		.wait_ms = 9000,
		.shared_mem = true,
		.rss = true,
		.parse = corq_pci_parse,
		.check = corq_pci_check,
		.mtu = asked_mtu,
		.room = usual_room,
		.no_link = corq_pci_no_link},
};
_Static_assert(CORQ_ARRAY_LEN(kinds) == CORQ_DEV_KINDS, "one row a kind");

const struct dev_kind *
corq_dev_kind_row(enum corq_dev_kind kind)
{
	return &kinds[kind];
}

const char *
corq_device_at(unsigned i, const char **text)
{
	if (i >= CORQ_DEV_KINDS)
		return NULL;
	*text = kinds[i].text;
	return kinds[i].syntax;
}

static void
unknown_kind(const char *s, char *err, size_t errlen)
{
	char known[128] = "";

	for (int k = 0; k < CORQ_DEV_KINDS; k++) {
		strncat(known, k == 0 ? "" : ", ", sizeof(known) - strlen(known) - 1);
		strncat(known, kinds[k].name, sizeof(known) - strlen(known) - 1);
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
	uint32_t max = kind->bus == NULL ? LOOP_MTU_MAX : 9600;
	uint64_t missing = corq_caps_missing(kind->caps);
	struct corq_dev_conf quiet = *conf;
	int rc = 0;

	if (conf->n_queues == 0 || conf->n_queues + conf->n_peers > CORQ_EAL_CORES_MAX) {
		corq_port_err(err, errlen, "%s: %u cores; 1 to %d are possible", kind->name,
			conf->n_queues + conf->n_peers, CORQ_EAL_CORES_MAX);
		return -ERANGE;
	}
	if (conf->n_peers != 0 && kind->bus != NULL) {
		corq_port_err(err, errlen, "%s has no second side in this process", kind->name);
		return -EINVAL;
	}
	if (conf->mtu != 0 && (conf->mtu < PORT_MTU_MIN || conf->mtu > max)) {
		corq_port_err(err, errlen, "MTU %u: %u to %u are possible on %s", conf->mtu,
			PORT_MTU_MIN, max, kind->name);
		return -ERANGE;
	}
	quiet.log = missing != 0 ? NULL : conf->log; /* one line is enough then */
	if (kind->check != NULL)
		rc = kind->check(spec, &quiet, err, errlen);
	if (rc == 0 && missing != 0) {
		char what[64];

		snprintf(what, sizeof(what), "%s:%s", kind->name, spec->ifname);
		rc = corq_caps_line(what, missing, err, errlen);
	}
	return rc;
}

void
corq_dev_eal_conf(const struct corq_dev_spec *spec, struct corq_eal_conf *conf)
{
	conf->single_file =
		spec->zero_copy || (spec->kind == CORQ_DEV_VDEV && corq_vdev_is_virtio(spec));
	if (spec->kind != CORQ_DEV_PCI)
		return;
	conf->pci = spec->args;
	if (conf->huge == CORQ_HUGE_AUTO)
		conf->huge = CORQ_HUGE_NEED; /* a device reads and writes them by itself */
}

const char *
corq_dev_hint(const struct corq_dev_spec *spec, char *buf, size_t len)
{
	buf[0] = '\0';
	return kinds[spec->kind].kernel_if ? corq_port_offload_hint(spec->ifname, buf, len) : buf;
}
