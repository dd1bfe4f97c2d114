/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vdev.c - the device kind "vdev:NAME[,ARGS]": any of DPDK's virtual devices, by its own name and
 * with its own arguments: net_af_packet0,iface=eth1 or virtio_user0,path=/run/vh.sock or
 * net_vhost0,iface=/run/vh.sock.
 *
 * Nothing is known about the driver, so what holds for all is done: buffers in memory that EAL
 * knows, one part a packet, no offload, and the driver's own words when it fails.
 *
 * Start only, main thread.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "port/port_int.h"

int
corq_vdev_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	size_t len = strcspn(rest, ",");
	const char *args = rest[len] == ',' ? rest + len + 1 : "";

	if (len == 0 || len >= sizeof(spec->name) || strlen(args) >= sizeof(spec->args)) {
		corq_port_err(err, errlen,
			"vdev wants vdev:NAME[,ARGS], as vdev:net_af_packet0,iface=eth1");
		return -EINVAL;
	}
	memcpy(spec->name, rest, len);
	strcpy(spec->args, args);
	/* whoever makes the socket does not wait for the other end */
	spec->server = strstr(rest, "vhost") == rest || strstr(rest, "_vhost") != NULL;
	return 0;
}

int
corq_vdev_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen)
{
	bool tap = strncmp(spec->name, "net_tap", 7) == 0 ||
		   strncmp(spec->name, "eth_tap", 7) == 0 || strncmp(spec->name, "net_tun", 7) == 0;

	if (!tap || conf->n_queues <= TAP_QUEUES_MAX)
		return 0;
	corq_port_err(err, errlen, "%s has at most %u queues: --cores %u", spec->name,
		TAP_QUEUES_MAX, TAP_QUEUES_MAX);
	return -ERANGE;
}

/* The interface of AF_PACKET's driver is worth a look: see veth.c. */
int
corq_vdev_started(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, uint32_t mtu,
	struct dev_hold *hold, char *err, size_t errlen)
{
	const char *at = strstr(spec->args, "iface=");
	char name[IF_NAMESIZE];

	if (strstr(spec->name, "_af_packet") == NULL || at == NULL)
		return 0;
	at += strlen("iface=");
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
	hold->index = if_nametoindex(name);
	return corq_veth_started(spec, conf, mtu, hold, err, errlen);
}

bool
corq_vdev_is_virtio(const struct corq_dev_spec *spec)
{
	return strstr(spec->name, "virtio_user") != NULL || strstr(spec->name, "vhost") != NULL;
}

void
corq_vdev_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len)
{
	(void)conf;
	snprintf(buf, len, "%s", spec->args);
}

void
corq_vdev_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen)
{
	corq_port_err(err, errlen, "%s does not come up", spec->name);
}
