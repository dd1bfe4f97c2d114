/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * addr.c - see addr.h.
 */
#include "common/addr.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void
from_v4(const void *four, struct corq_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->b[10] = 0xff;
	addr->b[11] = 0xff;
	memcpy(addr->b + 12, four, 4);
}

bool
app_addr_is_v4(const struct corq_addr *addr)
{
	return addr->q[0] == 0 && addr->w[2] == htonl(0xffff);
}

bool
app_addr_parse(const char *text, struct corq_addr *addr)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		from_v4(&v4, addr);
		return true;
	}
	return inet_pton(AF_INET6, text, addr->b) == 1;
}

void
app_addr_text(const struct corq_addr *addr, char text[APP_ADDR_TEXT])
{
	if (app_addr_is_v4(addr))
		inet_ntop(AF_INET, addr->b + 12, text, APP_ADDR_TEXT);
	else
		inet_ntop(AF_INET6, addr->b, text, APP_ADDR_TEXT);
}

void
app_endpoint_text(const struct corq_addr *addr, uint16_t port, char text[APP_ENDPOINT_TEXT])
{
	char plain[APP_ADDR_TEXT];

	app_addr_text(addr, plain);
	snprintf(text, APP_ENDPOINT_TEXT, app_addr_is_v4(addr) ? "%s:%u" : "[%s]:%u", plain, port);
}

const char *
app_addr_resolve(const char *host, struct corq_addr *addr)
{
	struct addrinfo hints, *found = NULL;
	const struct sockaddr_in *v4;
	int rc;

	if (app_addr_parse(host, addr))
		return NULL;
	memset(&hints, 0, sizeof(hints));
	hints.ai_family = AF_INET;
	hints.ai_socktype = SOCK_STREAM;
	rc = getaddrinfo(host, NULL, &hints, &found);
	if (rc != 0)
		return gai_strerror(rc);
	v4 = (const struct sockaddr_in *)(const void *)found->ai_addr;
	from_v4(&v4->sin_addr, addr);
	freeaddrinfo(found);
	return NULL;
}

bool
app_addr_is_loopback(const struct corq_addr *addr)
{
	return app_addr_is_v4(addr) && addr->b[12] == 127;
}

/* The first entry of IPv4 with this interface and this address, as far as they are given. */
static bool
find_interface(const char *name, const struct corq_addr *addr, struct corq_addr *at,
	char found[APP_IF_TEXT])
{
	struct ifaddrs *all, *a;

	if (getifaddrs(&all) != 0)
		return false;
	for (a = all; a != NULL; a = a->ifa_next) {
		if (a->ifa_addr == NULL || a->ifa_addr->sa_family != AF_INET ||
			(name != NULL && strcmp(a->ifa_name, name) != 0))
			continue;
		from_v4(&((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr, at);
		if (addr != NULL && memcmp(at, addr, sizeof(*at)) != 0)
			continue;
		snprintf(found, APP_IF_TEXT, "%s", a->ifa_name);
		break;
	}
	freeifaddrs(all);
	return a != NULL;
}

bool
app_addr_owner(const struct corq_addr *addr, char name[APP_IF_TEXT])
{
	struct corq_addr at;

	if (!app_addr_is_loopback(addr))
		return find_interface(NULL, addr, &at, name);
	snprintf(name, APP_IF_TEXT, "lo");
	return true;
}

bool
app_interface_addr(const char *name, struct corq_addr *addr)
{
	char found[APP_IF_TEXT];

	return find_interface(name, NULL, addr, found);
}
