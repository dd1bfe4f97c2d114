/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * addr.h - addresses as text for the programs, and look-up of host names and of the host's
 * interfaces. Main thread only: app_addr_resolve may ask a name server.
 */
#ifndef CORQ_APP_ADDR_H
#define CORQ_APP_ADDR_H

#include <corq/types.h>
#include <stdbool.h>

#define APP_ADDR_TEXT     48
#define APP_ENDPOINT_TEXT (APP_ADDR_TEXT + 8)
#define APP_IF_TEXT       32

/* Numeric only. */
bool app_addr_parse(const char *text, struct corq_addr *addr);
/* IPv4 as a.b.c.d, IPv6 without brackets. */
void app_addr_text(const struct corq_addr *addr, char text[APP_ADDR_TEXT]);
/* a.b.c.d:port or [addr]:port. */
void app_endpoint_text(const struct corq_addr *addr, uint16_t port, char text[APP_ENDPOINT_TEXT]);
bool app_addr_is_v4(const struct corq_addr *addr);
/* Its first IPv4 address. NULL, or why the name has none. */
const char *app_addr_resolve(const char *host, struct corq_addr *addr);
/* 127.0.0.0/8 */
bool app_addr_is_loopback(const struct corq_addr *addr);
/* Is it an IPv4 address of this host's kernel, or a loopback address? Then of this interface. */
bool app_addr_owner(const struct corq_addr *addr, char name[APP_IF_TEXT]);
/* The first IPv4 address of an interface of this host. */
bool app_interface_addr(const char *name, struct corq_addr *addr);

#endif
