#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks which folder includes which, and a few words that must not stand in the tree.

    check_layers.py [ROOT]          checks the tree; one line a violation, exit 1 if there is one
    check_layers.py --self-test     plants each violation in a small tree and expects it found

The arrows are those of lib/DESIGN.md: base <- net <- tcp <- core <- port, ctl <- apps. base to
core and ctl are what runs without DPDK: no rte_ there, neither header nor name. tcp has no clock,
no I/O and no allocator. Programs see <corq/...>, the C library and third parties only. Headers
of lib/ do not include each other in a circle. Nothing is left to be done in a comment.
"""
import os
import re
import sys
import tempfile

LIBRARY = ("base", "net", "tcp", "core", "port", "ctl")
ARROWS = {
    "base": {"base"},
    "net": {"net", "base"},
    "tcp": {"tcp", "net", "base"},
    "core": {"core", "tcp", "net", "base"},
    "port": {"port", "ctl", "core", "tcp", "net", "base"},
    "ctl": {"ctl", "core", "tcp", "net", "base"},
    "include": {"include"},
}
# The public headers stand above base and net, but for these, which know libc alone.
PUBLIC = {"tcp", "core", "port", "ctl", "include"}
PUBLIC_TYPES = {"corq/types.h", "corq/hist.h"}
# What base to core and ctl may take from outside: the C library, the kernel's headers, intrinsics.
LIBC = re.compile(
    r"^(assert|complex|ctype|errno|fcntl|fenv|float|inttypes|iso646|limits|locale|math|poll|pthread"
    r"|sched|setjmp|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn"
    r"|string|strings|syslog|threads|time|unistd|endian|byteswap|[a-z0-9]*intrin"
    r"|sys/\w+|arpa/\w+|net/\w+|netinet/\w+|linux/\w+|asm/\w+)\.h$")
TCP_BANNED = re.compile(
    r"^(time|unistd|poll|pthread|threads|fcntl|sched|syslog|sys/(?!types|uio)\w+|arpa/\w+|linux/\w+)\.h$")
TCP_CALLS = re.compile(r"\b(malloc|calloc|realloc|aligned_alloc|posix_memalign|clock_gettime)\s*\(")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
DPDK_NAME = re.compile(r"\b(rte_|RTE_)\w*")
UNDONE = re.compile(r"\b(" + "TO" + "DO|" + "FIX" + r"ME)\b")
TEXT = (".c", ".h", ".def", ".py", ".sh", ".build", ".txt", ".md", ".yaml")
FOLDERS = ("lib", "apps", "tests", "perf", "drivers-config", ".ci")


def without_comments(text):
    """Blanks comments, keeps line numbers; strings stay."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        found = match.group(0)
        return re.sub(r"[^\n]", " ", found) if found[0] == "/" else found
    return pattern.sub(blank, text)


class Tree:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.includes = {}          # header or source of lib/ -> files of lib/ that it includes

    def problem(self, path, line, text):
        self.problems.append("%s:%d: %s" % (path, line, text))

    def files(self):
        for folder in FOLDERS:
            for at, folders, names in os.walk(os.path.join(self.root, folder)):
                folders[:] = sorted(f for f in folders if f != "__pycache__")
                for name in sorted(names):
                    yield os.path.relpath(os.path.join(at, name), self.root)

    @staticmethod
    def layer_of(target):
        parts = target.split("/")
        return parts[1] if parts[0] == "lib" and len(parts) > 2 else None

    def exists(self, path):
        return os.path.isfile(os.path.join(self.root, path))

    def check(self):
        for path in self.files():
            code = path.endswith((".c", ".h", ".def"))
            if not code and not path.endswith(TEXT) and not path.startswith(".ci/"):
                continue
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
                text = file.read()
            for match in UNDONE.finditer(text):
                self.problem(path, text.count("\n", 0, match.start()) + 1,
                             "%s: do it or file it" % match.group(0))
            if code:
                self.check_code(path, without_comments(text))
        self.check_circles()
        return self.problems

    def check_code(self, path, text):
        parts = path.split("/")
        layer = parts[1] if parts[0] == "lib" and len(parts) > 2 else None
        if layer is not None and layer not in ARROWS:
            self.problem(path, 1, "lib/%s is not a layer" % layer)
            return
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            self.check_include(path, line, parts[0], layer, match.group(1), match.group(2))
        if parts[0] == "lib" and layer != "port":
            for match in DPDK_NAME.finditer(text):
                self.problem(path, text.count("\n", 0, match.start()) + 1,
                             "%s outside lib/port" % match.group(0))
        if layer == "tcp":
            for match in TCP_CALLS.finditer(text):
                self.problem(path, text.count("\n", 0, match.start()) + 1,
                             "%s() in the engine" % match.group(1))

    def check_include(self, path, line, top, layer, quote, name):
        if os.path.basename(name).startswith("rte_") and layer != "port":
            if top != "lib":            # in lib/ the name itself is reported
                self.problem(path, line, "%s outside lib/port" % name)
            return
        if top == "lib":
            self.check_library_include(path, line, layer, quote, name)
        elif top == "apps":
            self.check_app_include(path, line, quote, name)

    def check_library_include(self, path, line, layer, quote, name):
        if name.startswith("corq/"):
            self.includes.setdefault(path, []).append("lib/include/" + name)
            if layer not in PUBLIC and name not in PUBLIC_TYPES:
                self.problem(path, line, "%s: public header below its layer" % name)
            return
        if quote == "<":
            if layer != "port" and not LIBC.match(name):
                self.problem(path, line, "<%s> is not the C library's" % name)
            elif layer == "tcp" and TCP_BANNED.match(name):
                self.problem(path, line, "<%s>: no clock, no I/O, no threads in the engine" % name)
            return
        target = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if not self.exists(target) and not name.startswith("../"):
            target = os.path.normpath("lib/" + name)
        to = self.layer_of(target)
        if to is None:
            self.problem(path, line, "%s is in no layer of lib/" % name)
            return
        self.includes.setdefault(path, []).append(target)
        if to not in ARROWS[layer]:
            self.problem(path, line, "%s: %s may not include %s" % (name, layer, to))

    def check_app_include(self, path, line, quote, name):
        own = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if quote == '"' and (self.exists(own) and own.startswith("apps/") or
                             self.exists("apps/" + name)):
            return
        first = name.split("/")[0]
        if quote == '"' or (first in LIBRARY and not LIBC.match(name)) or ".." in name:
            self.problem(path, line, "%s: programs include public headers only" % name)

    def check_circles(self):
        state = {}

        def visit(path, trail):
            state[path] = "open"
            for target in self.includes.get(path, ()):
                if state.get(target) == "open":
                    circle = trail[trail.index(target):] if target in trail else [target]
                    self.problem(path, 1, "circle: " + " -> ".join(circle + [target]))
                elif target not in state:
                    visit(target, trail + [target])
            state[path] = "done"
        for path in sorted(self.includes):
            if path not in state:
                visit(path, [path])


# ---- self-test

CLEAN = {
    "lib/base/seq.h": "#include <stdint.h>\n#include <corq/types.h>\n/* rte_ring too */\n",
    "lib/net/wire.h": '#include "base/seq.h"\n#include <string.h>\n',
    "lib/net/wire.c": '#include "wire.h"\n',
    "lib/tcp/input.c": '#include "net/wire.h"\n#include "base/seq.h"\n#include <corq/types.h>\n',
    "lib/core/turn.c": '#include "net/wire.h"\nconst char *s = "it\'s /* no comment */";\n',
    "lib/port/dpdk.c": '#include <rte_mbuf.h>\n#include "core/turn.h"\nrte_mbuf *m;\n',
    "lib/core/turn.h": "#include <stddef.h>\n",
    "lib/ctl/call.c": '#include "core/turn.h"\n#include <linux/futex.h>\n',
    "lib/include/corq/types.h": "#include <stdint.h>\n",
    "lib/include/corq/corq.h": "#include <corq/types.h>\n",
    "apps/ab/ab.c": '#include <corq/corq.h>\n#include <llhttp.h>\n#include "report.h"\n',
    "apps/ab/report.h": "#include <net/if.h>\n",
    "apps/main.c": '#include "ab/report.h"\n',
    "tests/unit/test_seq.c": '#include "base/seq.h"\n#include <cmocka.h>\n',
}
PLANTED = [
    ("lib/base/bad.c", '#include "net/wire.h"\n', "base may not include net"),
    ("lib/base/bad.c", "#include <corq/corq.h>\n", "below its layer"),
    ("lib/base/bad.c", "#include <numa.h>\n", "not the C library's"),
    ("lib/net/bad.c", '\n#include "tcp/tcb.h"\n', "bad.c:2: tcp/tcb.h: net may not include tcp"),
    ("lib/tcp/bad.c", '#include "core/turn.h"\n', "tcp may not include core"),
    ("lib/tcp/bad.c", '#include "../core/turn.h"\n', "tcp may not include core"),
    ("lib/tcp/bad.c", "#include <time.h>\n", "no clock"),
    ("lib/tcp/bad.c", "void *p = malloc(3);\n", "malloc() in the engine"),
    ("lib/core/bad.c", '#include "port/dpdk.h"\n', "core may not include port"),
    ("lib/core/bad.c", '#include "ctl/call.h"\n', "core may not include ctl"),
    ("lib/core/bad.c", "# include <rte_mbuf.h>\n", "rte_mbuf outside lib/port"),
    ("lib/core/bad.c", "/* a */ uint64_t t = rte_rdtsc();\n", "rte_rdtsc outside lib/port"),
    ("lib/ctl/bad.c", '#include "port/dpdk.h"\n', "ctl may not include port"),
    ("lib/ctl/bad.c", "int n = RTE_MAX_LCORE;\n", "RTE_MAX_LCORE outside lib/port"),
    ("lib/include/corq/bad.h", '#include "base/seq.h"\n', "include may not include base"),
    ("lib/extra/bad.c", "int x;\n", "is not a layer"),
    ("lib/base/bad.h", '#include "base/worse.h"\n', "circle"),
    ("apps/ab/bad.c", '#include "tcp/tcb.h"\n', "public headers only"),
    ("apps/ab/bad.c", '#include "../../lib/tcp/tcb.h"\n', "public headers only"),
    ("apps/ab/bad.c", "#include <core/turn.h>\n", "public headers only"),
    ("apps/ab/bad.c", "#include <rte_eal.h>\n", "rte_eal.h outside lib/port"),
    ("tests/unit/bad.c", "#include <rte_eal.h>\n", "rte_eal.h outside lib/port"),
    ("perf/bad.sh", "# TO" + "DO: later\n", "do it or file it"),
    ("lib/base/bad.c", "/* FIX" + "ME */\n", "do it or file it"),
]


def plant(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)


def self_test():
    failed = 0
    with tempfile.TemporaryDirectory() as root:
        plant(root, CLEAN)
        problems = Tree(root).check()
        if problems:
            print("clean tree: found " + "; ".join(problems))
            failed += 1
    for path, text, expected in PLANTED:
        with tempfile.TemporaryDirectory() as root:
            plant(root, CLEAN)
            plant(root, {path: text, "lib/base/worse.h": '#include "base/bad.h"\n'}
                  if expected == "circle" else {path: text})
            problems = Tree(root).check()
        if len(problems) != 1 or expected not in problems[0]:
            print("%s with %r: expected '%s', found %s" % (path, text, expected, problems))
            failed += 1
    print("%d of %d planted violations found" % (len(PLANTED) - failed, len(PLANTED)))
    return 1 if failed else 0


def main(argv):
    if argv == ["--self-test"]:
        return self_test()
    root = argv[0] if argv else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    problems = Tree(root).check()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
