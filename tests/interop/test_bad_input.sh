#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What goes wrong from outside: one clear line on standard error, a status that is neither 0 nor
# a signal's, and an end within 20 s, each: no such interface, port in use, bad URL, -c above -n,
# unreachable host, refused connection, resetting server, half a response (closed, and stalled),
# garbage for HTTP, an end without a byte, too few cores, too little memory, options that are
# wrong or missing, offloads left on at the other end.
#
# The line begins with `corq ab: ` or `corq httpd: ` (or `corq: `) and names the matter. Beside it
# only the note on huge pages may stand there: nothing of EAL's.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lab.sh
. ./lab.sh
lab_need_corq python3

wrong=0

# refuses NAME REGEX ARGUMENT...: corq ARGUMENT... must fail with a line that REGEX matches.
refuses()
{
	local name=$1 regex=$2 err line n begin
	shift 2
	err=$LAB_LOGS/$name.err
	begin=$SECONDS
	lab_in_b timeout --kill-after=2 20 "$CORQ" "$@" >"$LAB_LOGS/$name.out" 2>"$err" </dev/null
	status=$?
	n=$(grep -cviE 'huge ?pages?' "$err")
	line=$(grep -viE 'huge ?pages?' "$err" | head -n 1)
	if [ $status = 124 ] || [ $status = 137 ]; then
		line="hangs: still there after 20 s"
	elif [ $status = 0 ]; then
		line="status 0"
	elif [ $status -gt 127 ]; then
		line="status $status: a signal"
	elif [ "$n" != 1 ]; then
		line="$n lines on standard error, not 1"
	elif [ ${#line} -gt 200 ]; then
		line="a line of ${#line} characters"
	elif ! grep -qE '^corq( [a-z]+)?: ' <<<"$line"; then
		line="does not say who speaks: $line"
	elif ! grep -qiE -- "$regex" <<<"$line"; then
		line="does not name the matter ($regex): $line"
	else
		echo "ok    $name ($((SECONDS - begin)) s): $line"
		return
	fi
	wrong=$((wrong + 1))
	echo "FAIL  $name: $line"
	echo "      corq $*"
	sed 's/^/      | /' "$err" | head -n 10
}

# senseless NAME REGEX ARGUMENT...: the same, with the status of a bad command line, 2.
senseless()
{
	refuses "$@"
	[ "$status" = 2 ] && return
	wrong=$((wrong + 1))
	echo "FAIL  $1: status $status, not 2"
}

# misbehaves NAME REGEX MODE OPTION...: corq ab against bad_server.py MODE.
misbehaves()
{
	local name=$1 regex=$2 mode=$3 server
	shift 3
	lab_spawn_a "$mode" ./bad_server.py "$mode" "$LAB_IP_A" 81
	server=$LAB_PID
	lab_wait_line "$LAB_LOG" '^listening' "$server" || lab_die "the bad server did not start"
	refuses "$name" "$regex" ab -q -n 10 -c 2 "$@" "${device[@]}" "http://$LAB_IP_A:81/"
	lab_stop "$server"
}

lab_up
device=(--dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/$LAB_LEN" --gw none)
url=http://$LAB_IP_A/

# ---- the command line
refuses no-interface 'interface|nosuch0' ab -n 1 --dev veth:nosuch0 --ip "$LAB_IP_B/24" --gw none "$url"
refuses httpd-no-interface 'interface|nosuch0' httpd --dev veth:nosuch0 --ip "$LAB_IP_B/24" --size 10
refuses no-such-device 'device|nosuch' ab -n 1 --dev nosuch:x --ip "$LAB_IP_B/24" "$url"
refuses device-before-url 'nosuch' ab -n 1 --dev nosuch
refuses no-url 'url' ab -n 1 "${device[@]}"
refuses url-scheme 'only http://' ab -n 1 "${device[@]}" "ftp://$LAB_IP_A/"
refuses url-scheme-port 'only http://' ab -n 1 "${device[@]}" "ftp://$LAB_IP_A:21/"
refuses url-ipv6 'IPv6' ab -n 1 "${device[@]}" "http://[fd77::1]:80/"
refuses url-ipv6-bare 'IPv6' ab -n 1 "${device[@]}" "http://fd77::1/"
refuses url-ourselves 'our own address' ab -n 1 "${device[@]}" "http://$LAB_IP_B/"
refuses url-empty 'url' ab -n 1 "${device[@]}" http://
refuses url-port 'url|port' ab -n 1 "${device[@]}" "http://$LAB_IP_A:99999/"
refuses url-host 'url|host|address' ab -n 1 "${device[@]}" "http://10.77.0.1.2.3/"
refuses c-above-n 'concurrency|-c' ab -n 10 -c 20 "${device[@]}" "$url"
refuses n-zero '-n|requests|number' ab -n 0 "${device[@]}" "$url"
refuses n-word '-n|requests|number' ab -n ten "${device[@]}" "$url"
refuses c-above-limit '1048576' ab -n 2000000 -c 1048577 "${device[@]}" "$url"
refuses t-then-c 'concurrency|-c' ab -n 100000 -t 5 -c 50001 "${device[@]}" "$url"
refuses post-and-head 'Cannot mix HEAD' ab -p /etc/hostname -i "${device[@]}" "$url"
refuses put-and-post 'Cannot mix POST' ab -u /etc/hostname -p /etc/hostname "${device[@]}" "$url"
refuses method-then-put 'Cannot mix PUT' ab -m X -u /etc/hostname "${device[@]}" "$url"
refuses no-body-file "-u: .*nosuch" ab -u /nosuch "${device[@]}" "$url"
refuses https 'https is not there yet' ab -n 1 "${device[@]}" "https://$LAB_IP_A/"
for letter in I "Z x" "f TLS1.2" "E x"; do
	# shellcheck disable=SC2086 # an option and its value
	refuses "tls-${letter%% *}" 'TLS' ab -$letter -n 1 "${device[@]}" "$url"
done
refuses gnuplot-too-many '-g keeps.*100000000' ab -g "$LAB_TMP/g" -n 100000001 "${device[@]}" "$url"
refuses csv-folder '-e: .*nosuch' ab -e /nosuch/x "${device[@]}" "$url"
refuses gnuplot-folder '-g: .*nosuch' ab -g /nosuch/x "${device[@]}" "$url"
refuses tables-one-file 'one file for two' ab -e "$LAB_TMP/t" -g "$LAB_TMP/t" "${device[@]}" "$url"
refuses bind-word '-B: .*no IPv4' ab -B here "${device[@]}" "$url"
refuses bind-not-ours '-B: .*not one of our' ab -B "$LAB_NET.99" "${device[@]}" "$url"
refuses proxy-path '-X: ' ab -X "$LAB_IP_A/x" "${device[@]}" "$url"
refuses proxy-port 'port' ab -X "$LAB_IP_A:x" "${device[@]}" "$url"
refuses proxy-no-url 'URL' ab -X "$LAB_IP_A" "${device[@]}"
refuses header-word '-H: ' ab -H nothing "${device[@]}" "$url"
refuses unknown-option 'option|--nosuch' ab -n 1 --nosuch "${device[@]}" "$url"
refuses bad-ip 'ip|address' ab -n 1 --dev "veth:$LAB_IF_B" --ip 10.77.0.300/24 "$url"
refuses no-ip 'ip|address' ab -n 1 --dev "veth:$LAB_IF_B" "$url"
for words in "fd00::5/64 IPv6" "$LAB_IP_B/33 number from 1 to 32" "$LAB_IP_B/255.255.255.0 number from 1 to 32" \
	"$LAB_NET.255/24 broadcast" "$LAB_NET.0/24 network address" "$LAB_NET.9-$LAB_NET.255/24 broadcast" \
	"0.0.0.0/0 number from 1 to 32" "0.0.0.0/8 no host" "127.0.0.2/8 loopback" "224.0.0.9/24 multicast"; do
	ip=${words%% *}
	senseless "ip-${ip//\//,}" "--ip.*${words#* }" ab -n 1 --dev "veth:$LAB_IF_B" --ip "$ip" "$url"
	senseless "httpd-ip-${ip//\//,}" "--ip.*${words#* }" httpd --dev "veth:$LAB_IF_B" --ip "$ip" --size 10
done
senseless gw-broadcast '--gw.*broadcast' ab -n 1 --dev "veth:$LAB_IF_B" --ip "$LAB_IP_B/24" --gw "$LAB_NET.255" "$url"
senseless url-broadcast 'broadcast' ab -n 1 "${device[@]}" "http://$LAB_NET.255/"
senseless url-network 'network address' ab -n 1 "${device[@]}" "http://$LAB_NET.0/"
senseless url-multicast 'multicast' ab -n 1 "${device[@]}" http://224.0.0.1/
senseless url-no-host 'no host' ab -n 1 "${device[@]}" http://0.0.0.0/
refuses httpd-nothing 'size|folder|directory' httpd "${device[@]}"
refuses httpd-no-folder 'nosuch' httpd "${device[@]}" /nosuch/folder
refuses httpd-port 'port' httpd "${device[@]}" --port 70000 --size 10
refuses httpd-peer-ip 'loop' httpd "${device[@]}" --peer-ip 10.0.0.1/24 --size 10
refuses httpd-upload 'upload.*path' httpd "${device[@]}" --upload up --size 10
refuses httpd-upload-max 'upload' httpd "${device[@]}" --upload-max 5 --size 10
refuses httpd-timeout 'header-timeout.*1 to 300' httpd "${device[@]}" --header-timeout 0 --size 10
refuses httpd-log 'nosuch/log.*No such file' httpd "${device[@]}" --access-log /nosuch/log --size 10
refuses httpd-log-sample 'access-log' httpd "${device[@]}" --access-sample 5 --size 10
refuses httpd-no-list 'directory' httpd "${device[@]}" --no-list --size 10
refuses json-folder "nosuch/x.json.*No such file" ab -n 1 --json /nosuch/x.json "${device[@]}" "$url"
refuses httpd-json-folder "nosuch/x.json.*No such file" httpd --json /nosuch/x.json "${device[@]}" --size 10
refuses help-two 'left over' help ab httpd
refuses unknown-command 'command|nosuch' nosuch
refuses cores-above-limit '1 to 32' ab -n 1 --cores 33 "${device[@]}" "$url"
refuses too-few-cores 'cores?|cpus?' ab -n 1 --cores 32 "${device[@]}" "$url"
refuses too-little-memory 'memory' ab -n 1 "${device[@]}" "$url" -- --no-huge -m 2

# ---- a server on this very host: by tap under the tap's address, by veth not at all
senseless here-loopback "own address.*not send it out of $LAB_IF_B.*--dev tap:" ab -n 1 "${device[@]}" http://127.0.0.1/
senseless here-localhost 'own address.*--dev tap:' ab -n 1 "${device[@]}" http://localhost/
ip -n "$LAB_NS_B" addr add 198.18.0.1/32 dev lo
refuses here-other "own address.*not send it out of $LAB_IF_B.*--dev tap:" ab -n 1 "${device[@]}" http://198.18.0.1/
ip -n "$LAB_NS_B" addr del 198.18.0.1/32 dev lo
ip -n "$LAB_NS_B" addr add "$LAB_NET.9/32" dev "$LAB_IF_B"
lab_in_b timeout 20 "$CORQ" ab -n 1 "${device[@]}" "http://$LAB_NET.9/" >/dev/null 2>"$LAB_LOGS/here.err" # warned of, too
[ $? = 2 ] && grep -q "^corq ab: '$LAB_NET.9' is this host's own address.*$LAB_IF_B; use --dev tap:" "$LAB_LOGS/here.err" ||
	lab_die "the interface's own address: $(cat "$LAB_LOGS/here.err")"
ip -n "$LAB_NS_B" addr del "$LAB_NET.9/32" dev "$LAB_IF_B"
if [ -w /dev/net/tun ]; then
	over_tap=(--dev "tap:tp$$" --ip 10.78.0.2/24)
	lab_in_b timeout 20 "$CORQ" ab -n 1 "${over_tap[@]}" http://localhost:8080/ >"$LAB_LOGS/tap.out" 2>"$LAB_LOGS/tap.err"
	[ $? = 2 ] && grep -q "^corq ab: 'localhost' is this host's own address: over tp$$ it is 10.78.0.1" "$LAB_LOGS/tap.err" &&
		! grep -q 'curl' "$LAB_LOGS/tap.err" || lab_die "tap, localhost: $(cat "$LAB_LOGS/tap.err")"
	lab_in_b timeout 20 "$CORQ" ab -n 1 "${over_tap[@]}" http://10.78.0.1/ >"$LAB_LOGS/tap.out" 2>"$LAB_LOGS/tap.err"
	grep -q '^corq ab: .*cannot connect to 10.78.0.1:80: nothing listens there' "$LAB_LOGS/tap.err" ||
		lab_die "tap, its host: $(cat "$LAB_LOGS/tap.err")"
else
	lab_say "no /dev/net/tun: the cases of tap are left out"
fi

# ---- the wire
refuses unreachable 'reach|neighbour|arp|timed out|10\.77\.0\.99' ab -q -n 10 -c 2 -s 5 "${device[@]}" \
	"http://$LAB_NET.99/"
refuses off-link 'gateway|gw|reach|route' ab -q -n 10 -c 2 -s 5 "${device[@]}" http://192.0.2.1/
refuses refused 'refused' ab -q -n 10 -c 2 "${device[@]}" "http://$LAB_IP_A:82/"
misbehaves resetting-server 'reset' reset
misbehaves half-a-response 'closed|short|incomplete|half|ended|before' half
misbehaves stalled-response 'time' stall -s 2
misbehaves garbage 'http|garbage|parse|response' garbage
misbehaves stalled-response-json 'time|sent nothing' stall -s 2 --json "$LAB_TMP/stalled.json"
grep -q '"error": "[^"]*time' "$LAB_TMP/stalled.json" || lab_die "a stalled run: no JSON with its error"
misbehaves silent-server 'closed|empty|ended|before|response' silent

# ---- the other end leaves its checksums to a device that is not there: one line at once, one at the
# end that does not speak of a server that sent nothing, and a count in the JSON
lab_spawn_a silent ./bad_server.py silent "$LAB_IP_A" 81
lab_wait_line "$LAB_LOG" '^listening' "$LAB_PID" || lab_die "the bad server did not start"
lab_offload_set "$LAB_NS_A" "$LAB_IF_A" on
status=0
lab_in_b timeout 20 "$CORQ" ab -q -n 4 -c 2 -s 2 --json "$LAB_TMP/offload.json" "${device[@]}" "http://$LAB_IP_A:81/" \
	>"$LAB_LOGS/offload.out" 2>"$LAB_LOGS/offload.err" || status=$?
lab_offload_set "$LAB_NS_A" "$LAB_IF_A" off
[ $status = 119 ] && [ "$(grep -c 'warning:.*ethtool -K' "$LAB_LOGS/offload.err")" = 1 ] &&
	[ "$(grep -c '^corq ab: .*no connection to .*checksums are unfinished' "$LAB_LOGS/offload.err")" = 1 ] &&
	grep -q '"rx_csum_partial": [1-9]' "$LAB_TMP/offload.json" ||
	lab_die "offloads on: status $status: $(cat "$LAB_LOGS/offload.err")"

# ---- port in use: the second instance of the same address and port on this interface
lab_httpd_start --size 10
refuses port-in-use 'in use' httpd "${device[@]}" --port 80 --size 10
lab_in_a curl -sS --fail --max-time 5 -o /dev/null "http://$LAB_IP_B/" ||
	lab_die "the first httpd suffered from the second one"
lab_httpd_stop INT

[ $wrong = 0 ] || lab_die "$wrong of the above are not as they should be"
lab_say "all as it should be"
