/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netif.c - interfaces of the kernel, as the kinds veth, xdp and tap need them: is it there and up,
 * who else uses it, its MTU, link, addresses, its other end.
 *
 * An address of the kernel's on the interface would answer our peers with RST: one line warns. A
 * peer that leaves checksums or segmentation to its device (the default on veth) sends what no wire
 * carries; corq_port_offload_hint names the cure.
 *
 * Start and stop only, main thread; the link and the hint at any time, any thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/addr.h"
#include "port/port_int.h"

bool
corq_netif_name_ok(const char *name, size_t len)
{
	return len != 0 && len < IFNAMSIZ && strcspn(name, CORQ_NAME_BAD) >= len &&
	       strncmp(name, "..", len) != 0;
}

int
corq_netif_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	const char *kind = corq_dev_kind_row(spec->kind)->name;
	size_t len = strlen(rest);

	if (!corq_netif_name_ok(rest, len)) {
		corq_port_err(err, errlen,
			"%s wants %s:IF, an interface's name without any of /:,=[]%%", kind, kind);
		return -EINVAL;
	}
	memcpy(spec->ifname, rest, len + 1);
	return 0;
}

int
corq_netif_ioctl(const char *ifname, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", ifname);
	if (ioctl(fd, request, ifr) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

uint32_t
corq_netif_mtu(const char *ifname)
{
	struct ifreq ifr = {.ifr_flags = 0};

	return corq_netif_ioctl(ifname, SIOCGIFMTU, &ifr) == 0 ? (uint32_t)ifr.ifr_mtu : 1500;
}

/* By its index: a new interface of that name is not ours, ours under a new name is. */
int
corq_netif_link(const struct dev_hold *hold)
{
	struct ifreq ifr = {.ifr_flags = 0};
	char name[IF_NAMESIZE];

	if (if_indextoname(hold->index, name) == NULL)
		return errno == ENXIO ? -1 : 1; /* else the question failed */
	return corq_netif_ioctl(name, SIOCGIFFLAGS, &ifr) == 0 && (ifr.ifr_flags & IFF_RUNNING);
}

void
corq_netif_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen)
{
	corq_port_err(err, errlen, "%s has no carrier: is its other end up?", spec->ifname);
}

/* ---- checks ---- */

static bool
is_host_address(const struct ifaddrs *a)
{
	const struct sockaddr_in6 *in6;

	if (a->ifa_addr == NULL)
		return false;
	in6 = (const struct sockaddr_in6 *)(const void *)a->ifa_addr;
	return a->ifa_addr->sa_family == AF_INET ||
	       (a->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr));
}

static void
warn_kernel_address(const char *ifname, const struct corq_log *log)
{
	struct ifaddrs *all, *a;

	if (getifaddrs(&all) != 0)
		return;
	for (a = all; a != NULL; a = a->ifa_next) {
		if (strcmp(a->ifa_name, ifname) != 0 || !is_host_address(a))
			continue;
		corq_log_write(log, CORQ_LOG_WARN,
			"%s has an address of the kernel's, which answers our peers with RST if it "
			"is ours too: ip addr flush dev %s",
			ifname, ifname);
		break;
	}
	freeifaddrs(all);
}

/* A tun, the loopback and some tunnels carry packets without Ethernet's header. */
static int
check_ethernet(const char *ifname, char *err, size_t errlen)
{
	struct ifreq ifr = {.ifr_flags = 0};

	if (corq_netif_ioctl(ifname, SIOCGIFHWADDR, &ifr) != 0 ||
		ifr.ifr_hwaddr.sa_family == ARPHRD_ETHER)
		return 0;
	if (ifr.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK)
		corq_port_err(err, errlen, "%s is the kernel's loopback, which carries no frames",
			ifname);
	else
		corq_port_err(err, errlen, "%s carries no Ethernet frames", ifname);
	return -EINVAL;
}

static int
check_mtu(const char *ifname, uint32_t want, char *err, size_t errlen)
{
	uint32_t mtu = corq_netif_mtu(ifname);

	if (want <= mtu && mtu >= PORT_MTU_MIN)
		return 0;
	if (want > mtu)
		corq_port_err(err, errlen, "MTU %u is above that of %s: ip link set %s mtu %u",
			want, ifname, ifname, want);
	else
		corq_port_err(err, errlen,
			"%s has MTU %u, at least %u is needed: ip link set %s mtu 1500", ifname,
			mtu, PORT_MTU_MIN, ifname);
	return -EMSGSIZE;
}

int
corq_netif_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen)
{
	struct ifreq ifr = {.ifr_flags = 0};
	int rc = corq_netif_ioctl(spec->ifname, SIOCGIFFLAGS, &ifr);

	if (rc != 0) {
		corq_port_err(err, errlen, "no such interface: %s", spec->ifname);
		return rc;
	}
	if (!(ifr.ifr_flags & IFF_UP)) {
		corq_port_err(
			err, errlen, "%s is down: ip link set %s up", spec->ifname, spec->ifname);
		return -ENETDOWN;
	}
	rc = check_ethernet(spec->ifname, err, errlen);
	if (rc == 0)
		rc = check_mtu(spec->ifname, conf->mtu, err, errlen);
	if (rc == 0)
		warn_kernel_address(spec->ifname, conf->log);
	return rc;
}

/* ---- claims ---- */

/*
 * Two processes on one kernel interface both see every frame, so two owners of one address would
 * both answer. A name in the network namespace's abstract socket space claims ours, from the first
 * to the last; the kernel takes the claim away with the process. Whoever claims looks then for
 * others who claim some of it: of two at the same time, both may end.
 */
#define CLAIM_FMT "corq/%u/%08x%08x%08x%08x-%08x%08x%08x%08x"

struct claim {
	unsigned int index;
	uint32_t first[4], last[4]; /* host order */
};

static bool
claim_of(struct claim *claim, unsigned int index, const char *ip)
{
	struct corq_addr_range range;

	if (ip == NULL || corq_addr_parse_range(ip, &range) != 0)
		return false;
	claim->index = index;
	for (int i = 0; i < 4; i++) {
		claim->first[i] = ntohl(range.first.w[i]);
		claim->last[i] = ntohl(range.last.w[i]);
	}
	return true;
}

static int
compare(const uint32_t a[4], const uint32_t b[4])
{
	for (int i = 0; i < 4; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* Does the line of /proc/net/unix name a claim that shares an address with ours, and is another? */
static bool
overlaps(const char *line, const struct claim *ours)
{
	const char *at = strstr(line, "@corq/");
	struct claim c;
	uint32_t *f = c.first, *l = c.last;

	if (at == NULL || sscanf(at + 1, "corq/%u/%8x%8x%8x%8x-%8x%8x%8x%8x", &c.index, &f[0],
				  &f[1], &f[2], &f[3], &l[0], &l[1], &l[2], &l[3]) != 9)
		return false;
	return c.index == ours->index && compare(f, ours->last) <= 0 &&
	       compare(ours->first, l) <= 0 &&
	       (compare(f, ours->first) != 0 || compare(l, ours->last) != 0);
}

static bool
others_claim(const struct claim *ours)
{
	FILE *f = fopen("/proc/self/net/unix", "re");
	bool found = false;
	char line[256];

	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = overlaps(line, ours);
	fclose(f);
	return found;
}

static int
make_claim(const struct claim *c, struct dev_hold *hold)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const uint32_t *f = c->first, *l = c->last;
	int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, CLAIM_FMT, c->index, f[0],
		f[1], f[2], f[3], l[0], l[1], l[2], l[3]);

	hold->claim = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (hold->claim < 0 ||
		bind(hold->claim, (struct sockaddr *)&name,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) != 0)
		return -errno;
	return others_claim(c) ? -EADDRINUSE : 0;
}

int
corq_netif_enter(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
	struct dev_hold *hold, char *err, size_t errlen)
{
	struct claim claim;
	int rc;

	hold->index = if_nametoindex(spec->ifname);
	/* who reads --ip says what is wrong with it */
	if (!claim_of(&claim, hold->index, conf->ip) || (rc = make_claim(&claim, hold)) == 0)
		return 0;
	corq_netif_leave(hold);
	if (rc == -EADDRINUSE)
		corq_port_err(err, errlen,
			"%.60s on %s is in use: another corq serves it, or some of it; give "
			"another --ip or end that one",
			conf->ip, spec->ifname);
	else
		corq_port_err(err, errlen, "cannot claim %.60s on %s: %s", conf->ip, spec->ifname,
			strerror(-rc));
	return rc;
}

void
corq_netif_leave(struct dev_hold *hold)
{
	if (hold->claim >= 0)
		close(hold->claim);
	hold->claim = -1;
}

/* ---- what rtnetlink knows ---- */

struct link_facts {
	int peer;     /* IFLA_LINK: the peer's index, for a veth; 0 unknown */
	bool foreign; /* that index belongs to another network namespace */
	uint32_t xdp; /* id of the XDP program, 0 none */
};

static uint32_t
xdp_prog_id(struct rtattr *nest)
{
	struct rtattr *attr = RTA_DATA(nest);
	int left = (int)RTA_PAYLOAD(nest);
	uint32_t id = 0;

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if (attr->rta_type == IFLA_XDP_PROG_ID)
			memcpy(&id, RTA_DATA(attr), sizeof(id));
	return id;
}

static void
read_link(int fd, int index, struct link_facts *facts)
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
	int left;

	if (send(fd, &ask, sizeof(ask), 0) < 0)
		return;
	n = recv(fd, buf, sizeof(buf), 0);
	if (n < (ssize_t)NLMSG_SPACE(sizeof(struct ifinfomsg)) || head->nlmsg_type != RTM_NEWLINK)
		return;
	attr = IFLA_RTA(NLMSG_DATA(head));
	left = (int)CORQ_MIN((size_t)n, (size_t)head->nlmsg_len) -
	       (int)NLMSG_SPACE(sizeof(struct ifinfomsg));
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == IFLA_LINK)
			memcpy(&facts->peer, RTA_DATA(attr), sizeof(facts->peer));
		if (attr->rta_type == IFLA_LINK_NETNSID)
			facts->foreign = true;
		if ((attr->rta_type & NLA_TYPE_MASK) == IFLA_XDP)
			facts->xdp = xdp_prog_id(attr);
	}
}

static void
link_facts(const char *ifname, struct link_facts *facts)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	memset(facts, 0, sizeof(*facts));
	if (fd < 0)
		return;
	read_link(fd, (int)if_nametoindex(ifname), facts);
	close(fd);
}

uint32_t
corq_netif_xdp_prog(const char *ifname)
{
	struct link_facts facts;

	link_facts(ifname, &facts);
	return facts.xdp;
}

static bool
peer_name(const char *ifname, char name[IF_NAMESIZE])
{
	struct link_facts facts;

	link_facts(ifname, &facts);
	return facts.peer > 0 && !facts.foreign && facts.peer != (int)if_nametoindex(ifname) &&
	       if_indextoname((unsigned int)facts.peer, name) != NULL;
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
