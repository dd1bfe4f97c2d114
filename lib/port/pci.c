/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pci.c - the device kind "pci:ADDRESS[,ARGS]": a NIC, through whichever of DPDK's drivers takes
 * it.
 *
 * Before EAL runs we look at sysfs: is the address there, is it a network device, which kernel
 * driver holds it, does DPDK need another one there, and does another process use it. EAL probes
 * it (-a), so that other devices of this machine stay untouched.
 *
 * Start only, main thread.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "port/port_int.h"

#define PCI_DEVICES "/sys/bus/pci/devices"

int
corq_pci_parse(const char *rest, struct corq_dev_spec *spec, char *err, size_t errlen)
{
	size_t len = strcspn(rest, ",");
	unsigned int domain = 0, bus, dev, fn;
	char text[32] = "", end;
	int n;

	if (len < sizeof(text))
		memcpy(text, rest, len);
	n = sscanf(text, "%4x:%2x:%2x.%1x%c", &domain, &bus, &dev, &fn, &end);
	if (n != 4) {
		domain = 0;
		n = sscanf(text, "%2x:%2x.%1x%c", &bus, &dev, &fn, &end) == 3 ? 4 : 0;
	}
	if (n != 4 || dev > 31 || fn > 7 || strlen(rest + len) >= sizeof(spec->args) - 16) {
		corq_port_err(err, errlen,
			"pci wants pci:ADDRESS[,ARGS], as pci:0000:00:03.0 (lspci -D lists them)");
		return -EINVAL;
	}
	snprintf(spec->name, sizeof(spec->name), "%04x:%02x:%02x.%x", domain, bus, dev, fn);
	snprintf(spec->args, sizeof(spec->args), "%s%s", spec->name, rest + len);
	return 0;
}

/* The last part of what the link `what` of the device points to; "" for none. */
static void
link_name(const char *address, const char *what, char *buf, size_t len)
{
	char path[96], target[PATH_MAX];
	const char *slash;
	ssize_t n;

	buf[0] = '\0';
	snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", address, what);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	slash = strrchr(target, '/');
	snprintf(buf, len, "%.63s", slash != NULL ? slash + 1 : target);
}

static unsigned long
read_hex(const char *address, const char *what)
{
	char path[96], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", address, what);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	fclose(f);
	return strtoul(text, NULL, 0);
}

/* The name of what stands in the device's folder `what`; "" for nothing. */
static void
entry_name(const char *address, const char *what, char *buf, size_t len)
{
	char path[96];
	struct dirent *entry;
	DIR *dir;

	buf[0] = '\0';
	snprintf(path, sizeof(path), PCI_DEVICES "/%s/%s", address, what);
	dir = opendir(path);
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			snprintf(buf, len, "%.16s", entry->d_name);
	closedir(dir);
}

static bool
listed(const char *name, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strcmp(name, *list) == 0)
			return true;
	return false;
}

static int
check_driver(const struct corq_dev_spec *spec, char *err, size_t errlen)
{
	static const char *const user[] = {"vfio-pci", "uio_pci_generic", "igb_uio", NULL};
	static const char *const shared[] = {"mlx4_core", "mlx5_core", NULL};
	char driver[64], group[64], net[17], interface[24] = "";
	const char *best;

	link_name(spec->name, "driver", driver, sizeof(driver));
	if (listed(driver, user) || listed(driver, shared))
		return 0;
	link_name(spec->name, "iommu_group", group, sizeof(group));
	best = group[0] != '\0' ? "vfio-pci" : "uio_pci_generic";
	/* taking the kernel's interface away may cut the user off */
	entry_name(spec->name, "net", net, sizeof(net));
	if (net[0] != '\0')
		snprintf(interface, sizeof(interface), " (%s)", net);
	corq_port_err(err, errlen,
		"pci: %s is bound to %s%s%s; modprobe %s; dpdk-devbind.py %s-b %s %s", spec->name,
		driver[0] != '\0' ? "the kernel's " : "no driver", driver, interface, best,
		net[0] != '\0' ? "--force " : "", best, spec->name);
	return -EBUSY;
}

static int
check_rights(const struct corq_dev_spec *spec, char *err, size_t errlen)
{
	char driver[64], group[64], path[96];

	link_name(spec->name, "driver", driver, sizeof(driver));
	if (strcmp(driver, "vfio-pci") == 0) {
		link_name(spec->name, "iommu_group", group, sizeof(group));
		snprintf(path, sizeof(path), "/dev/vfio/%.63s", group);
		if (access(path, R_OK | W_OK) == 0 || group[0] == '\0' || errno == ENOENT)
			return 0;
		corq_port_err(err, errlen, "pci: %s: %s: run as root, or chown that file", path,
			strerror(errno));
		return -EACCES;
	}
	if (geteuid() == 0)
		return 0;
	corq_port_err(err, errlen, "pci: %s through %s: run as root (only vfio-pci does without)",
		spec->name, driver);
	return -EPERM;
}

static bool
has_open(long pid, const char *file)
{
	char path[64], target[64];
	struct dirent *entry;
	bool found = false;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/fd", pid);
	dir = opendir(path);
	if (dir == NULL)
		return false;
	while (!found && (entry = readdir(dir)) != NULL) {
		n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		target[CORQ_MAX(n, 0)] = '\0';
		found = strcmp(target, file) == 0;
	}
	closedir(dir);
	return found;
}

/* uio lets several processes in, and a second driver resets the device under the first one's
 * hands. Opening it is no way to find out: uio_pci_generic stops its DMA whenever one closes it. */
static int
check_unused(const struct corq_dev_spec *spec, char *err, size_t errlen)
{
	char uio[17], file[32];
	struct dirent *entry;
	int rc = 0;
	DIR *dir;

	entry_name(spec->name, "uio", uio, sizeof(uio));
	dir = uio[0] != '\0' ? opendir("/proc") : NULL;
	if (dir == NULL)
		return 0;
	snprintf(file, sizeof(file), "/dev/%s", uio);
	while (rc == 0 && (entry = readdir(dir)) != NULL) {
		long pid = strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || !has_open(pid, file))
			continue;
		corq_port_err(err, errlen, "pci: %s is in use: process %ld has %s open; end it",
			spec->name, pid, file);
		rc = -EBUSY;
	}
	closedir(dir);
	return rc;
}

bool
corq_pci_is_uio(const char *device)
{
	char address[16], driver[64];

	snprintf(address, sizeof(address), "%.*s", (int)strcspn(device, ","), device);
	link_name(address, "driver", driver, sizeof(driver));
	return strcmp(driver, "uio_pci_generic") == 0 || strcmp(driver, "igb_uio") == 0;
}

int
corq_pci_check(const struct corq_dev_spec *spec, const struct corq_dev_conf *conf, char *err,
	size_t errlen)
{
	char path[96];
	int rc;

	(void)conf;
	snprintf(path, sizeof(path), PCI_DEVICES "/%s", spec->name);
	if (access(path, F_OK) != 0) {
		corq_port_err(err, errlen, "pci: there is no device %s here; lspci -D lists them",
			spec->name);
		return -ENODEV;
	}
	if (read_hex(spec->name, "class") >> 16 != 0x02) {
		corq_port_err(err, errlen, "pci: %s is no network device (class %06lx)", spec->name,
			read_hex(spec->name, "class"));
		return -ENODEV;
	}
	rc = check_driver(spec, err, errlen);
	if (rc == 0)
		rc = check_rights(spec, err, errlen);
	return rc != 0 ? rc : check_unused(spec, err, errlen);
}

void
corq_pci_no_link(const struct corq_dev_spec *spec, char *err, size_t errlen)
{
	corq_port_err(
		err, errlen, "pci: %s has no link: is the cable in, the other end up?", spec->name);
}
