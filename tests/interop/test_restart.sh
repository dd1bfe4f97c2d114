#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients that know a server's hardware address do not ask for it when the server is started again:
# 300 of them at once, the first packets that it sees, all from one neighbour that it does not know.
#
# Checks, on veth and on xdp: each is answered, and nothing had to be sent twice (which would take a
# second). A machine that is short of CPU, or whose other traffic fills the backlog of frames that a
# CPU has for all namespaces, has the same effect: three tries.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3 jq

clients()
{
	lab_in_a python3 - "$LAB_IP_B" 300 <<-'PYTHON'
		import selectors, socket, sys, time
		begin, slowest, done = time.monotonic(), 0, 0
		wait = selectors.DefaultSelector()
		for _ in range(int(sys.argv[2])):
		    s = socket.socket()
		    s.setblocking(False)
		    s.connect_ex((sys.argv[1], 80))
		    wait.register(s, selectors.EVENT_WRITE)
		while wait.get_map() and time.monotonic() < begin + 20:
		    for key, events in wait.select(1):
		        s = key.fileobj
		        if events & selectors.EVENT_WRITE:
		            s.send(b"GET / HTTP/1.0\r\n\r\n")
		            wait.modify(s, selectors.EVENT_READ)
		            continue
		        done += s.recv(4096).startswith(b"HTTP/1.1 200 ")
		        slowest = time.monotonic() - begin
		        wait.unregister(s)
		        s.close()
		print(f"{done} answers, the last after {slowest:.3f} s")
		sys.exit(done != int(sys.argv[2]))
	PYTHON
}

# first_clients DEVICE: all at once, against a server that has just been started
first_clients()
{
	local json=$LAB_LOGS/restart.json
	lab_httpd_start --json "$json" --size 100
	clients || lab_die "$1: not all clients were answered"
	lab_httpd_stop INT
	said=$(jq -c .tcp "$json")
	jq -e '.connections == 300 and .tcp.retransmits == 0' "$json" >/dev/null
}

restarted()
{
	local mac try
	LAB_DEV=$1:$LAB_IF_B
	mac=$(ip -n "$LAB_NS_B" -j link show dev "$LAB_IF_B" | jq -r '.[0].address')
	ip -n "$LAB_NS_A" neigh replace "$LAB_IP_B" lladdr "$mac" dev "$LAB_IF_A" nud permanent
	for try in 1 2 3; do
		first_clients "$1" && return 0
		lab_say "$1, try $try: $said; frames without room: $(lab_lost)"
	done
	lab_die "$1: sent twice, three times"
}

lab_up
restarted veth
if lab_has_xdp; then
	restarted xdp
else
	lab_say "this kernel has no AF_XDP sockets: veth only"
fi
