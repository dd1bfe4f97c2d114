/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.c - see target.h.
 *
 * An address of this host is refused at once only where no frame can get there: a loopback
 * address, or that of the very interface that we send out of. Another interface's may be behind
 * our own (the other end of a veth pair, a bridge), so there it is said after it failed.
 */
#include "ab/target.h"

#include <corq/instance.h>
#include <endian.h>
#include <string.h>

static bool
address_in(const struct corq_instance *inst, enum corq_side side, const struct corq_addr *addr)
{
	uint64_t count, low, want;
	struct corq_addr first = corq_address(inst, side, &count);

	if (first.q[0] != addr->q[0])
		return false;
	low = be64toh(first.q[1]);
	want = be64toh(addr->q[1]);
	return want >= low && want - low < count;
}

/* The interface in "veth:NAME", "tap:NAME,HOST". True if the device is a tap. */
static bool
interface_of(const struct ab_run *run, char name[APP_IF_TEXT])
{
	const char *dev = run->opts->device.config.dev, *colon = strchr(dev, ':');

	name[0] = '\0';
	if (colon != NULL)
		snprintf(name, APP_IF_TEXT, "%.*s", (int)strcspn(colon + 1, ","), colon + 1);
	return strncmp(dev, "tap:", 4) == 0;
}

bool
ab_target_is_here(const struct ab_run *run, char *text, size_t len)
{
	char ours[APP_IF_TEXT], owner[APP_IF_TEXT], host[APP_ADDR_TEXT];
	bool tap = interface_of(run, ours);
	struct corq_addr addr;

	if (!app_addr_owner(&run->target, owner) || (tap && strcmp(owner, ours) == 0))
		return false;
	if (!tap) {
		snprintf(text, len,
			"this host's own address: the kernel does not send it out of %s; use --dev "
			"tap:NAME",
			ours[0] != '\0' ? ours : "a device");
	} else if (app_interface_addr(ours, &addr)) {
		app_addr_text(&addr, host);
		snprintf(text, len, "this host's own address: over %s it is %s, use that one", ours,
			host);
	} else {
		snprintf(text, len, "this host's own address, which is not that of %s", ours);
	}
	return true;
}

static bool
never_leaves(const struct ab_run *run)
{
	char ours[APP_IF_TEXT], owner[APP_IF_TEXT];

	if (app_addr_is_loopback(&run->target))
		return true;
	return !interface_of(run, ours) && app_addr_owner(&run->target, owner) &&
	       strcmp(ours, owner) == 0;
}

static int
check_reach(const struct ab_run *run, const char *host)
{
	const char *unfit = corq_address_unfit(run->inst, &run->target);
	char text[160];

	if (address_in(run->inst, CORQ_SIDE_A, &run->target))
		app_error("'%s' is our own address (--ip): nothing else may have it, and a server "
			  "there cannot be reached; give us another one",
			host);
	else if (never_leaves(run) && ab_target_is_here(run, text, sizeof(text)))
		app_error("'%s' is %s", host, text);
	else if (unfit != NULL)
		app_error("'%s' is %s: no server can be there", host, unfit);
	else
		return APP_OK;
	return APP_USAGE;
}

static int
check_loop(const struct ab_run *run, const char *host)
{
	struct corq_addr first = corq_address(run->inst, CORQ_SIDE_B, NULL);
	char text[APP_ADDR_TEXT];

	if (address_in(run->inst, CORQ_SIDE_B, &run->target))
		return APP_OK;
	app_addr_text(&first, text);
	app_error("'%s' is not on the loop device, whose server is %s; leave the URL out, or name "
		  "a device with --dev",
		host, text);
	return APP_USAGE;
}

int
ab_target_find(struct ab_run *run, struct ab_options *opts, struct ab_target *to)
{
	const struct app_url *url = opts->via_proxy ? &opts->proxy : &opts->url;
	const char *error;

	if (opts->url_text == NULL) {
		run->target = corq_address(run->inst, CORQ_SIDE_B, NULL);
		run->port = 80;
		app_addr_text(&run->target, to->host);
		opts->url.bracketed = !app_addr_is_v4(&run->target);
		to->path = "/";
		app_endpoint_text(&run->target, run->port, to->endpoint);
		return APP_OK;
	}
	snprintf(to->host, sizeof(to->host), "%s", opts->url.host);
	run->port = url->port;
	to->path = opts->url.path;
	error = app_addr_resolve(url->host, &run->target);
	if (error != NULL) {
		app_error("host '%s': %s; give its IPv4 address if no name server is in reach",
			url->host, error);
		return APP_FAILED;
	}
	app_endpoint_text(&run->target, run->port, to->endpoint);
	return app_device_is_loop(&opts->device) ? check_loop(run, url->host)
						 : check_reach(run, url->host);
}

int
ab_target_local(struct ab_run *run)
{
	char text[APP_ADDR_TEXT];

	if (!run->opts->bind_given)
		return APP_OK;
	run->local = run->opts->bind;
	if (address_in(run->inst, CORQ_SIDE_A, &run->local))
		return APP_OK;
	app_addr_text(&run->local, text);
	app_error("-B: %s is not one of our addresses (--ip)", text);
	return APP_USAGE;
}
