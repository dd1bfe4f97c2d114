/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * veth.c - the device kind "veth:IF": a kernel interface, one end of a veth pair as a rule,
 * through DPDK's AF_PACKET driver.
 *
 * The kernel spreads flows over the queues by a hash of its own, and hands a whole flow to another
 * queue when a ring is full; the engine's hand-off repairs both. Each tx_burst is a system call
 * that runs the peer's receive path, some 6000 cycles a packet.
 *
 * An address of the kernel's on the interface would answer our peers with RST: one line warns. A
 * peer that leaves checksums or segmentation to its device (the default on veth) sends what no wire
 * carries; corq_port_offload_hint names the cure.
 *
 * Start only, main thread; the hint at any time, any thread.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/port_int.h"

/* A TPACKET_V2 slot spends up to 66 bytes in front of the frame; its size must divide the block. */
#define SLOT_OVERHEAD 66u
#define SLOT_SMALL    2048u
#define SLOT_JUMBO    16384u

int
corq_veth_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	size_t len = strlen(rest);

	if (len == 0 || len >= sizeof(spec->ifname) || strpbrk(rest, ",/ ") != NULL) {
		corq_port_err(err, errlen, "veth wants veth:IF, with the name of an interface");
		return -EINVAL;
	}
	memcpy(spec->ifname, rest, len + 1);
	return 0;
}

/* SIOCGIF* of an interface; -errno. */
static int
if_ioctl(const char *ifname, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return -errno;
	memset(ifr, 0, sizeof(*ifr));
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", ifname);
	if (ioctl(fd, request, ifr) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

static uint32_t
if_mtu(const char *ifname)
{
	struct ifreq ifr;

	return if_ioctl(ifname, SIOCGIFMTU, &ifr) == 0 ? (uint32_t)ifr.ifr_mtu : 1500;
}

static void
warn_kernel_address(const char *ifname, const struct corq_log *log)
{
	struct ifaddrs *all, *a;

	if (getifaddrs(&all) != 0)
		return;
	for (a = all; a != NULL; a = a->ifa_next) {
		const struct sockaddr_in6 *in6;

		if (a->ifa_addr == NULL || strcmp(a->ifa_name, ifname) != 0)
			continue;
		in6 = (const struct sockaddr_in6 *)(const void *)a->ifa_addr;
		if (a->ifa_addr->sa_family == AF_INET ||
			(a->ifa_addr->sa_family == AF_INET6 &&
				!IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))) {
			corq_log_write(log, CORQ_LOG_WARN,
				"%s has an address of the kernel's, which answers our peers with "
				"RST if it is ours too: ip addr flush dev %s",
				ifname, ifname);
			break;
		}
	}
	freeifaddrs(all);
}

int
corq_veth_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen)
{
	struct ifreq ifr;
	int rc = if_ioctl(spec->ifname, SIOCGIFFLAGS, &ifr);
	uint32_t mtu;

	if (rc != 0) {
		corq_port_err(err, errlen, "no such interface: %s", spec->ifname);
		return rc;
	}
	if (!(ifr.ifr_flags & IFF_UP)) {
		corq_port_err(
			err, errlen, "%s is down: ip link set %s up", spec->ifname, spec->ifname);
		return -ENETDOWN;
	}
	if (ifr.ifr_flags & IFF_LOOPBACK) {
		corq_port_err(err, errlen, "%s is the kernel's loopback, which carries no frames",
			spec->ifname);
		return -EINVAL;
	}
	mtu = if_mtu(spec->ifname);
	if (conf->mtu > mtu) {
		corq_port_err(err, errlen, "MTU %u is above that of %s: ip link set %s mtu %u",
			conf->mtu, spec->ifname, spec->ifname, conf->mtu);
		return -EMSGSIZE;
	}
	warn_kernel_address(spec->ifname, conf->log);
	return 0;
}

uint32_t
corq_veth_mtu(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf)
{
	uint32_t mtu = conf->mtu != 0 ? conf->mtu : if_mtu(spec->ifname);

	return CORQ_MIN(mtu, SLOT_JUMBO - SLOT_OVERHEAD - PORT_L2_MAX);
}

static uint32_t
slot_size(uint32_t mtu)
{
	return mtu + PORT_L2_MAX + SLOT_OVERHEAD <= SLOT_SMALL ? SLOT_SMALL : SLOT_JUMBO;
}

/* The driver wants room for a whole slot. */
uint32_t
corq_veth_room(uint32_t mtu)
{
	return slot_size(mtu);
}

void
corq_veth_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len)
{
	uint32_t slot = slot_size(corq_veth_mtu(spec, conf));

	/* 4 MB a ring with small slots, 8 MB with large ones */
	snprintf(buf, len, "iface=%s,qpairs=%u,blocksz=%u,framesz=%u,framecnt=%u,qdisc_bypass=1",
		spec->ifname, conf->n_queues, slot * 8, slot, slot == SLOT_SMALL ? 2048u : 512u);
}

/* The driver says "up" always. */
int
corq_veth_link(const struct corq_dev_spec *spec)
{
	struct ifreq ifr;

	return if_ioctl(spec->ifname, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_RUNNING);
}

void
corq_veth_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen)
{
	corq_port_err(err, errlen, "%s has no carrier: is its other end up?", spec->ifname);
}

/* ---- the other end ---- */

/* IFLA_LINK of an interface (the peer's index, for a veth); *foreign when that index belongs to
 * another network namespace. 0 when unknown. */
static int
peer_index(int fd, int index, bool *foreign)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
	} ask = {.head = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = RTM_GETLINK,
			 .nlmsg_flags = NLM_F_REQUEST},
		.info = {.ifi_index = index}};
	_Alignas(struct nlmsghdr) char buf[32768];
	struct nlmsghdr *head = (struct nlmsghdr *)buf;
	struct rtattr *attr;
	ssize_t n;
	int peer = 0, left;

	*foreign = false;
	if (send(fd, &ask, sizeof(ask), 0) < 0)
		return 0;
	n = recv(fd, buf, sizeof(buf), 0);
	if (n < (ssize_t)NLMSG_SPACE(sizeof(struct ifinfomsg)) || head->nlmsg_type != RTM_NEWLINK)
		return 0;
	attr = IFLA_RTA(NLMSG_DATA(head));
	left = (int)CORQ_MIN((size_t)n, (size_t)head->nlmsg_len) -
	       (int)NLMSG_SPACE(sizeof(struct ifinfomsg));
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == IFLA_LINK)
			memcpy(&peer, RTA_DATA(attr), sizeof(peer));
		if (attr->rta_type == IFLA_LINK_NETNSID)
			*foreign = true;
	}
	return peer;
}

static bool
peer_name(const char *ifname, char name[IF_NAMESIZE])
{
	int index = (int)if_nametoindex(ifname), peer, fd;
	bool foreign, found = false;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return false;
	peer = peer_index(fd, index, &foreign);
	if (peer > 0 && peer != index && !foreign)
		found = if_indextoname((unsigned int)peer, name) != NULL;
	close(fd);
	return found;
}

const char *
corq_port_offload_hint(const char *ifname, char *buf, size_t len)
{
	char peer[IF_NAMESIZE];

	if (peer_name(ifname, peer))
		corq_port_err(buf, len,
			"%s, the other end of %s, leaves checksums or segmentation to its device: "
			"ethtool -K %s tx off tso off gso off gro off",
			peer, ifname, peer);
	else
		corq_port_err(buf, len,
			"the other end of %s leaves checksums or segmentation to its device; "
			"in its network namespace: ethtool -K IF tx off tso off gso off gro off",
			ifname);
	return buf;
}
