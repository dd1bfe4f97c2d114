#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The echo server of the README is what it says: the code block compiles with gcc and clang,
# warnings are errors, against the public headers and the library alone; it greets itself on the
# loop device; and across a veth pair it gives a kernel client back every byte of 3 MB, FIN last.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3

top=$(cd ../.. && pwd)
lib=${BUILD_DIR:-$top/build}/lib/libcorq.a
lab_up
source=$LAB_TMP/echo.c
awk '/^<!-- echo.c -->$/ { found = 1; next }
	found && /^```c$/ { on = 1; next }
	on && /^```$/ { exit }
	on' "$top/README.md" >"$source"
[ "$(wc -l <"$source")" -gt 30 ] || lab_die "README.md has no block echo.c"

built=""
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	# shellcheck disable=SC2046 # words
	$cc -std=gnu11 -Wall -Wextra -Werror -O2 -I"$top/lib/include" "$source" "$lib" \
		$(pkg-config --libs libdpdk numa) -lpthread -o "$LAB_TMP/echo" ||
		lab_die "$cc does not take the README's echo.c"
	built="$built $cc"
done
[ "$built" ] || lab_die "no compiler"

answer=$(timeout 20 "$LAB_TMP/echo") || lab_die "echo on loop ended with $?"
[ "$answer" = hello ] || lab_die "echo on loop said '$answer', not 'hello'"

lab_spawn_b echo "$LAB_TMP/echo" "veth:$LAB_IF_B" "$LAB_IP_B/$LAB_LEN"
lab_in_a timeout 60 python3 - "$LAB_IP_B" <<'PYTHON' || lab_die "echo across veth: not what was sent"
import os, socket, sys, threading, time

sent = os.urandom(3_000_000)
for attempt in range(100):  # the server may not be up yet, and says nothing when it is
    try:
        s = socket.create_connection((sys.argv[1], 7), timeout=1)
        break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit("no connection")
s.settimeout(20)

def send():
    s.sendall(sent)
    s.shutdown(socket.SHUT_WR)

threading.Thread(target=send).start()
got = bytearray()
while block := s.recv(65536):
    got += block
print(len(got), "bytes back")
sys.exit(bytes(got) != sent)
PYTHON
lab_stop "$LAB_PID" TERM || true
lab_say "echo.c built with$built; all as it should be"
