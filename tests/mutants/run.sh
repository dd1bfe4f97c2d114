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

mkdir -p "$work/tree" || exit 1
# Times are kept, so an unchanged file is not compiled again.
for part in meson.build meson_options.txt lib apps tests perf; do
	[ -e "$root/$part" ] || continue
	rm -rf "${work:?}/tree/$part"
	cp -a "$root/$part" "$work/tree/" || exit 1
done
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
		patch -s -R -f -p1 -d "$work/tree" <"$p" >/dev/null 2>&1
		rm -rf "$work/tree/lib"
		cp -a "$root/lib" "$work/tree/"
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
		echo "noticed   $name by $(sed -n 's|^FAIL .*/scenario/\(.*\)\.scn|\1|p' "$work/run.log" |
			tr '\n' ' '): $rule"
		killed=$((killed + 1))
	fi
	patch -s -R -p1 -d "$work/tree" <"$p" || { echo "cannot undo $name"; exit 1; }
done
echo "$killed mutants noticed, $bad not"
[ "$bad" -eq 0 ]
