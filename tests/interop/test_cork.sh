#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Corking and closing as the wire sees it: corq across a veth pair from the kernel's sockets.
#
# perf/cork_server answers and closes in the four ways of perf/cork_modes.h, 25 connections each, one
# at a time. What one callback writes and closes is one segment, corked or not, uncorked or not: of
# data corq sends one segment of 100 bytes with PSH and FIN, and nothing else.
#
# corq httpd corks. The 8.5 KB page is six full segments and a last one with PSH and FIN, header and
# body without a seam; on a connection that is kept the last one of each response has PSH, and the
# FIN comes alone, when the client closes and all is acknowledged.
#
# Nothing is retransmitted by corq, no FIN goes alone behind data that is not acknowledged.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq ab tcpdump python3
server=${BUILD_DIR:-$(dirname "$CORQ")/..}/perf/cork_server
[ -x "$server" ] || lab_skip "$server is not built (meson option perf)"

# shapes FILE REGEX: of each connection corq's segments with data or FIN, as flags and length
shapes()
{
	python3 - "$LAB_IP_B" "$@" <<-'PYTHON'
		import ipaddress, re, sys
		sys.dont_write_bytecode = True
		sys.path.insert(0, ".")
		import check_pcap as pcap
		address, path, want = ipaddress.ip_address(sys.argv[1]).packed, sys.argv[2], sys.argv[3]
		all, now = {}, {} # by SYN-ACK; by ports, the newest
		for number, (_, data, _) in enumerate(pcap.read_frames(path), 1):
		    _, src, dst, payload, _, _ = pcap.ip_payload(data)
		    s = pcap.parse_tcp(number, src, dst, payload)
		    ports = s.sport, s.dport
		    if src != address:
		        continue
		    if s.flags & pcap.SYN:
		        now[ports] = all.setdefault((ports, s.seq), [])
		    elif s.length or s.flags & pcap.FIN:
		        flags = "F" * bool(s.flags & pcap.FIN) + "P" * bool(s.flags & pcap.PSH)
		        now[ports].append(f"{flags}{s.length}")
		bad = [" ".join(v) for v in all.values() if v and not re.fullmatch(want, " ".join(v))]
		good = sum(map(bool, all.values())) - len(bad)
		print(f"{good} connections as {want}", *(f"but: {x}" for x in bad[:3]), sep="\n")
		sys.exit(bool(bad) or not good)
	PYTHON
}

# captured NAME COMMAND...: on side a, its output in LAB_LOGS/NAME.out
captured()
{
	local name=$1
	shift
	lab_capture_start a "$LAB_LOGS/$name.pcap" tcp
	lab_in_a timeout 60 "$@" >"$LAB_LOGS/$name.out"
	lab_capture_stop
}

judged()
{
	./check_pcap.py --addr "$LAB_IP_B" --no-reset --complete --peer-retransmissions 100 "$@"
}

lab_up
lab_spawn_b cork_server "$server" --dev "$LAB_DEV" --ip "$LAB_IP_B/$LAB_LEN"
server_pid=$LAB_PID server_log=$LAB_LOG
lab_wait_line "$LAB_LOG" '^cork_server: listening' "$LAB_PID" 20 || lab_die "cork_server did not start"
captured modes python3 ../../perf/cork_client.py 24 "corq=$LAB_IP_B"
lab_stop "$server_pid" INT || lab_die "cork_server: $(tail -n 5 "$server_log")"
for mode in plain cork-close cork-uncork-close cork-shutdown; do
	grep -qx "$mode: 25 connections, 0 failed" "$server_log" || lab_die "$(cat "$server_log")"
done
judged --fin strict --min-connections 100 "$LAB_LOGS/modes.pcap"
shapes "$LAB_LOGS/modes.pcap" "FP100"

lab_file page 8704
lab_httpd_start "$LAB_WWW"
captured page ab -q -n 500 -c 20 "http://$LAB_IP_B/page"
lab_expect_ab "$LAB_LOGS/page.out" 500
captured kept python3 - "$LAB_IP_B" <<'PYTHON'
import http.client, sys
for _ in range(5):
    conn = http.client.HTTPConnection(sys.argv[1], timeout=20)
    for _ in range(20):
        conn.request("GET", "/page")
        assert len(conn.getresponse().read()) == 8704
    conn.close()
PYTHON
lab_httpd_stop INT
judged --fin strict --min-connections 500 "$LAB_LOGS/page.pcap"
# ab opens a connection or two that it has no request for.
shapes "$LAB_LOGS/page.pcap" '(1448 ){6}FP\d+|F0'
judged --fin acked --min-connections 5 "$LAB_LOGS/kept.pcap"
shapes "$LAB_LOGS/kept.pcap" '((1448 ){6}P\d+ ){20}F0'
lab_say "all as it should be"
