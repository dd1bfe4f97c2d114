#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# check_format.sh [--fix] - holds every C file of the tree against .clang-format (version 14).
# Versions of clang-format differ in what they produce, so another one is not used.
set -eu
cd "$(dirname "$0")/.."

if ! command -v clang-format-14 >/dev/null; then
	echo "skip: clang-format-14 is not installed"
	exit 77
fi

# In a git tree: what is tracked, or new and not ignored. In a tarball: all.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	mapfile -d '' files < <(git ls-files -z -co --exclude-standard -- '*.c' '*.h')
else
	mapfile -d '' files < <(find lib apps tests perf -name '*.[ch]' -print0)
fi
present=()
for file in "${files[@]}"; do
	if [ -f "$file" ]; then
		present+=("$file")
	fi
done
if [ ${#present[@]} = 0 ]; then
	echo "no C file found"
	exit 1
fi
if [ "${1-}" = --fix ]; then
	clang-format-14 -i "${present[@]}"
elif ! clang-format-14 --dry-run -Werror "${present[@]}" 2>/dev/null; then
	for file in "${present[@]}"; do
		clang-format-14 --dry-run -Werror --ferror-limit=1 "$file" 2>&1 | sed -n 1p
	done
	echo "tests/check_format.sh --fix formats them"
	exit 1
fi
echo "${#present[@]} files"
