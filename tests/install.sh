#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh BUILD - what `meson install` of that build folder puts down is enough to use corq.
#
# Into an empty DESTDIR: the public headers and nothing private; each compiles alone, first and
# twice, as C11 and as C++17, with gcc and clang, warnings are errors, and names no header that is
# not there. With DPDK: a program builds and runs through pkg-config against the shared and the
# static library, in C and in C++; the shared library gives out names of corq_ only; the program
# `corq` runs. Needs no root and no huge page: no instance is started.
set -eu

build=${1:?usage: tests/install.sh BUILD}
flags="-Wall -Wextra -Werror"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
dest=$tmp/dest

fail()
{
	echo "install: $*" >&2
	exit 1
}

# compile COMPILER STANDARD SOURCE FLAG...
compile()
{
	local compiler=$1 standard=$2 source=$3
	shift 3
	"$compiler" -std="$standard" $flags -I"$include" "$@" -c "$source" -o "$tmp/object.o" ||
		fail "$compiler -std=$standard: see above ($(basename "$source"))"
	checked=$((checked + 1))
}

# In every language and by every compiler that is here.
everywhere()
{
	local compiler
	for compiler in gcc clang; do
		command -v $compiler >/dev/null && compile $compiler c11 "$1.c" -Wstrict-prototypes
	done
	cp "$1.c" "$1.cpp"
	for compiler in g++ clang++; do
		command -v $compiler >/dev/null && compile $compiler c++17 "$1.cpp"
	done
	return 0
}

headers()
{
	local header all
	checked=0
	include=$(dirname "$(find "$dest" -type d -path '*/include/corq')")
	[ -d "$include/corq" ] || fail "no include/corq in $(find "$dest" | head)"
	all=$(cd "$include" && ls corq/*.h)
	[ "$(echo $all)" = "corq/core.h corq/hist.h corq/instance.h corq/socket.h corq/types.h" ] ||
		fail "the public headers are: $all"
	for header in $all; do
		printf '#include <%s>\n#include <%s>\nint only_%d(void);\nint only_%d(void) { return 0; }\n' \
			"$header" "$header" 1 1 >"$tmp/one.c"
		everywhere "$tmp/one"
	done
	for header in $all; do echo "#include <$header>"; done >"$tmp/all.c"
	for header in $(echo $all | tac -s ' '); do echo "#include <$header>"; done >>"$tmp/all.c"
	everywhere "$tmp/all"
	[ $checked -gt 0 ] || fail "no compiler"
	echo "headers: $checked compilations"
}

# A program that links one function of each public header and of each layer below.
write_program()
{
	cat >"$tmp/program.c" <<-'PROGRAM'
		#include <corq/core.h>
		#include <corq/hist.h>
		#include <corq/instance.h>
		#include <stdio.h>
		#include <string.h>

		static void
		on_open(struct corq_core *core, struct corq_conn *conn)
		{
			corq_conn_write(core, conn, "hello", 5, CORQ_FIN);
		}

		int
		main(void)
		{
			static struct corq_hist h;
			static struct corq_config config;
			struct corq_ops ops;
			struct corq_instance *inst;
			char err[256] = "";
			const char *text = NULL;
			bool is_drop = false;

			memset(&ops, 0, sizeof(ops));
			ops.on_open = on_open;
			corq_hist_init(&h);
			corq_hist_record(&h, 7);
			config.dev = "nothing";
			config.ip = "10.0.0.1/24";
			if (ops.on_open == NULL || corq_hist_percentile(&h, 50) != 7)
				return 1;
			if (corq_reason_at(0, &text, &is_drop) == NULL)
				return 2;
			/* Refused before any device or thread: the whole library is linked, nothing starts. */
			if (corq_start(&config, &inst, err, sizeof(err)) >= 0 || strstr(err, "nothing") == NULL)
				return 3;
			printf("%s\n", corq_state_name(CORQ_TIME_WAIT));
			return 0;
		}
	PROGRAM
	cp "$tmp/program.c" "$tmp/program.cpp"
}

# runs NAME LIBRARY-PATH COMMAND...: builds $tmp/NAME and runs it.
runs()
{
	local name=$1 path=$2 out
	shift 2
	"$@" -o "$tmp/$name" || fail "$name does not build"
	out=$(LD_LIBRARY_PATH=$path "$tmp/$name") || fail "$name: status $?"
	[ "$out" = TIME_WAIT ] || fail "$name printed '$out'"
	echo "program: $name"
}

library()
{
	local pc libs static libdir shared
	pc=$(find "$dest" -name corq.pc)
	[ "$pc" ] || fail "no corq.pc"
	libdir=$(dirname "$(dirname "$pc")")
	# The prefix is where this DESTDIR would be if it were the root.
	mkdir "$tmp/pc"
	sed "s|^prefix=|prefix=$dest|" "$pc" >"$tmp/pc/corq.pc"
	export PKG_CONFIG_PATH=$tmp/pc
	libs=$(pkg-config --cflags --libs corq)
	# As our own programs do it: corq linked in, DPDK shared (Debian's static DPDK wants the
	# development files of all that its drivers use).
	static="$(pkg-config --cflags corq) -L$libdir -l:libcorq.a $(pkg-config --libs libdpdk numa) -pthread"
	write_program
	runs c-shared "$libdir" cc $flags "$tmp/program.c" $libs
	runs c-static "" cc $flags "$tmp/program.c" $static
	command -v c++ >/dev/null && runs c++-shared "$libdir" c++ $flags "$tmp/program.cpp" $libs
	command -v c++ >/dev/null && runs c++-static "" c++ $flags "$tmp/program.cpp" $static
	shared=$(find "$libdir" -name 'libcorq.so.*' -type f)
	nm -D --defined-only "$shared" | awk '$3 !~ /^corq_/ { print $3 }' >"$tmp/names"
	[ ! -s "$tmp/names" ] || fail "the shared library gives out: $(head "$tmp/names")"
	ldd "$tmp/c-shared" | grep -q libcorq.so || fail "c-shared does not use the shared library"
	ldd "$tmp/c-static" | grep -q libcorq.so && fail "c-static uses the shared library"
	[ -x "$(find "$dest" -path '*/bin/corq')" ] || fail "no program corq"
	LD_LIBRARY_PATH=$libdir "$(find "$dest" -path '*/bin/corq')" --version >/dev/null ||
		fail "corq --version"
}

DESTDIR=$dest meson install -C "$build" --no-rebuild --quiet >"$tmp/log" 2>&1 || {
	cat "$tmp/log" >&2
	fail "meson install"
}
headers
if [ -f "$build/lib/libcorq.a" ]; then
	library
else
	echo "built without DPDK: no library to link"
fi
