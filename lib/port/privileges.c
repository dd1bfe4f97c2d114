/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * privileges.c - which capabilities this process lacks, and the line that says so. Start only, any
 * thread.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "port/port_int.h"

/* Those that a device kind may ask for. */
static const struct {
	int bit;
	const char *name, *file;
} names[] = {
	{CAP_NET_ADMIN, "CAP_NET_ADMIN", "cap_net_admin"},
	{CAP_NET_RAW, "CAP_NET_RAW", "cap_net_raw"},
	{CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "cap_sys_admin"},
	{CAP_IPC_LOCK, "CAP_IPC_LOCK", "cap_ipc_lock"},
};

uint64_t
corq_caps_missing(uint64_t want)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};
	uint64_t have;

	if (syscall(SYS_capget, &head, data) != 0)
		return 0; /* unknown: the driver will tell */
	have = data[0].effective | (uint64_t)data[1].effective << 32;
	return want & ~have;
}

int
corq_caps_line(const char *what, uint64_t missing, char *err, size_t errlen)
{
	char upper[96] = "", lower[96] = "";

	for (size_t i = 0; i < CORQ_ARRAY_LEN(names); i++) {
		size_t at = strlen(upper), to = strlen(lower);

		if (!(missing & (UINT64_C(1) << names[i].bit)))
			continue;
		snprintf(
			upper + at, sizeof(upper) - at, "%s%s", at != 0 ? ", " : "", names[i].name);
		snprintf(lower + to, sizeof(lower) - to, "%s%s", to != 0 ? "," : "", names[i].file);
	}
	corq_port_err(err, errlen, "%s needs %s: run as root, or setcap %s+ep on the program", what,
		upper, lower);
	return -EPERM;
}
