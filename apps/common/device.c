/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - see device.h.
 */
#include "common/device.h"

#include <errno.h>
#include <string.h>

void
app_device_usage(FILE *out, bool loop)
{
	const char *at, *text;

	fputs("device:\n", out);
	fprintf(out, "  --dev DEVICE        one of%s\n", loop ? " (loop)" : "");
	for (unsigned i = loop ? 0 : 1; (at = corq_device_at(i, &text)) != NULL; i++)
		fprintf(out, "      %-28s %s\n", at, text);
	fputs("  --ip A[-B]/LEN      our address, or a range of them\n", out);
	if (loop)
		fputs("  --peer-ip A[-B]/LEN loop: the server side's\n", out);
	fputs("  --gw ADDRESS|none   next hop for what is not on the link (none)\n"
	      "  --mac MAC           our hardware address\n"
	      "  --mtu BYTES         at most the device's\n",
		out);
	fprintf(out, "  --cores N           how many, 1 to %d%s (1)\n", APP_CORES_MAX,
		loop ? "; loop: for each side" : "");
	if (loop)
		fputs("  --loop-one-core     loop: both ends on one core\n", out);
	fputs("  --share-cpus        allow more cores than CPUs (correct, but slow)\n"
	      "  --busy-poll         an idle core polls and never sleeps\n"
	      "  --name NAME         name of this instance, when several run\n"
	      "  --no-huge           do without huge pages\n"
	      "  --eal-log           show DPDK's own log\n"
	      "  -- ARGUMENTS        handed to DPDK's EAL\n"
	      "tcp:\n"
	      "  --max-conns N       connections a core (65536)\n"
	      "  --seed N            secrets are derived from it (repeatable runs)\n"
	      "  --timewait MODE     strict (default), reuse, lab\n"
	      "  --tw-time SECONDS   TIME_WAIT lasts so long (60); below 60 with --timewait lab "
	      "only\n"
	      "  --rfc1337 on|off    a RST does not end TIME_WAIT (on)\n",
		out);
}

void
app_device_init(struct app_device *device)
{
	memset(device, 0, sizeof(*device));
}

int
app_device_split(struct app_device *device, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			argv[i] = NULL;
			device->config.eal_args = argv + i + 1;
			return i;
		}
	}
	return argc;
}

static int
set_word(struct app_device *device, int opt, const char *arg)
{
	static const char *const timewaits[] = {"strict", "reuse", "lab"};
	static const char *const switches[] = {"off", "on"};
	static const char *const closes[] = {"first", "after-peer", "abort-if-empty", "rst"};
	int word;

	switch (opt) {
	case APP_OPT_TIMEWAIT:
		word = app_option_word("--timewait", arg, timewaits, 3);
		device->config.timewait = (enum corq_timewait)word;
		break;
	case APP_OPT_RFC1337:
		word = app_option_word("--rfc1337", arg, switches, 2);
		device->config.no_rfc1337 = word == 0;
		break;
	default:
		word = app_option_word("--close", arg, closes, 4);
		device->close = (enum corq_close_policy)word;
		break;
	}
	return word < 0 ? -1 : 1;
}

static int
set_number(struct app_device *device, int opt, const char *arg)
{
	struct corq_config *config = &device->config;
	bool ok;

	switch (opt) {
	case APP_OPT_MTU:
		ok = app_option_u32("--mtu", arg, 576, 9000, &config->mtu);
		break;
	case APP_OPT_CORES:
		ok = app_option_u32("--cores", arg, 1, APP_CORES_MAX, &config->cores);
		break;
	case APP_OPT_MAX_CONNS:
		ok = app_option_u32("--max-conns", arg, 16, 1u << 24, &config->max_conns);
		break;
	case APP_OPT_TW_TIME:
		ok = app_option_u32("--tw-time", arg, 1, 3600, &config->tw_time_ms);
		config->tw_time_ms *= 1000;
		break;
	default:
		ok = app_option_u64("--seed", arg, 1, UINT64_MAX, &config->seed);
		break;
	}
	return ok ? 1 : -1;
}

/* The library would say so too, but only after the rest of the command line was looked at. */
static int
set_dev(struct app_device *device, const char *arg)
{
	size_t len = strcspn(arg, ":"), used = 0;
	const char *at, *text;
	char all[128] = "";

	device->config.dev = arg;
	for (unsigned i = 0; (at = corq_device_at(i, &text)) != NULL; i++) {
		int word = (int)strcspn(at, ":");

		if ((size_t)word == len && strncmp(arg, at, len) == 0)
			return 1;
		if (used < sizeof(all))
			used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%.*s",
				i == 0 ? "" : ", ", word, at);
	}
	app_error("--dev: unknown device '%.64s'; there are %s (--help shows how they are written)",
		arg, all);
	return -1;
}

int
app_device_option(struct app_device *device, int opt, const char *arg)
{
	struct corq_config *config = &device->config;

	switch (opt) {
	case APP_OPT_DEV:
		return set_dev(device, arg);
	case APP_OPT_IP:
		config->ip = arg;
		return 1;
	case APP_OPT_PEER_IP:
		config->peer_ip = arg;
		return 1;
	case APP_OPT_GW:
		config->gw = arg;
		return 1;
	case APP_OPT_MAC:
		config->mac = arg;
		return 1;
	case APP_OPT_NAME:
		config->name = arg;
		return 1;
	case APP_OPT_SHARE_CPUS:
		config->share_cpus = true;
		return 1;
	case APP_OPT_NO_HUGE:
		config->no_huge = true;
		return 1;
	case APP_OPT_BUSY_POLL:
		config->busy_poll = true;
		return 1;
	case APP_OPT_EAL_LOG:
		config->verbose = true;
		return 1;
	case APP_OPT_JSON:
		device->json = arg;
		return 1;
	case APP_OPT_TIMEWAIT:
	case APP_OPT_RFC1337:
	case APP_OPT_CLOSE:
		return set_word(device, opt, arg);
	case APP_OPT_MTU:
	case APP_OPT_CORES:
	case APP_OPT_MAX_CONNS:
	case APP_OPT_TW_TIME:
	case APP_OPT_SEED:
		return set_number(device, opt, arg);
	default:
		return 0;
	}
}

bool
app_device_is_loop(const struct app_device *device)
{
	return device->config.dev == NULL || strcmp(device->config.dev, "loop") == 0;
}

uint64_t
app_reason_count(const struct corq_instance *inst, const char *name)
{
	const char *at, *text;
	bool is_drop;

	for (unsigned i = 0; (at = corq_reason_at(i, &text, &is_drop)) != NULL; i++) {
		if (strcmp(at, name) == 0)
			return corq_reason_count(inst, i);
	}
	return 0;
}

int
app_device_start(const struct app_device *device, struct corq_instance **inst)
{
	char err[256] = "";
	int rc;

	if (device->config.tw_time_ms != 0 && device->config.tw_time_ms < 60000 &&
		device->config.timewait != CORQ_TW_LAB) {
		app_error("--tw-time: %u s is shorter than the 60 s that other hosts rely on; "
			  "add --timewait lab to have it anyway",
			device->config.tw_time_ms / 1000);
		return APP_USAGE;
	}
	rc = corq_start(&device->config, inst, err, sizeof(err));
	if (rc == 0)
		return APP_OK;
	app_error("%s", err[0] != '\0' ? err : strerror(-rc));
	return rc == -EINVAL ? APP_USAGE : APP_FAILED;
}
