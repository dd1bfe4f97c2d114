#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh [PATCH ...] - shows that the scenarios would notice: each patch here breaks one rule; the
# scripts that its head names must then fail (at least one of them).
#
# Head of a patch:   RULE: what it breaks
#                    scripts: GROUP/NAME GROUP/NAME ...      (under tests/scenario; matrix/NAME: the
#                                                            generated script of that name)
#
# A mutant costs the compilation of the files that it changes, and a link: its objects stand before
# the libraries of a build, whose members of that name are then not taken. As many at a time as
# there are CPUs. BUILD_DIR=DIR takes an existing build, which is brought up to date.
#
# Exit 0: every mutant was noticed. 1: one survived, no longer applies, does not build, or the
# scripts fail without it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
child=""
trap '[ -z "$child" ] || kill "$child" 2>/dev/null; exit 130' INT TERM
[ $# -gt 0 ] || set -- "$here"/*.patch
build=${BUILD_DIR:-$work/build}
build=$(realpath -m "$build")
export root work build

# The paths of the scripts that a patch names.
scripts_of()
{
	local s
	for s in $(sed -n 's/^scripts: //p' "$1"); do
		case $s in
		matrix/*) echo "$work/$s.scn" ;;
		*) echo "$root/tests/scenario/$s.scn" ;;
		esac
	done
}

# compile FILE OBJECT DIR: as the build compiles lib/.., but faster, with what DIR/lib has first.
compile()
{
	local command source=$root/$1
	[ ! -f "$3/$1" ] || source=$3/$1
	command=$(sed -n "s|^$1	||p" "$work/commands")
	[ "$command" ] || return 1
	# shellcheck disable=SC2086
	(cd "$build" && ${command%% *} "-I$3/lib" ${command#* } -O1 -w -o "$2" -c "$source")
}

# build_mutant DIR FILE ..: the changed files in DIR, and whoever includes a changed header.
build_mutant()
{
	local dir=$1 file source objects=()
	shift
	for file in "$@"; do
		case $file in
		*.c) echo "$file" ;;
		*) (cd "$root" && grep -l "#include \"${file#lib/}\"" lib/*/*.c) ;;
		esac
	done | sort -u >"$dir/sources"
	while read -r source; do
		objects+=("$dir/${#objects[@]}.o")
		compile "$source" "${objects[-1]}" "$dir" || return 1
	done <"$dir/sources"
	cc -o "$dir/runner" "${objects[@]}" "$build"/tests/scenario/scenario-runner.p/*.o \
		-Wl,--start-group "$build"/{lib/libcorq_pure.a,tests/lib/libtestlib.a} \
		-Wl,--end-group -pthread
}

# Prints one line: what became of the mutant.
one()
{
	local p=$1 name rule dir file by files scripts
	name=$(basename "$p" .patch)
	rule=$(head -n 1 "$p")
	dir=$work/$name
	mkdir -p "$dir"
	mapfile -t scripts < <(scripts_of "$p")
	mapfile -t files < <(sed -n 's|^+++ b/\([^	]*\).*|\1|p' "$p")
	if [ ${#scripts[@]} = 0 ]; then
		echo "BAD       $name: names no scripts"
		return
	fi
	for file in "${files[@]}"; do
		mkdir -p "$dir/$(dirname "$file")" && cp "$root/$file" "$dir/$file"
	done
	if ! patch -s -p1 --no-backup-if-mismatch -d "$dir" <"$p" >"$dir/log" 2>&1; then
		echo "STALE     $name: does not apply: $rule"
	elif ! build_mutant "$dir" "${files[@]}" >"$dir/log" 2>&1; then
		echo "NO BUILD  $name: $rule: $(grep -m 1 error "$dir/log")"
	elif timeout 60 "$dir/runner" --pcap-dir "$dir" "${scripts[@]}" >"$dir/log" 2>&1; then
		echo "SURVIVED  $name: $rule"
	else
		by=$(sed -n 's|^FAIL .*/\([^/]*/[^/]*\)\.scn|\1|p' "$dir/log" | tr '\n' ' ')
		echo "noticed   $name by ${by:-a core that died}: $rule"
	fi
	rm -rf "$dir"
}
export -f scripts_of compile build_mutant one

if [ ! -f "$build/build.ninja" ]; then
	meson setup "$build" "$root" -Ddpdk=disabled -Dperf=false -Dbuildtype=plain -Dc_args=-O1 \
		>"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
fi
ninja -C "$build" tests/scenario/scenario-runner >"$work/build.log" 2>&1 || {
	tail -n 30 "$work/build.log"
	exit 1
}
# For each file of lib its compiler and arguments, without what says where to and how well.
python3 - "$build/compile_commands.json" "$root" >"$work/commands" <<-'PYTHON' || exit 1
	import json, os, re, sys
	for unit in json.load(open(sys.argv[1], encoding="utf-8")):
	    path = os.path.relpath(os.path.join(unit["directory"], unit["file"]), sys.argv[2])
	    if path.startswith("lib/") and "corq_pure" in unit["output"]:
	        line = re.sub(r" -(O\w|MD|MQ \S+|MF \S+|o \S+|c \S+|Werror)(?= |$)", "", unit["command"])
	        print(path, line, sep="\t")
PYTHON
python3 "$root/tests/scenario/matrix/matrix.py" --write "$work/matrix" || exit 1

mapfile -t all < <(for p in "$@"; do scripts_of "$p"; done | sort -u)
"$build/tests/scenario/scenario-runner" --pcap-dir "$work" "${all[@]}" >"$work/run.log" 2>&1 || {
	echo "the scripts fail without any mutant:"
	grep '^FAIL' "$work/run.log"
	exit 1
}

printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -I '{}' bash -c 'one "$1"' one '{}' >"$work/results" 2>"$work/errors" &
child=$!
wait "$child"
child=""
sort -k 2 "$work/results"
killed=$(grep -c '^noticed ' "$work/results")
bad=$(($# - killed))
echo "$killed mutants noticed, $bad not"
[ "$bad" = 0 ]
