/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap.c - the device kind "tap:NAME[,HOST[/LEN]]": a new interface of this host, through DPDK's TAP
 * driver. The host's end gets an address, so that its programs reach us at once.
 *
 * HOST is the host's address; without it, the lowest of --ip's network that is not ours. The
 * interface goes away with the process, however that ends. One that was made before (ip tuntap add)
 * would not: there may be none of that name. It would not help a user without CAP_NET_ADMIN either,
 * since the driver sets the interface up itself.
 *
 * The kernel finishes checksums and cuts segments before a frame goes into a tap, since the driver
 * offers it no offload; ours are right by themselves. The driver gives the host's end and the port
 * one and the same hardware address; ours differs from it in a bit (dev.c).
 *
 * Start only, main thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "net/addr.h"
#include "port/port_int.h"

#define TUN_PATH   "/dev/net/tun"
#define HOST_QUEUE 10000 /* packets */

int
corq_tap_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	size_t len = strcspn(rest, ",");
	const char *host = rest[len] == ',' ? rest + len + 1 : "";
	struct corq_addr_range range;

	if (!corq_netif_name_ok(rest, len)) {
		corq_port_err(err, errlen,
			"tap wants tap:NAME[,HOST[/LEN]], with a new interface's name of at most "
			"%d bytes without any of /:,=[]%%",
			IFNAMSIZ - 1);
		return -EINVAL;
	}
	if (rest[len] == ',' && (strlen(host) >= sizeof(spec->host) || strchr(host, '-') != NULL ||
					corq_addr_parse_range(host, &range) != 0 ||
					!corq_addr_is_v4(&range.first))) {
		corq_port_err(err, errlen,
			"tap: \"%.40s\" is no address for the host's end; as tap:%.*s,10.77.0.1/24",
			host, (int)len, rest);
		return -EINVAL;
	}
	memcpy(spec->ifname, rest, len);
	snprintf(spec->host, sizeof(spec->host), "%s", host);
	return 0;
}

/* ---- the host's address ---- */

struct host_end {
	uint32_t addr; /* host order; 0: none */
	uint32_t mask;
};

static uint32_t
v4_of(const struct corq_addr *a)
{
	return ntohl(a->w[3]);
}

static uint32_t
mask_of(unsigned int len)
{
	return len == 0 ? 0 : ~0u << (32 - len);
}

static const char *
text_of(uint32_t addr, char buf[INET_ADDRSTRLEN])
{
	struct in_addr in = {htonl(addr)};

	return inet_ntop(AF_INET, &in, buf, INET_ADDRSTRLEN);
}

/* The lowest address of the network that is not first..last; 0: there is none. */
static uint32_t
lowest_other(uint32_t first, uint32_t last, uint32_t mask)
{
	uint32_t net = first & mask, end = net | ~mask, low;

	if (end - net < 1)
		return 0;
	low = end - net == 1 ? net : net + 1; /* RFC 3021: both of a /31 */
	if (low >= first && low <= last)
		low = last + 1;
	return low > end || (low == end && end - net > 1) || low < net ? 0 : low;
}

/* Neither the network itself nor its broadcast address. */
static bool
is_host(uint32_t addr, uint32_t mask)
{
	return ~mask <= 1 || ((addr & ~mask) != 0 && (addr | mask) != ~0u);
}

/* From --ip and what stands behind the tap's name. */
static int
host_end(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, struct host_end *host,
	char *err, size_t errlen)
{
	struct corq_addr_range ours, theirs;
	uint32_t first, last;

	host->addr = 0;
	if (conf->ip == NULL || corq_addr_parse_range(conf->ip, &ours) != 0 ||
		!corq_addr_is_v4(&ours.first))
		return 0; /* whoever reads --ip says what is wrong with it */
	first = v4_of(&ours.first);
	last = v4_of(&ours.last);
	host->mask = mask_of(ours.prefix_len);
	if (spec->host[0] == '\0') {
		host->addr = lowest_other(first, last, host->mask);
		if (host->addr != 0)
			return 0;
		corq_port_err(err, errlen,
			"tap: %s leaves the host no address of its own; a wider network, or "
			"tap:%s,HOST/LEN",
			conf->ip, spec->ifname);
		return -EADDRNOTAVAIL;
	}
	if (corq_addr_parse_range(spec->host, &theirs) != 0)
		return -EINVAL; /* parsed before */
	host->addr = v4_of(&theirs.first);
	if (strchr(spec->host, '/') != NULL)
		host->mask = mask_of(theirs.prefix_len);
	if (((first ^ host->addr) & host->mask) == 0 && (host->addr < first || host->addr > last) &&
		is_host(host->addr, host->mask))
		return 0;
	corq_port_err(err, errlen,
		"tap: the host's %s and our %.60s are not two addresses of hosts in one network",
		spec->host, conf->ip);
	return -EADDRNOTAVAIL;
}

/* Another interface of the host on that network would get our frames, or hide us. */
static int
check_clash(const struct corq_dev_spec *spec, const struct host_end *host, char *err, size_t errlen)
{
	char net[INET_ADDRSTRLEN], other[INET_ADDRSTRLEN];
	struct ifaddrs *all, *a;
	int rc = 0;

	if (getifaddrs(&all) != 0)
		return 0;
	for (a = all; a != NULL && rc == 0; a = a->ifa_next) {
		uint32_t addr, mask;

		if (a->ifa_addr == NULL || a->ifa_addr->sa_family != AF_INET ||
			a->ifa_netmask == NULL || strcmp(a->ifa_name, spec->ifname) == 0)
			continue;
		addr = ntohl(((struct sockaddr_in *)(void *)a->ifa_addr)->sin_addr.s_addr);
		mask = ntohl(((struct sockaddr_in *)(void *)a->ifa_netmask)->sin_addr.s_addr);
		if ((addr ^ host->addr) & mask & host->mask)
			continue;
		corq_port_err(err, errlen,
			"tap: the network of %s overlaps that of %s (%s); give another --ip",
			text_of(host->addr, net), a->ifa_name, text_of(addr, other));
		rc = -EADDRINUSE;
	}
	freeifaddrs(all);
	return rc;
}

/* ---- checks ---- */

int
corq_tap_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen)
{
	struct host_end host;
	int rc;

	if (conf->n_queues > TAP_QUEUES_MAX) {
		corq_port_err(err, errlen, "tap has at most %u queues: --cores %u", TAP_QUEUES_MAX,
			TAP_QUEUES_MAX);
		return -ERANGE;
	}
	if (if_nametoindex(spec->ifname) != 0) {
		corq_port_err(err, errlen,
			"tap: there is an interface %s already: give another name", spec->ifname);
		return -EEXIST;
	}
	if (access(TUN_PATH, R_OK | W_OK) != 0) {
		rc = -errno;
		corq_port_err(err, errlen, "tap: " TUN_PATH ": %s%s", strerror(-rc),
			rc == -ENOENT ? "; modprobe tun" : "");
		return rc;
	}
	rc = host_end(spec, conf, &host, err, errlen);
	if (rc == 0 && host.addr != 0)
		rc = check_clash(spec, &host, err, errlen);
	return rc;
}

void
corq_tap_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len)
{
	(void)conf;
	snprintf(buf, len, "iface=%s", spec->ifname);
}

void
corq_tap_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen)
{
	corq_port_err(err, errlen, "tap: %s does not come up", spec->ifname);
}

/* ---- once it is there ---- */

static int
set_address(const char *ifname, unsigned long request, uint32_t addr)
{
	struct ifreq ifr;
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(addr)}};

	memset(&ifr, 0, sizeof(ifr));
	memcpy(&ifr.ifr_addr, &in, sizeof(in));
	return corq_netif_ioctl(ifname, request, &ifr);
}

/* What the host sends waits here while we are busy or not scheduled: with the kernel's 1000
 * packets, the SYNs of a thousand clients at once and what follows them did not fit. Not worth an
 * error. */
static void
set_queue(const char *ifname)
{
	struct ifreq ifr = {.ifr_qlen = HOST_QUEUE};

	(void)corq_netif_ioctl(ifname, SIOCSIFTXQLEN, &ifr);
}

static int
set_up(const char *ifname, uint32_t mtu, const struct host_end *host)
{
	struct ifreq ifr = {.ifr_mtu = (int)mtu};
	int rc = corq_netif_ioctl(ifname, SIOCSIFMTU, &ifr);

	if (rc == 0 && host->addr != 0)
		rc = set_address(ifname, SIOCSIFADDR, host->addr);
	if (rc == 0 && host->addr != 0)
		rc = set_address(ifname, SIOCSIFNETMASK, host->mask);
	if (rc != 0)
		return rc;
	set_queue(ifname);
	memset(&ifr, 0, sizeof(ifr));
	rc = corq_netif_ioctl(ifname, SIOCGIFFLAGS, &ifr);
	ifr.ifr_flags |= IFF_UP;
	return rc == 0 ? corq_netif_ioctl(ifname, SIOCSIFFLAGS, &ifr) : rc;
}

int
corq_tap_started(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, uint32_t mtu,
	struct dev_hold *hold, char *err, size_t errlen)
{
	char text[INET_ADDRSTRLEN];
	struct host_end host;
	int rc = host_end(spec, conf, &host, err, errlen);

	if (rc != 0)
		return rc;
	hold->index = if_nametoindex(spec->ifname);
	rc = set_up(spec->ifname, mtu, &host);
	if (rc != 0) {
		corq_port_err(err, errlen, "tap: %s cannot be set up with %s: %s", spec->ifname,
			host.addr != 0 ? text_of(host.addr, text) : "no address", strerror(-rc));
		return rc;
	}
	if (host.addr != 0)
		corq_log_write(conf->log, CORQ_LOG_INFO, "tap %s: the host is %s, we are %.*s",
			spec->ifname, text_of(host.addr, text), (int)strcspn(conf->ip, "-/"),
			conf->ip);
	return 0;
}
