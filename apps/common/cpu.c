/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpu.c - see cpu.h. Any thread; reads /proc and /sys, some microseconds a call.
 *
 * Limits: a memory cgroup is looked for where Debian mounts them, version 2 and version 1, and only
 * our own one, not those above it.
 */
#include "common/cpu.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
app_cpu_open(void)
{
	return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

int64_t
app_cpu_waited(int fd)
{
	char text[80];
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
	int64_t ran, waited;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	if (sscanf(text, "%" SCNd64 " %" SCNd64, &ran, &waited) != 2)
		return -1;
	return waited;
}

static bool
read_number(const char *path, uint64_t *out)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (f == NULL)
		return false;
	ok = fscanf(f, "%" SCNu64, out) == 1; /* "max": no limit */
	fclose(f);
	return ok;
}

/* What the kernel would give back: file pages not used lately. */
static uint64_t
reclaimable(const char *dir)
{
	char path[4400], line[256];
	uint64_t bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "inactive_file %" SCNu64, &bytes) == 1)
			break;
	}
	if (f != NULL)
		fclose(f);
	return bytes;
}

static void
bound_by(uint64_t *left, const char *dir, const char *limit_name, const char *used_name)
{
	char path[4400];
	uint64_t limit, used, back;

	snprintf(path, sizeof(path), "%s/%s", dir, limit_name);
	if (!read_number(path, &limit))
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, used_name);
	if (!read_number(path, &used))
		return;
	back = reclaimable(dir);
	used -= back < used ? back : used;
	if ((used < limit ? limit - used : 0) < *left)
		*left = used < limit ? limit - used : 0;
}

/* Lines of /proc/self/cgroup: "0::/path" (version 2), "N:memory:/path" (version 1). */
static void
bound_by_cgroups(uint64_t *left)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[4096], dir[4300], *path;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		path = strchr(line, '/');
		if (path == NULL)
			continue;
		if (strncmp(line, "0::", 3) == 0) {
			snprintf(dir, sizeof(dir), "/sys/fs/cgroup%s", path);
			bound_by(left, dir, "memory.max", "memory.current");
		} else if (strstr(line, ":memory:") != NULL) {
			snprintf(dir, sizeof(dir), "/sys/fs/cgroup/memory%s", path);
			bound_by(left, dir, "memory.limit_in_bytes", "memory.usage_in_bytes");
		}
	}
	if (f != NULL)
		fclose(f);
}

uint64_t
app_memory_left(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	uint64_t kb = 0, left;
	char line[256];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "MemAvailable: %" SCNu64, &kb) == 1)
			break;
	}
	if (f != NULL)
		fclose(f);
	if (kb == 0)
		return 0;
	left = kb * 1024;
	bound_by_cgroups(&left);
	return left;
}
