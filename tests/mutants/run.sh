#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run.sh [PATCH ...] - shows that the scenarios would notice: each patch here breaks one rule in a
# scratch copy of the tree; the scripts that its head names must then fail (at least one of them).
#
# Head of a patch:   RULE: what it breaks
#                    scripts: GROUP/NAME GROUP/NAME ...      (under tests/scenario)
#
# Exit 0: every mutant was noticed. 1: one survived, no longer applies, does not build, or the
# scripts fail without it. BUILD_DIR=DIR keeps the scratch copy there (faster the second time).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${BUILD_DIR:-$(mktemp -d)}
[ -n "${BUILD_DIR:-}" ] || trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- "$here"/*.patch

# Brings the scratch copy up to date; a file that is the same keeps its time, so that what a mutant
# changed is compiled again and nothing else is.
sync_tree() {
	mkdir -p "$work/tree" || return 1
	(cd "$root" && git ls-files -co --exclude-standard 2>/dev/null ||
		find . -name .git -prune -o -type f -print | sed 's|^\./||') |
		sort >"$work/files"
	while read -r f; do
		[ -f "$root/$f" ] || continue
		cmp -s "$root/$f" "$work/tree/$f" && continue
		mkdir -p "$work/tree/$(dirname "$f")" && cp "$root/$f" "$work/tree/$f" || return 1
	done <"$work/files"
	(cd "$work/tree" && find . -type f | sed 's|^\./||') | sort |
		comm -13 "$work/files" - | while read -r f; do rm -f "$work/tree/$f"; done
}
sync_tree || exit 1
if [ ! -f "$work/build/build.ninja" ]; then
	meson setup "$work/build" "$work/tree" -Ddpdk=disabled -Dperf=false \
		-Dbuildtype=debugoptimized >"$work/setup.log" 2>&1 || {
		cat "$work/setup.log"
		exit 1
	}
fi

runner=$work/build/tests/scenario/scenario-runner
build() {
	ninja -C "$work/build" -j2 tests/scenario/scenario-runner >"$work/build.log" 2>&1
}

# The paths of the scripts that a patch names.
scripts_of() {
	for s in $(sed -n 's/^scripts: //p' "$1"); do
		echo "$work/tree/tests/scenario/$s.scn"
	done
}

build || { tail -n 30 "$work/build.log"; exit 1; }
# shellcheck disable=SC2046
"$runner" $(for p in "$@"; do scripts_of "$p"; done | sort -u) >"$work/run.log" 2>&1 || {
	echo "the scripts fail without any mutant:"
	grep '^FAIL' "$work/run.log"
	exit 1
}

killed=0
bad=0
for p in "$@"; do
	name=$(basename "$p" .patch)
	rule=$(head -n 1 "$p")
	if [ -z "$(scripts_of "$p")" ]; then
		echo "BAD       $name: names no scripts"
		bad=$((bad + 1))
		continue
	fi
	if ! patch -s -p1 -d "$work/tree" <"$p" >"$work/patch.log" 2>&1; then
		echo "STALE     $name: does not apply: $rule"
		sync_tree
		bad=$((bad + 1))
		continue
	fi
	if ! build; then
		echo "NO BUILD  $name: $rule"
		tail -n 5 "$work/build.log"
		bad=$((bad + 1))
	elif # shellcheck disable=SC2046
		"$runner" --pcap-dir "$work" $(scripts_of "$p") >"$work/run.log" 2>&1; then
		echo "SURVIVED  $name: $rule"
		bad=$((bad + 1))
	else
		by=$(sed -n 's|^FAIL .*/scenario/\(.*\)\.scn|\1|p' "$work/run.log" | tr '\n' ' ')
		echo "noticed   $name by ${by:-a core that died}: $rule"
		killed=$((killed + 1))
	fi
	sync_tree || exit 1
done
echo "$killed mutants noticed, $bad not"
[ "$bad" -eq 0 ]
