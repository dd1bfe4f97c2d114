/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xdp.c - the device kind "xdp:IF": a kernel interface through DPDK's AF_XDP driver.
 *
 * The driver attaches libxdp's default program to the interface, which sends every frame of our
 * queues to us and none to the kernel. Buffers are the mbufs themselves, so an mbuf with all in
 * front of it and XDP's own 256 bytes must fit into a page, and its pool must be in one piece.
 *
 * The program outlives a process that is killed. So a small process of its own (corq-xdp-watch, in
 * a session of its own, all signals blocked) waits at a pipe: when that ends without a goodbye, it
 * takes the program off the interface. If that one was killed too, the next start finds a program,
 * and says how to remove it; it may be somebody else's, so we do not.
 *
 * Start and stop only, main thread.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "port/port_int.h"

#define XDP_HEADROOM 256u
/* With head, frame, headroom and the pool's padding an object stays below 4096 bytes. */
#define ROOM_SMALL   2048u
#define ROOM_MAX     3584u
#define XDP_MTU_MAX  (ROOM_MAX - XDP_HEADROOM - PORT_L2_MAX)

/* Queues that carry both ways, which the driver counts; a veth has none by this count, and one. */
static uint32_t
if_queues(const char *ifname)
{
	struct ethtool_channels ch = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq ifr = {.ifr_data = (char *)&ch};

	if (corq_netif_ioctl(ifname, SIOCETHTOOL, &ifr) != 0 || ch.combined_count == 0)
		return 1;
	return ch.combined_count;
}

int
corq_xdp_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen)
{
	const char *name = spec->ifname;
	int rc = corq_netif_check(spec, conf, err, errlen);
	uint32_t n, prog;

	if (rc != 0)
		return rc;
	if (corq_netif_mtu(name) > XDP_MTU_MAX) {
		corq_port_err(err, errlen,
			"%s has MTU %u, XDP takes at most %u: ip link set %s mtu %u, at its other "
			"end too",
			name, corq_netif_mtu(name), XDP_MTU_MAX, name, XDP_MTU_MAX);
		return -EMSGSIZE;
	}
	n = if_queues(name);
	if (conf->n_queues > n) {
		corq_port_err(err, errlen,
			"%s has %u queue%s for XDP, %u cores want one each: "
			"--cores %u, or the device veth:%s",
			name, n, n == 1 ? "" : "s", conf->n_queues, n, name);
		return -ERANGE;
	}
	prog = corq_netif_xdp_prog(name);
	if (prog != 0) {
		corq_port_err(err, errlen,
			"%s has an XDP program already (id %u), of somebody who runs or was "
			"killed: "
			"end that one, or ip link set %s xdp off",
			name, prog, name);
		return -EBUSY;
	}
	if (conf->n_queues < n)
		corq_log_write(conf->log, CORQ_LOG_WARN,
			"%s has %u queues, what comes in on those above %u goes to the kernel: "
			"ethtool -L %s combined %u",
			name, n, conf->n_queues, name, conf->n_queues);
	return 0;
}

uint32_t
corq_xdp_mtu(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf)
{
	uint32_t mtu = conf->mtu != 0 ? conf->mtu : corq_netif_mtu(spec->ifname);

	return CORQ_MIN(mtu, XDP_MTU_MAX);
}

uint32_t
corq_xdp_room(uint32_t mtu)
{
	return mtu + PORT_L2_MAX + XDP_HEADROOM <= ROOM_SMALL ? ROOM_SMALL : ROOM_MAX;
}

void
corq_xdp_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len)
{
	snprintf(buf, len, "iface=%s,start_queue=0,queue_count=%u", spec->ifname, conf->n_queues);
}

/* ---- the process that cleans up ---- */

/* Whatever program is on the interface goes, in the mode that `flags` says. */
static void
detach(int index, uint32_t flags)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg info;
		struct rtattr nest, fd_attr;
		int32_t fd;
		struct rtattr flags_attr;
		uint32_t flags;
	} ask = {.head = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = RTM_SETLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.info = {.ifi_index = index},
		.nest = {.rta_type = IFLA_XDP | NLA_F_NESTED,
			.rta_len = sizeof(ask) - offsetof(__typeof__(ask), nest)},
		.fd_attr = {.rta_type = IFLA_XDP_FD, .rta_len = RTA_LENGTH(4)},
		.fd = -1,
		.flags_attr = {.rta_type = IFLA_XDP_FLAGS, .rta_len = RTA_LENGTH(4)},
		.flags = flags};
	char answer[512];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0 && send(fd, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask) &&
		recv(fd, answer, sizeof(answer), 0) < 0)
		_exit(1);
	close(fd);
}

/* In the child of a process with threads: nothing but system calls. */
static void
watch(int index, int pipe_end)
{
	sigset_t all;
	char byte;
	ssize_t n;

	setsid();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "corq-xdp-watch");
	if (dup2(pipe_end, 0) != 0 || chdir("/") != 0)
		_exit(1);
	close_range(1, ~0u, 0);
	do
		n = read(0, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0) {
		detach(index, 0);
		detach(index, XDP_FLAGS_SKB_MODE);
	}
	_exit(0);
}

/* Twice removed, so that it is nobody's child whom the program would have to wait for. */
static int
start_watch(int index, struct dev_hold *hold)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(fds[1]);
		if (fork() == 0)
			watch(index, fds[0]);
		_exit(0);
	}
	close(fds[0]);
	if (pid < 0) {
		close(fds[1]);
		return -EAGAIN;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	hold->watch = fds[1];
	return 0;
}

int
corq_xdp_enter(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf,
	struct dev_hold *hold, char *err, size_t errlen)
{
	int rc = corq_netif_enter(spec, conf, hold, err, errlen);

	if (rc != 0)
		return rc;
	rc = start_watch((int)if_nametoindex(spec->ifname), hold);
	if (rc != 0)
		corq_port_err(err, errlen, "xdp: no process to watch over %s: %s", spec->ifname,
			strerror(-rc));
	return rc;
}

/* The driver has taken the program off. */
void
corq_xdp_leave(struct dev_hold *hold)
{
	if (hold->watch >= 0) {
		if (write(hold->watch, "", 1) != 1) {
			/* it is gone, then there is nothing to tell it */
		}
		close(hold->watch);
		hold->watch = -1;
	}
	corq_netif_leave(hold);
}
