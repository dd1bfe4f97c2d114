/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - the options that every subcommand with a device shares, and starting the instance
 * with them. Main thread only.
 *
 * A subcommand puts APP_DEVICE_LONG into its option array, calls app_device_usage in its usage
 * text, app_device_split first and app_device_option for each option that app_next_option returns.
 */
#ifndef CORQ_APP_DEVICE_H
#define CORQ_APP_DEVICE_H

#include "common/app.h"

#include <corq/instance.h>

#define APP_CORES_MAX 32

struct app_device {
	struct corq_config config;
	enum corq_close_policy close;
	const char *json; /* NULL: none; "-": standard output */
};

enum app_device_opt {
	APP_OPT_DEV = 1000,
	APP_OPT_IP,
	APP_OPT_PEER_IP,
	APP_OPT_GW,
	APP_OPT_MAC,
	APP_OPT_MTU,
	APP_OPT_CORES,
	APP_OPT_NAME,
	APP_OPT_SHARE_CPUS,
	APP_OPT_NO_HUGE,
	APP_OPT_BUSY_POLL,
	APP_OPT_MAX_CONNS,
	APP_OPT_SEED,
	APP_OPT_TIMEWAIT,
	APP_OPT_TW_TIME,
	APP_OPT_RFC1337,
	APP_OPT_CLOSE,
	APP_OPT_JSON,
	APP_OPT_EAL_LOG,
	APP_OPT_OWN, /* a subcommand's own long options start here */
};

/* clang-format off */
#define APP_DEVICE_LONG \
	{"dev", required_argument, NULL, APP_OPT_DEV}, \
	{"ip", required_argument, NULL, APP_OPT_IP}, \
	{"peer-ip", required_argument, NULL, APP_OPT_PEER_IP}, \
	{"gw", required_argument, NULL, APP_OPT_GW}, \
	{"mac", required_argument, NULL, APP_OPT_MAC}, \
	{"mtu", required_argument, NULL, APP_OPT_MTU}, \
	{"cores", required_argument, NULL, APP_OPT_CORES}, \
	{"name", required_argument, NULL, APP_OPT_NAME}, \
	{"share-cpus", no_argument, NULL, APP_OPT_SHARE_CPUS}, \
	{"no-huge", no_argument, NULL, APP_OPT_NO_HUGE}, \
	{"busy-poll", no_argument, NULL, APP_OPT_BUSY_POLL}, \
	{"max-conns", required_argument, NULL, APP_OPT_MAX_CONNS}, \
	{"seed", required_argument, NULL, APP_OPT_SEED}, \
	{"timewait", required_argument, NULL, APP_OPT_TIMEWAIT}, \
	{"tw-time", required_argument, NULL, APP_OPT_TW_TIME}, \
	{"rfc1337", required_argument, NULL, APP_OPT_RFC1337}, \
	{"close", required_argument, NULL, APP_OPT_CLOSE}, \
	{"json", required_argument, NULL, APP_OPT_JSON}, \
	{"eal-log", no_argument, NULL, APP_OPT_EAL_LOG}
/* clang-format on */

/* The options of all subcommands; those of the loop device only where it can be used. */
void app_device_usage(FILE *out, bool loop);
void app_device_init(struct app_device *device);
/* Cuts argv at "--": what follows goes to DPDK's EAL. Returns the new argc. */
int app_device_split(struct app_device *device, int argc, char **argv);
/* 1 it was one of ours, 0 it was not, -1 its value was wrong (the error line is out). */
int app_device_option(struct app_device *device, int opt, const char *arg);
bool app_device_is_loop(const struct app_device *device);
/* How often a reason of the library was counted, by its name; 0 if there is no such reason. */
uint64_t app_reason_count(const struct corq_instance *inst, const char *name);
/* Starts the instance: 0 and *inst, else the exit code (the error line is out). */
int app_device_start(const struct app_device *device, struct corq_instance **inst);

#endif
