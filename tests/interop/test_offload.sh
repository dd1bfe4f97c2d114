#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_offload.sh - the peer's offloads are on, as veth has them by default: corq says so in one
# line that names the ethtool command, as a client and as a server, and serves after the cure.
cd "$(dirname "$0")" || exit 1
. ./lab.sh

lab_need_corq curl ethtool
lab_up --offload on
lab_file page 1000
lab_nginx_start a
log=$LAB_LOGS/ab.err

lab_corq_ab -q -s 2 -n 4 -c 2 "http://$LAB_IP_A/page" >"$LAB_LOGS/ab.txt" 2>"$log" &&
	lab_die "corq ab got through a link with offloads on: nothing was tested"
grep -q "ethtool -K .* tx off" "$log" || lab_die "corq ab does not name the cure: $(cat "$log")"
[ "$(grep -c "^corq: warning: .*ethtool -K" "$log")" = 1 ] || lab_die "said more than once: $(cat "$log")"

lab_httpd_start --size 1000
lab_in_a curl -s -m 2 "http://$LAB_IP_B/" >/dev/null &&
	lab_die "curl got through a link with offloads on: nothing was tested"
grep -q "ethtool -K .* tx off" "$LAB_LOG" || lab_die "corq httpd does not name the cure: $(cat "$LAB_LOG")"

lab_in_a ethtool -K "$LAB_IF_A" tx off tso off gso off gro off >/dev/null 2>&1
lab_in_a curl -s -m 5 "http://$LAB_IP_B/" -o "$LAB_TMP/page" || lab_die "not served after the cure"
[ "$(stat -c %s "$LAB_TMP/page")" = 1000 ] || lab_die "a page of another size"
lab_httpd_stop INT
lab_say "all as it should be"
