#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# selftest.sh RUNNER DIR - every script *.bad must fail, and say what its first line says.
# A script that fails ends the runner where it stands, with its memory: no leak is looked for here.
export ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0"
runner=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
n=0
for f in "$2"/*.bad; do
	want=$(sed -n '1s/^# fails: //p' "$f")
	n=$((n + 1))
	"$runner" --pcap-dir "$tmp" "$f" >"$tmp/out" 2>&1
	rc=$?
	if [ "$rc" -ne 1 ] || [ -z "$want" ] || ! grep -qF "$want" "$tmp/out"; then
		echo "$f: exit $rc, expected 1 and '$want':"
		cat "$tmp/out"
		bad=1
	elif [ ! -s "$tmp/$(basename "$f").pcap" ]; then
		echo "$f: no capture"
		bad=1
	fi
done
echo "$n scripts"
[ "$n" -gt 0 ] && [ "$bad" -eq 0 ]
