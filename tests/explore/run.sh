#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run.sh [PATCH ...] - shows that the explorer would notice: each patch of bugs/ plants one bug in a
# scratch copy of the library's handle code; the explorer must then report a violation.
#
# The first line of a patch says what it breaks. CC is the compiler (default cc).
# Exit 0: the code as it is has no violation, and each bug was found. 1: one was missed, no longer
# applies, or does not compile. 77: not on this kind of machine.
set -u
unset CORQ_LONG
[ "$(uname -m)" = x86_64 ] || {
	echo "skip: the explorer's coroutines are written for x86-64"
	exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- "$here"/bugs/*.patch

compile() {
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O2 -fno-strict-aliasing -fno-omit-frame-pointer -w \
		-DCORQ_WORD_SHIFT=1 -DCORQ_FAST_SLOTS=2u -DCORQ_FOLD_CALLS=1u \
		-I"$here" -I"$work/tree/lib" -I"$root/lib" -I"$root/lib/include" "$@"
}

# The library's part into $work/$1; one that did not change since the plain build is taken from it.
build() {
	mkdir -p "$work/$1" || return 1
	objects=""
	for f in "$work"/tree/lib/base/handle_*.c; do
		o=$work/$1/$(basename "$f" .c).o
		if [ "$1" != plain ] && [ -z "$headers" ] &&
			cmp -s "$f" "$root/lib/base/$(basename "$f")"; then
			o=$work/plain/$(basename "$f" .c).o
		else
			compile -c "$f" -o "$o" || return 1
		fi
		objects="$objects $o"
	done
	# shellcheck disable=SC2086
	compile -o "$work/$1/explorer" "$work"/own/*.o $objects
}

copy() {
	rm -rf "$work/tree"
	mkdir -p "$work/tree/lib/base" &&
		cp "$root"/lib/base/handle* "$root/lib/base/base.h" "$work/tree/lib/base/"
}

headers=""
copy && mkdir "$work/own" || exit 1
for f in "$here"/*.c; do
	compile -c "$f" -o "$work/own/$(basename "$f" .c).o" || exit 1
done
build plain || exit 1
"$work/plain/explorer" --first >"$work/plain.log" || {
	echo "the explorer finds a violation without any bug:"
	cat "$work/plain.log"
	exit 1
}
tail -n 1 "$work/plain.log"

found=0
bad=0
for p in "$@"; do
	name=$(basename "$p" .patch)
	what=$(head -n 1 "$p")
	copy || exit 1
	if ! patch -s -p1 -d "$work/tree" <"$p" >"$work/patch.log" 2>&1; then
		echo "STALE     $name: does not apply: $what"
		bad=$((bad + 1))
		continue
	fi
	headers=$(grep '^+++ .*\.h' "$p")
	if ! build bug >"$work/build.log" 2>&1; then
		echo "NO BUILD  $name: $what"
		tail -n 5 "$work/build.log"
		bad=$((bad + 1))
		continue
	fi
	timeout 120 "$work/bug/explorer" --first >"$work/run.log" 2>&1
	by=$(sed -n 's/^VIOLATION in //p' "$work/run.log" | head -n 1)
	if [ -n "$by" ]; then
		echo "found     $name by $by: $what"
		found=$((found + 1))
	else
		echo "MISSED    $name: $what"
		bad=$((bad + 1))
	fi
done
echo "$found bugs found, $bad not"
[ "$bad" -eq 0 ]
