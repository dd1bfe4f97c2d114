#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What libcorq.so exports are the functions that <corq/...> declares: each of them, nothing else.

    check_exports.py LIBRARY HEADER...

A function that a header defines itself (static inline) is none of them.
"""
import re
import subprocess
import sys


def declared(path):
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    names = set(re.findall(r"\b(corq_\w+)\s*\(", text))
    inline = set()
    for match in re.finditer(r"static inline[^;{]*?\b(corq_\w+)\s*\(", text):
        inline.add(match.group(1))
    # a call inside an inline body is of an inline function too, unless it is declared
    prototypes = {m.group(1) for m in re.finditer(r"^[\w\s*]*?\b(corq_\w+)\s*\([^{;]*\)[^{;]*;", text, flags=re.M)}
    return (names & prototypes) - inline


def main():
    library, headers = sys.argv[1], sys.argv[2:]
    want = set().union(*(declared(h) for h in headers))
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    have = {line.split()[-1] for line in out.splitlines()}
    for name in sorted(want - have):
        print(f"{name}: declared in a public header, not exported: add it to lib/libcorq.map")
    for name in sorted(have - want):
        print(f"{name}: exported, but in no public header")
    print(f"{len(have)} functions exported, {len(want)} declared")
    return want != have or len(want) < 10


if __name__ == "__main__":
    sys.exit(main())
