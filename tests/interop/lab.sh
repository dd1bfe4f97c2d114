#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lab.sh - two network namespaces joined by a veth pair, and the stock programs to run in them.
#
# Every interop test and every comparison with the kernel uses it, so that all of them see the
# same wire: TSO, GSO, GRO and checksum offloads off at both ends, congestion control cubic, one
# CPU a side. Side A is always the kernel's. Side B is `bare` (no address: corq owns LAB_IP_B on
# it, and the kernel there stays silent) or `kernel` (a second kernel TCP).
#
# LAB_DEV is the device that corq on side B is given: veth (af_packet) and xdp sit on the pair. With
# tap there is one namespace and no pair: corq makes the interface and gives it LAB_IP_A when it
# starts, lab_httpd_start does the rest of side A then, and all is gone when corq ends.
#
# As a library:   . lab.sh; lab_up; ...; the EXIT trap calls lab_down
# As a command:   lab.sh run [lab_up options] -- COMMAND [ARGUMENT...]   (sees the LAB_* names)
#
#   lab_up [--b bare|kernel] [--dev veth|xdp|tap] [--mtu N] [--ip6] [--offload on|off]
#   lab_third                           a third side c, LAB_NS_C, the kernel's: on a second pair to side
#                                       a, which is LAB_IP_AC there, and c is LAB_IP_C
#   lab_down                            also runs by itself at exit, on error and on interrupt
#   lab_in_a CMD...  lab_in_b CMD...    run in the foreground, in the namespace, on its CPU
#   lab_spawn_a NAME CMD...  lab_spawn_b NAME CMD...
#                                       start in the background: LAB_PID, output in LAB_LOG
#   lab_stop PID [SIGNAL]               ends one of those; gives its exit status (124: had to kill)
#   lab_wait_line FILE REGEX PID [SECONDS]      until FILE holds it; fails when PID ends before
#   lab_wait_port SIDE PORT PID [SECONDS]       until a kernel socket listens there
#   lab_addr_add SIDE FIRST LAST        addresses LAB_NET.FIRST to .LAST in addition
#   lab_file NAME BYTES                 makes LAB_WWW/NAME of random bytes
#   lab_nginx_start SIDE [sendfile=on|off] [nopush=on|off] [port=80] [proxy=ADDRESS]
#                                       serves LAB_WWW; with proxy also what the server at ADDRESS
#                                       has, as /keep/... (connections kept) and /close/... (not)
#   lab_nginx_requests SIDE             LAB_COUNT: requests that nginx has served (its own count)
#   lab_nginx_stop
#   lab_capture_start SIDE FILE [FILTER...]  lab_capture_stop
#                                       the latter lets open closes end (at most 3 s), and fails
#                                       if the capture dropped a frame
#   lab_expect_ab FILE N [keepalive]    a report of ab: N complete, none failed, no other error
#   lab_expect_wrk FILE                 a report of wrk: requests, no error
#   lab_figure NAME                     what LAB_LOGS/out.txt, a report of corq's, says behind `NAME: `
#   lab_is NAME VALUE [NAME VALUE...]   those figures are so; `what` says of which run they are
#   lab_refused REGEX COMMAND...        it ends by itself, status not 0, its one line fits
#   lab_sha256 SIDE URL                 downloads with curl, prints the digest
#   lab_count NAMESPACE INTERFACE rx|tx packets|dropped     prints that count
#   lab_lost                            frames for which there was no room: at side A's interface, each
#                                       way, and those of them that came to side B's
#   lab_need_corq [PROGRAM...]          CORQ, the binary; skips the test when one is missing
#   lab_has_xdp                         the kernel has AF_XDP sockets
#   lab_httpd_start ARGS...  lab_httpd_stop SIGNAL      corq httpd on side b, one core; must end with 0
#   lab_corq_ab ARGS...                 corq ab on side b, bounded by LAB_TIMEOUT seconds
#   lab_say TEXT  lab_die TEXT  lab_skip TEXT       print; print and fail; print and exit 77
#
# Names for the caller: LAB_DEV LAB_NS_A LAB_NS_B LAB_IF_A LAB_IF_B LAB_NET LAB_IP_A LAB_IP_B LAB_LEN
# LAB_IP6_A LAB_IP6_B LAB_LEN6 LAB_CPU_A LAB_CPU_B LAB_MTU LAB_TMP LAB_WWW LAB_LOGS.
# From the caller: LAB_CPU_A, LAB_CPU_B (CPU lists), LAB_LOGS (folder for logs and captures that
# stay; without it they go with LAB_TMP), LAB_KEEP=1 (keep LAB_TMP).
#
# Limits: root only. Processes are ended by the ids this file started; what is left in our own
# two namespaces after that (children of those) is ended too, and said.

lab_pids=()
lab_is_up=""
lab_capture_pid=""
lab_capture_log=""
lab_nginx_pid=""
lab_httpd_pid=""

lab_say()
{
	echo "lab: $*"
}

lab_die()
{
	echo "lab: $*" >&2
	exit 1
}

lab_skip()
{
	echo "skip: $*"
	exit 77
}

# ---- up and down

lab_pick_cpus()
{
	local list
	list=$(taskset -pc $$ | sed 's/.*: //' | tr ',' '\n' |
		awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }')
	: "${LAB_CPU_A:=$(echo "$list" | sed -n 1p)}"
	: "${LAB_CPU_B:=$(echo "$list" | sed -n 2p)}"
	: "${LAB_CPU_B:=$LAB_CPU_A}"
}

lab_offloads="tso gso gro tx rx"

# The names that ethtool -k gives to lab_offloads.
lab_offload_check()
{
	local ns=$1 if=$2 want=$3 on
	on=$(ip netns exec "$ns" ethtool -k "$if" | grep -cE "^(tcp-segmentation-offload|generic-segmentation-offload|generic-receive-offload|tx-checksumming|rx-checksumming): on" || true)
	case $want in
	off) [ "$on" = 0 ] || lab_die "$if: $on offloads are still on" ;;
	on) [ "$on" -ge 4 ] || lab_die "$if: only $on of 5 offloads are on" ;;
	esac
}

lab_offload_set()
{
	local ns=$1 if=$2 want=$3 name args=()
	for name in $lab_offloads; do
		args+=("$name" "$want")
	done
	ip netns exec "$ns" ethtool -K "$if" "${args[@]}" >/dev/null ||
		lab_die "$if: ethtool -K failed"
	lab_offload_check "$ns" "$if" "$want"
}

# Writes VALUE into the namespace's own /proc/sys/NAME.
lab_sysctl()
{
	local ns=$1 name=$2 value=$3
	ip netns exec "$ns" sh -c 'echo "$1" > "/proc/sys/$0"' "$name" "$value" ||
		lab_die "cannot set $name in $ns"
}

lab_kernel_side()
{
	local ns=$1 if=$2 ip=$3 ip6=$4
	lab_sysctl "$ns" net/core/somaxconn 65535
	lab_sysctl "$ns" net/ipv4/tcp_max_syn_backlog 65535
	lab_sysctl "$ns" net/ipv4/ip_local_port_range "1024 65535"
	ip -n "$ns" addr replace "$ip/$LAB_LEN" dev "$if"
	if [ "$lab_ip6" ]; then
		ip -n "$ns" addr add "$ip6/$LAB_LEN6" dev "$if" nodad
	fi
	# The sysctl is refused in a namespace; a route's setting is not.
	ip -n "$ns" route change "$LAB_NET.0/$LAB_LEN" dev "$if" src "$ip" congctl cubic ||
		lab_die "cannot pin congestion control cubic"
	if [ "$lab_ip6" ]; then
		ip -n "$ns" -6 route change "${LAB_IP6_A%::*}::/$LAB_LEN6" dev "$if" \
			proto kernel metric 256 congctl cubic ||
			lab_die "cannot pin congestion control cubic for IPv6"
	fi
}

# Before the link is up, so that no router solicitation or report disturbs a capture.
lab_quiet_side()
{
	local ns=$1 if=$2 v6=$3
	lab_sysctl "$ns" net/ipv4/ip_forward 0
	[ -d /proc/sys/net/ipv6 ] || return 0
	if [ "$v6" ]; then
		lab_sysctl "$ns" "net/ipv6/conf/$if/accept_dad" 0
		lab_sysctl "$ns" "net/ipv6/conf/$if/router_solicitations" 0
	else
		lab_sysctl "$ns" "net/ipv6/conf/$if/disable_ipv6" 1
	fi
}

lab_options()
{
	lab_b=bare lab_dev=veth LAB_MTU=1500 lab_ip6="" lab_offload=off
	while [ $# -gt 0 ]; do
		case $1 in
		--b) lab_b=$2 && shift ;;
		--dev) lab_dev=$2 && shift ;;
		--mtu) LAB_MTU=$2 && shift ;;
		--ip6) lab_ip6=yes ;;
		--offload) lab_offload=$2 && shift ;;
		*) lab_die "lab_up: unknown option $1" ;;
		esac
		shift
	done
	case $lab_b in
	bare | kernel) ;;
	*) lab_die "lab_up: --b is bare or kernel" ;;
	esac
	case $lab_dev in
	veth | xdp) ;;
	tap) [ $lab_b = bare ] || lab_die "lab_up: --dev tap has no second kernel" ;;
	*) lab_die "lab_up: --dev is veth, xdp or tap" ;;
	esac
}

lab_namespace()
{
	ip netns add "$1" || lab_die "cannot make namespace $1"
	ip -n "$1" link set lo up
}

lab_pair()
{
	lab_namespace "$LAB_NS_A"
	lab_namespace "$LAB_NS_B"
	ip link add "$LAB_IF_A" netns "$LAB_NS_A" type veth peer name "$LAB_IF_B" netns "$LAB_NS_B" ||
		lab_die "cannot make a veth pair"
	lab_link "$LAB_NS_A" "$LAB_IF_A" "$lab_ip6"
	if [ "$lab_b" = kernel ]; then
		lab_link "$LAB_NS_B" "$LAB_IF_B" "$lab_ip6"
	else
		lab_link "$LAB_NS_B" "$LAB_IF_B" ""
	fi
	lab_kernel_side "$LAB_NS_A" "$LAB_IF_A" "$LAB_IP_A" "$LAB_IP6_A"
	if [ "$lab_b" = kernel ]; then
		lab_kernel_side "$LAB_NS_B" "$LAB_IF_B" "$LAB_IP_B" "$LAB_IP6_B"
	fi
	# The carrier is reported a little after both ends are up.
	lab_poll 5 0 lab_has_carrier "$LAB_NS_A" "$LAB_IF_A" || lab_die "$LAB_IF_A has no carrier"
	lab_poll 5 0 lab_has_carrier "$LAB_NS_B" "$LAB_IF_B" || lab_die "$LAB_IF_B has no carrier"
}

lab_tap_namespace()
{
	lab_namespace "$LAB_NS_A"
	lab_quiet_side "$LAB_NS_A" default ""
}

# The kernel's end of a tap that corq has just made. Its address and its long queue are corq's gift:
# that is checked.
lab_tap_side()
{
	ip -n "$LAB_NS_A" -o -4 addr show dev "$LAB_IF_A" | grep -qw "inet $LAB_IP_A/$LAB_LEN" ||
		lab_die "corq gave $LAB_IF_A no address $LAB_IP_A/$LAB_LEN"
	ip -n "$LAB_NS_A" link show dev "$LAB_IF_A" | grep -qw "qlen 10000" ||
		lab_die "corq left the queue of $LAB_IF_A as it was"
	lab_offload_set "$LAB_NS_A" "$LAB_IF_A" "$lab_offload"
	lab_kernel_side "$LAB_NS_A" "$LAB_IF_A" "$LAB_IP_A" ""
}

lab_up()
{
	local program
	[ "$(id -u)" = 0 ] || lab_die "run as root"
	[ "$lab_is_up" ] && lab_die "lab_up: it is up already"
	lab_options "$@"
	for program in ip ethtool taskset; do
		command -v $program >/dev/null || lab_die "$program is not installed (apps/deps.sh test)"
	done
	lab_pick_cpus
	LAB_NS_A=corq-a-$$ LAB_NS_B=corq-b-$$ LAB_IF_A=cqa$$ LAB_IF_B=cqb$$
	[ "$lab_dev" = tap ] && LAB_NS_B=$LAB_NS_A LAB_IF_B=$LAB_IF_A
	LAB_DEV=$lab_dev:$LAB_IF_B
	LAB_NET=10.77.0 LAB_LEN=24 LAB_IP_A=10.77.0.1 LAB_IP_B=10.77.0.2
	LAB_IP6_A=fd77::1 LAB_IP6_B=fd77::2 LAB_LEN6=64
	LAB_TMP=$(mktemp -d "${TMPDIR:-/tmp}/corq-lab.XXXXXX") || lab_die "cannot make a temporary folder"
	LAB_WWW=$LAB_TMP/www
	: "${LAB_LOGS:=$LAB_TMP/logs}"
	lab_is_up=yes
	trap lab_down EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	mkdir -p "$LAB_WWW" "$LAB_LOGS"
	if [ "$lab_dev" = tap ]; then
		lab_tap_namespace
	else
		lab_pair
	fi
	export LAB_DEV LAB_NS_A LAB_NS_B LAB_IF_A LAB_IF_B LAB_NET LAB_IP_A LAB_IP_B LAB_LEN LAB_IP6_A \
		LAB_IP6_B LAB_LEN6 LAB_CPU_A LAB_CPU_B LAB_MTU LAB_TMP LAB_WWW LAB_LOGS
}

lab_link()
{
	local ns=$1 if=$2 v6=$3
	lab_quiet_side "$ns" "$if" "$v6"
	ip -n "$ns" link set "$if" mtu "$LAB_MTU" || lab_die "$if: MTU $LAB_MTU refused"
	lab_offload_set "$ns" "$if" "$lab_offload"
	ip -n "$ns" link set "$if" up
}

lab_third()
{
	local LAB_NET=10.78.0 if_a=cqp$$ if_c=cqc$$
	LAB_NS_C=corq-c-$$ LAB_IP_AC=$LAB_NET.1 LAB_IP_C=$LAB_NET.2
	lab_namespace "$LAB_NS_C"
	ip link add "$if_a" netns "$LAB_NS_A" type veth peer name "$if_c" netns "$LAB_NS_C" ||
		lab_die "cannot make a second veth pair"
	lab_link "$LAB_NS_A" "$if_a" ""
	lab_link "$LAB_NS_C" "$if_c" ""
	lab_kernel_side "$LAB_NS_A" "$if_a" "$LAB_IP_AC" ""
	lab_kernel_side "$LAB_NS_C" "$if_c" "$LAB_IP_C" ""
	lab_poll 5 0 lab_has_carrier "$LAB_NS_C" "$if_c" || lab_die "$if_c has no carrier"
}

lab_has_carrier()
{
	ip -n "$1" -o link show "$2" | grep -q 'state UP'
}

lab_down()
{
	local status=$? i pid left ns
	trap '' INT TERM HUP
	trap - EXIT
	set +e
	if [ "$lab_is_up" ]; then
		lab_is_up=""
		for ((i = ${#lab_pids[@]} - 1; i >= 0; i--)); do
			lab_stop "${lab_pids[i]}" TERM
		done
		lab_pids=()
		for ns in "$LAB_NS_A" "$LAB_NS_B" ${LAB_NS_C-}; do
			left=$(ip netns pids "$ns" 2>/dev/null)
			for pid in $left; do
				echo "lab: process $pid ($(cat "/proc/$pid/comm" 2>/dev/null)) was left, killed" >&2
				kill -KILL "$pid" 2>/dev/null
			done
			ip netns del "$ns" 2>/dev/null
		done
		[ "${LAB_KEEP-}" ] || rm -rf "$LAB_TMP"
	fi
	trap - INT TERM HUP
	return $status
}

# ---- processes

lab_in_a()
{
	ip netns exec "$LAB_NS_A" taskset -c "$LAB_CPU_A" "$@"
}

lab_in_b()
{
	ip netns exec "$LAB_NS_B" taskset -c "$LAB_CPU_B" "$@"
}

lab_in()
{
	local side=$1
	shift
	case $side in
	a) lab_in_a "$@" ;;
	b) lab_in_b "$@" ;;
	*) lab_die "side is a or b, not '$side'" ;;
	esac
}

# ip and taskset both exec, so that the id is the command's own.
lab_spawn()
{
	local ns=$1 cpu=$2 name=$3
	shift 3
	LAB_LOG=$LAB_LOGS/$name.log
	: >"$LAB_LOG"
	ip netns exec "$ns" taskset -c "$cpu" "$@" >"$LAB_LOG" 2>&1 </dev/null &
	LAB_PID=$!
	lab_pids+=("$LAB_PID")
}

lab_spawn_a()
{
	lab_spawn "$LAB_NS_A" "$LAB_CPU_A" "$@"
}

lab_spawn_b()
{
	lab_spawn "$LAB_NS_B" "$LAB_CPU_B" "$@"
}

# Polled, for the shell's own wait has no bound.
lab_stop()
{
	local pid=$1 signal=${2:-TERM} i status=0
	kill "-$signal" "$pid" 2>/dev/null || true
	for ((i = 0; i < 200; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	if kill -0 "$pid" 2>/dev/null; then
		echo "lab: process $pid did not end on SIG$signal within 10 s, killed" >&2
		kill -KILL "$pid" || true
		wait "$pid" 2>/dev/null || true
		status=124
	else
		wait "$pid" 2>/dev/null || status=$?
	fi
	lab_forget "$pid"
	return $status
}

lab_forget()
{
	local pid keep=()
	for pid in "${lab_pids[@]}"; do
		[ "$pid" = "$1" ] || keep+=("$pid")
	done
	lab_pids=("${keep[@]}")
}

# Polls TEST... until it is true: bounded by seconds, and by the life of PID (0: none).
lab_poll()
{
	local seconds=$1 pid=$2 i
	shift 2
	for ((i = 0; i < seconds * 20; i++)); do
		"$@" && return 0
		if [ "$pid" != 0 ] && ! kill -0 "$pid" 2>/dev/null; then
			"$@" && return 0
			return 1
		fi
		sleep 0.05
	done
	return 1
}

lab_wait_line()
{
	local file=$1 regex=$2 pid=$3 seconds=${4:-20}
	lab_poll "$seconds" "$pid" grep -qE -- "$regex" "$file" && return 0
	echo "lab: no line '$regex' within $seconds s in $file; its end:" >&2
	tail -n 15 "$file" >&2
	return 1
}

lab_listens()
{
	[ "$(ip netns exec "$1" ss -Htln "sport = :$2")" ]
}

lab_wait_port()
{
	local ns=$LAB_NS_A port=$2 pid=${3:-0} seconds=${4:-10}
	[ "$1" = b ] && ns=$LAB_NS_B
	lab_poll "$seconds" "$pid" lab_listens "$ns" "$port" && return 0
	echo "lab: nothing listens on port $port of side $1 after $seconds s" >&2
	return 1
}

lab_addr_add()
{
	local ns=$LAB_NS_A if=$LAB_IF_A i
	[ "$1" = b ] && ns=$LAB_NS_B if=$LAB_IF_B
	for ((i = $2; i <= $3; i++)); do
		ip -n "$ns" addr add "$LAB_NET.$i/32" dev "$if" || return 1
	done
}

# ---- stock programs

lab_file()
{
	head -c "$2" /dev/urandom >"$LAB_WWW/$1" && [ "$(stat -c %s "$LAB_WWW/$1")" = "$2" ]
}

# The upstream's keepalive_timeout is below that of corq httpd, 30 s, so that no request meets its
# close. 100 MB go through without a file between.
lab_nginx_proxy()
{
	cat <<-CONF
		upstream kept { server $1; keepalive 64; keepalive_timeout 20s; }
		proxy_max_temp_file_size 0;
		proxy_request_buffering off;
		client_max_body_size 0;
	CONF
}

lab_nginx_locations()
{
	cat <<-CONF
		location /close/ { proxy_pass http://$1/; }
		location /keep/ {
			proxy_pass http://kept/;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
		}
	CONF
}

lab_nginx_conf()
{
	local dir=$1 sendfile=$2 nopush=$3 port=$4 proxy=$5 listen6=""
	[ "$lab_ip6" ] && listen6="listen [::]:$port backlog=16384;"
	cat <<-CONF
		user root;
		worker_processes 1;
		worker_rlimit_nofile 16384;
		daemon off;
		pid $dir/pid;
		error_log stderr warn;
		events { worker_connections 16000; }
		http {
			access_log off;
			default_type application/octet-stream;
			sendfile $sendfile;
			tcp_nopush $nopush;
			tcp_nodelay on;
			keepalive_timeout 300;
			keepalive_requests 1000000000;
			open_file_cache max=64;
			client_body_temp_path $dir/body;
			proxy_temp_path $dir/proxy;
			fastcgi_temp_path $dir/fastcgi;
			uwsgi_temp_path $dir/uwsgi;
			scgi_temp_path $dir/scgi;
			${proxy:+$(lab_nginx_proxy "$proxy")}
			server {
				listen $port backlog=16384;
				$listen6
				root $LAB_WWW;
				location = /lab_status { stub_status; }
				${proxy:+$(lab_nginx_locations "$proxy")}
			}
		}
	CONF
}

lab_nginx_start()
{
	local side=$1 sendfile=on nopush=on port=80 proxy="" dir=$LAB_TMP/nginx option
	shift
	for option in "$@"; do
		case $option in
		sendfile=* | nopush=* | port=* | proxy=*) local "${option?}" ;;
		*) lab_die "lab_nginx_start: unknown option $option" ;;
		esac
	done
	[ "$lab_nginx_pid" ] && lab_die "nginx runs already"
	command -v nginx >/dev/null || lab_die "nginx is not installed (apps/deps.sh)"
	mkdir -p "$dir"
	lab_nginx_conf "$dir" "$sendfile" "$nopush" "$port" "$proxy" >"$dir/nginx.conf"
	"lab_spawn_$side" nginx nginx -p "$dir" -e stderr -c "$dir/nginx.conf"
	lab_nginx_pid=$LAB_PID
	lab_nginx_port=$port
	lab_wait_port "$side" "$port" "$LAB_PID" || {
		tail -n 5 "$LAB_LOG" >&2
		lab_die "nginx did not start"
	}
}

# Asked over the namespace's loopback, so that the wire sees nothing of it; this question is
# counted by nginx too, and taken off here together with the earlier ones.
lab_nginx_asked=0
lab_nginx_requests()
{
	local ns=$LAB_NS_A count
	[ "$1" = b ] && ns=$LAB_NS_B
	lab_nginx_asked=$((lab_nginx_asked + 1))
	count=$(ip netns exec "$ns" curl -s --max-time 5 "http://127.0.0.1:$lab_nginx_port/lab_status" |
		awk 'NR == 3 { print $3 }')
	[ "$count" ] || return 1
	LAB_COUNT=$((count - lab_nginx_asked))
}

lab_nginx_stop()
{
	[ "$lab_nginx_pid" ] || return 0
	lab_stop "$lab_nginx_pid" TERM || true
	lab_nginx_pid=""
	lab_nginx_asked=0
}

# Immediate mode: a block of the normal ring that is not full yet would be lost at the end.
lab_capture_start()
{
	local side=$1 file=$2 if=$LAB_IF_A
	shift 2
	[ "$side" = b ] && if=$LAB_IF_B
	[ "$lab_capture_pid" ] && lab_die "a capture runs already"
	command -v tcpdump >/dev/null || lab_die "tcpdump is not installed (apps/deps.sh)"
	"lab_spawn_$side" "tcpdump.${file##*/}" tcpdump -i "$if" -Z root -n -s $((LAB_MTU + 64)) \
		-B 131072 --immediate-mode -w "$file" "$@"
	lab_capture_pid=$LAB_PID
	lab_capture_log=$LAB_LOG
	lab_wait_line "$LAB_LOG" '^tcpdump: listening on' "$LAB_PID" 10 || lab_die "tcpdump did not start"
}

# No kernel socket of the two sides is on its way through a close.
lab_settled()
{
	local ns
	for ns in "$LAB_NS_A" "$LAB_NS_B"; do
		[ -z "$(ip netns exec "$ns" ss -Htan exclude listening exclude time-wait)" ] || return 1
	done
}

lab_capture_stop()
{
	local dropped
	[ "$lab_capture_pid" ] || return 0
	lab_poll 3 0 lab_settled || true
	lab_stop "$lab_capture_pid" INT || true
	lab_capture_pid=""
	dropped=$(awk '/dropped by kernel/ { print $1 }' "$lab_capture_log")
	if [ "$dropped" != 0 ]; then
		echo "lab: the capture itself dropped ${dropped:-an unknown number of} frames" >&2
		return 1
	fi
}

lab_expect_ab()
{
	local file=$1 n=$2 keepalive=${3-} bad=""
	grep -qE "^Complete requests: +$n\$" "$file" || bad="not $n complete"
	grep -qE "^Failed requests: +0\$" "$file" || bad="failed requests"
	grep -qE "^(Write errors|Non-2xx responses):" "$file" && bad="write errors or bad status"
	if [ "$keepalive" ]; then
		grep -qE "^Keep-Alive requests: +$n\$" "$file" || bad="not $n keep-alive requests"
	fi
	[ "$bad" ] || return 0
	echo "lab: $bad in the report of ab, $file:" >&2
	tail -n 40 "$file" >&2
	return 1
}

lab_expect_wrk()
{
	local file=$1
	if grep -qE "requests in" "$file" && ! grep -qE "^ +0 requests in" "$file" &&
		! grep -qE "Socket errors|Non-2xx" "$file"; then
		return 0
	fi
	echo "lab: errors in the report of wrk, $file:" >&2
	cat "$file" >&2
	return 1
}

lab_figure()
{
	sed -n "s/^$1: //p" "$LAB_LOGS/out.txt"
}

lab_is()
{
	while [ $# -gt 1 ]; do
		[ "$(lab_figure "$1")" = "$2" ] || lab_die "$what: $1 is '$(lab_figure "$1")', not $2"
		shift 2
	done
}

lab_refused()
{
	local regex=$1 status=0
	shift
	timeout 60 "$@" >"$LAB_LOGS/out.txt" 2>"$LAB_LOGS/err.txt" || status=$?
	[ $status != 0 ] && [ $status != 124 ] || lab_die "$*: status $status"
	[ "$(grep -v warning: "$LAB_LOGS/err.txt" | wc -l)" = 1 ] && grep -qE -- "$regex" "$LAB_LOGS/err.txt" ||
		lab_die "$*: $(cat "$LAB_LOGS/err.txt")"
	lab_say "$(grep -v warning: "$LAB_LOGS/err.txt")"
}

lab_sha256()
{
	local side=$1 url=$2
	lab_in "$side" curl -sS --fail --max-time 120 -o "$LAB_TMP/download" "$url" || return 1
	sha256sum "$LAB_TMP/download" | cut -d' ' -f1
	rm -f "$LAB_TMP/download"
}

lab_count()
{
	ip -n "$1" -s -j link show dev "$2" | python3 -c '
import json, sys
print(json.load(sys.stdin)[0]["stats64"][sys.argv[1]][sys.argv[2]])' "$3" "$4"
}

lab_lost()
{
	echo "$(lab_count "$LAB_NS_A" "$LAB_IF_A" rx dropped) to us," \
		"$(lab_count "$LAB_NS_A" "$LAB_IF_A" tx dropped) from us," \
		"$(lab_count "$LAB_NS_B" "$LAB_IF_B" rx dropped) at side B"
}

# ---- corq

lab_need_corq()
{
	local program
	CORQ=${CORQ:-$(realpath -m "$(dirname "${BASH_SOURCE[0]}")/../../build/apps/corq")}
	[ -x "$CORQ" ] || lab_skip "corq is not built ($CORQ)"
	for program in "$@"; do
		command -v "$program" >/dev/null || lab_skip "$program is not installed (apps/deps.sh test)"
	done
}

lab_has_xdp()
{
	python3 -c 'import socket; socket.socket(44, socket.SOCK_RAW)' 2>/dev/null
}

lab_httpd_start()
{
	lab_spawn_b httpd "$CORQ" httpd --dev "$LAB_DEV" --ip "$LAB_IP_B/$LAB_LEN" --cores 1 "$@"
	lab_httpd_pid=$LAB_PID
	lab_wait_line "$LAB_LOG" '^corq httpd: listening on' "$LAB_PID" 20 || lab_die "corq httpd did not start"
	[ "$lab_dev" != tap ] || lab_tap_side
}

lab_httpd_stop()
{
	local status=0
	lab_stop "$lab_httpd_pid" "$1" || status=$?
	[ $status = 0 ] || lab_die "corq httpd ended with status $status on SIG$1"
}

lab_corq_ab()
{
	lab_in_b timeout --kill-after=5 "${LAB_TIMEOUT:-120}" "$CORQ" ab --dev "$LAB_DEV" \
		--ip "$LAB_IP_B/$LAB_LEN" --gw none "$@"
}

# ---- as a command

lab_main()
{
	local options=()
	if [ "${1-}" != run ]; then
		echo "usage: lab.sh run [--b bare|kernel] [--dev veth|xdp|tap] [--mtu N] [--ip6] [--offload on|off] -- COMMAND..." >&2
		exit 2
	fi
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	[ $# -gt 1 ] || lab_die "run: no command after --"
	shift
	lab_up "${options[@]}"
	"$@"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	lab_main "$@"
fi
