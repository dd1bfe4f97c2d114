/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memif.c - the device kind "memif:ROLE,SOCKET": shared memory to another process.
 *
 * ROLE is server (listens on SOCKET) or client (provides the memory). SOCKET is a path, or @NAME
 * for an abstract socket. Extra words: id=N (memif's interface id), zc=1 (client only: the peer
 * writes straight into our buffers).
 *
 * The driver never unlinks its socket file: one that nobody listens on is removed here. It also
 * reads wrong memory when the two ends have different numbers of queues, and has no way to tell
 * them; so unless id= is given, the interface id is the number of queues less one: ends that differ
 * never find each other, and the message on a time-out says so.
 *
 * Start only, main thread.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/addr.h"
#include "port/port_int.h"

#define MEMIF_LOG2_RING 11 /* 2048 slots: 4 ms at 0.5 Mpps */
#define HELLO_MS        2000
#define MEMIF_BUF       2048

static int
parse_word(const char *word, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	char *end;

	if (strncmp(word, "id=", 3) == 0) {
		long id = strtol(word + 3, &end, 10);

		if (end != word + 3 && *end == '\0' && id >= 0 && id <= 65535) {
			spec->id = (int)id;
			return 0;
		}
	} else if (strcmp(word, "zc=1") == 0 && !spec->server) {
		spec->zero_copy = true;
		return 0;
	} else if (strcmp(word, "zc=0") == 0) {
		return 0;
	}
	corq_port_err(err, errlen, "memif: \"%s\" is not one of id=N, zc=1 (client only)", word);
	return -EINVAL;
}

int
corq_memif_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	char copy[256], *save = NULL, *role, *path, *word;
	int rc;

	if (strlen(rest) >= sizeof(copy)) {
		corq_port_err(err, errlen, "memif: too long");
		return -EINVAL;
	}
	strcpy(copy, rest);
	role = strtok_r(copy, ",", &save);
	path = strtok_r(NULL, ",", &save);
	if (role == NULL || path == NULL ||
		(strcmp(role, "server") != 0 && strcmp(role, "client") != 0)) {
		corq_port_err(
			err, errlen, "memif wants memif:server,SOCKET or memif:client,SOCKET");
		return -EINVAL;
	}
	spec->server = strcmp(role, "server") == 0;
	/* the driver takes one byte less than sun_path has */
	if (strlen(path) >= sizeof(spec->socket) - 1) {
		corq_port_err(err, errlen, "memif: the socket's name is longer than %zu bytes",
			sizeof(spec->socket) - 2);
		return -EINVAL;
	}
	/* else the driver's arguments would fall apart, and it would take its own defaults */
	if (strpbrk(path, "=[]") != NULL || strcmp(path, "@") == 0) {
		corq_port_err(err, errlen,
			"memif: the socket \"%.64s\" wants a name without any of =[]", path);
		return -EINVAL;
	}
	strcpy(spec->socket, path);
	while ((word = strtok_r(NULL, ",", &save)) != NULL) {
		rc = parse_word(word, spec, err, errlen);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* 1: somebody listens there, 0: a file of nobody's, -errno: no such file, or no right to ask. */
static int
somebody_listens(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 1;
	struct pollfd hello = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return -errno;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		/* The driver greets. If we were gone before it does, its error path would close a
		 * descriptor that its epoll set still has, and that whole process would panic. */
		poll(&hello, 1, HELLO_MS);
	else if (errno != EAGAIN)
		rc = errno == ECONNREFUSED ? 0 : -errno;
	close(fd);
	return rc;
}

static int
check_directory(const char *path, char *err, size_t errlen)
{
	char dir[sizeof(((struct corq_dev_spec *)0)->socket)];
	const char *slash = strrchr(path, '/');

	if (slash == NULL) {
		corq_port_err(err, errlen,
			"memif: the socket \"%s\" wants a directory (/run/%s), or @%s", path, path,
			path);
		return -EINVAL;
	}
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (access(dir[0] != '\0' ? dir : "/", R_OK | W_OK) != 0) {
		int rc = -errno;

		corq_port_err(err, errlen, "memif: directory %s of the socket: %s",
			dir[0] != '\0' ? dir : "/", strerror(-rc));
		return rc;
	}
	return 0;
}

int
corq_memif_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen)
{
	struct stat st;
	int rc;

	(void)conf;
	if (spec->socket[0] == '@')
		return 0;
	rc = check_directory(spec->socket, err, errlen);
	if (rc != 0 || !spec->server || lstat(spec->socket, &st) != 0)
		return rc;
	if (!S_ISSOCK(st.st_mode)) {
		corq_port_err(err, errlen, "memif: %s exists and is no socket", spec->socket);
		return -EEXIST;
	}
	rc = somebody_listens(spec->socket);
	if (rc == 0 && unlink(spec->socket) == 0)
		return 0;
	corq_port_err(err, errlen, "memif: %s is in use by another server", spec->socket);
	return -EADDRINUSE;
}

/* One buffer holds a frame: the driver's descriptor chains are broken in 22.11 (a flag is not
 * cleared when a descriptor is reused). */
uint32_t
corq_memif_room(uint32_t mtu)
{
	return CORQ_MAX((uint32_t)MEMIF_BUF, (mtu + PORT_L2_MAX + 63) & ~63u);
}

/* A hardware address that a program has again when it is started again: its peer, which need not
 * have noticed, still knows it. */
static bool
mac_of_ip(const char *ip, uint8_t mac[6])
{
	struct corq_addr_range range;

	if (ip == NULL || corq_addr_parse_range(ip, &range) != 0)
		return false;
	mac[0] = 0x02;
	mac[1] = 'c';
	memcpy(mac + 2, &range.first.b[12], 4);
	return true;
}

void
corq_memif_vdev_args(
	const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *buf, size_t len)
{
	bool abstract = spec->socket[0] == '@';
	int id = spec->id >= 0 ? spec->id : (int)conf->n_queues - 1, n;
	const uint8_t *mac = conf->mac;
	uint8_t own[6];

	if (mac == NULL && mac_of_ip(conf->ip, own))
		mac = own;
	n = snprintf(buf, len, "role=%s,socket=%s,socket-abstract=%s,id=%d,rsize=%d,bsize=%u%s",
		spec->server ? "server" : "client", spec->socket + abstract,
		abstract ? "yes" : "no", id, MEMIF_LOG2_RING,
		corq_memif_room(conf->mtu != 0 ? conf->mtu : 1500),
		spec->zero_copy ? ",zero-copy=yes" : "");
	if (mac != NULL && n > 0 && (size_t)n < len)
		snprintf(buf + n, len - (size_t)n, ",mac=%02x:%02x:%02x:%02x:%02x:%02x", mac[0],
			mac[1], mac[2], mac[3], mac[4], mac[5]);
}

void
corq_memif_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen)
{
	if (spec->server)
		corq_port_err(err, errlen, "memif: no client on %s", spec->socket);
	else
		corq_port_err(err, errlen,
			"memif: no server on %s, or it runs on another number of cores",
			spec->socket);
}
