#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""collect.py BENCH BUILD LINES OUT - the lines of a bench and what they were measured on, as JSON.

LINES holds one JSON object a line (name, value, unit, and peer, peer_value, ratio where there is a
peer). OUT gets {"bench", "machine", "results"}. Fails when there is no line, or one that lacks a
field."""
import json
import os
import platform
import re
import subprocess
import sys


def read(path, default=""):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return default


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def build_option(build, name):
    for option in json.loads(output("meson", "introspect", build, "--buildoptions") or "[]"):
        if option["name"] == name:
            return option["value"]
    return None


def machine(build):
    cpu = re.search(r"model name\s*:\s*(.*)", read("/proc/cpuinfo"))
    memory = re.search(r"MemTotal:\s*(\d+)", read("/proc/meminfo"))
    return {
        "cpu": cpu.group(1) if cpu else platform.machine(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "virtual": "hypervisor" in read("/proc/cpuinfo"),
        "memory_mb": int(memory.group(1)) // 1024 if memory else 0,
        "kernel": platform.release(),
        "dpdk": output("pkg-config", "--modversion", "libdpdk"),
        "compiler": output("cc", "--version").split("\n")[0],
        "buildtype": build_option(build, "buildtype"),
        "lto": build_option(build, "b_lto"),
        "huge_pages_2m_free": int(
            read("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0")),
        "transparent_huge_pages": read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load_average": read("/proc/loadavg").split()[0:1],
    }


def main():
    bench, build, lines, out = sys.argv[1:5]
    results = [json.loads(line) for line in read(lines).splitlines() if line]
    for r in results:
        missing = {"name", "value", "unit"} - r.keys()
        if missing:
            sys.exit(f"collect.py: {r}: no {missing}")
    if not results:
        sys.exit(f"collect.py: {bench} printed no measurement")
    with open(out, "w", encoding="utf-8") as f:
        head = json.dumps({"bench": bench, "machine": machine(build)}, indent=1)[:-2]
        body = ",\n".join("  " + json.dumps(r) for r in results)
        f.write(f"{head},\n \"results\": [\n{body}\n ]\n}}\n")
    print(f"{bench}: {len(results)} measurements in {out}", file=sys.stderr)


main()
