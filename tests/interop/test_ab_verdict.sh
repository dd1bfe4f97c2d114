#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# corq ab names what limits the rate. Three bottlenecks are planted, each a real fault:
#
#   target      a server that waits 200 ms before each answer
#   nic         uploads through an interface whose token bucket lets 15 Mbit/s out, by the AF_PACKET
#               driver with qdisc_bypass=0 (veth: passes queueing disciplines by)
#   generator   the CPU of the client's core also runs six endless loops of the same priority (with
#               one, a core that sleeps when it is idle still gets the fifth of a CPU that it needs)
#
# Each is named right three times in a row. The first two again with an endless loop on either CPU: a
# machine that is busy must not change the answer, only the planted fault may.
set -eu
cd "$(dirname "$0")"
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3 nginx tc

lab_up
burners=()

# burn SIDE COUNT: endless loops on the CPU of that side
burn()
{
	local side=$1 i
	for ((i = 0; i < $2; i++)); do
		"lab_spawn_$side" "burn$side$i" sh -c 'while :; do :; done'
		burners+=("$LAB_PID")
	done
}

cool()
{
	local pid
	for pid in "${burners[@]}"; do
		lab_stop "$pid" || [ $? = 143 ]
	done
	burners=()
}

# names VERDICT WHAT OPTION...: three times in a row
names()
{
	local want=$1 what=$2 try
	shift 2
	for try in 1 2 3; do
		lab_in_b timeout 120 "$CORQ" ab -q --name "v$$" "$@" \
			>"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" ||
			lab_die "$what: status $?: $(tail -n 3 "$LAB_LOGS/err.txt")"
		lab_say "$what: $(lab_figure verdict): $(lab_figure verdict_reason) (late $(lab_figure slots_late_pct) %," \
			"lost $(lab_figure cpu_lost_pct_per_core) %, blocked $(lab_figure tx_blocked_pct) %)"
		[ "$(lab_figure verdict)" = "$want" ] || lab_die "$what: the verdict is '$(lab_figure verdict)', not $want"
	done
}

slow()
{
	names target "a slow server$1" --dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/$LAB_LEN" --gw none \
		-t 2 -n 1000 -c 20 "http://$LAB_IP_A:81/"
}

throttled()
{
	names nic "a throttled interface$1" \
		--dev "vdev:net_af_packet0,iface=$LAB_IF_B,qdisc_bypass=0,blocksz=16384,framecnt=64" \
		--ip "$LAB_IP_B/$LAB_LEN" --gw none -t 3 -n 100000 -c 50 -p "$LAB_TMP/body" "http://$LAB_IP_A:82/"
}

head -c 60000 /dev/zero >"$LAB_TMP/body"
for port in 81:200 82:0; do
	lab_spawn_a "server${port%:*}" python3 ./slow_server.py "$LAB_IP_A" "${port%:*}" "${port#*:}"
	lab_wait_line "$LAB_LOG" listening "$LAB_PID"
done
lab_file page 100
lab_nginx_start a

tbf()
{
	ip netns exec "$LAB_NS_B" tc qdisc "$@" || lab_skip "this kernel has no token bucket (tbf)"
}

slow ""
tbf add dev "$LAB_IF_B" root tbf rate 15mbit burst 32k limit 100m
throttled ""
burn a 1
burn b 1
throttled " on a busy machine"
tbf del dev "$LAB_IF_B" root
slow " on a busy machine"
cool
# Whatever else this machine does must not make nginx the slow one.
ip netns pids "$LAB_NS_A" | xargs renice -n -19 -p >/dev/null
burn b 6
names generator "a loaded client core" --dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/$LAB_LEN" --gw none \
	-k -c 50 -n 20000 "http://$LAB_IP_A/page"
cool
lab_say "all as it should be"
