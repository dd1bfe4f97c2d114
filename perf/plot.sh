#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plot.sh RESULTS - draws RESULTS/plot.png from the JSON files of run.sh that are there.
#
# Rates of corq and of the kernel (vs_kernel), logarithmic; where a connection's cycles go, by stage
# of the turn (engine); corq ab's rate against nginx as -c grows (knee).
set -eu
results=${1:-$(dirname "$0")/results}
tmp=$(mktemp -d /tmp/corq-plot.XXXXXX)
trap 'rm -rf "$tmp"' EXIT

python3 - "$results" "$tmp" <<'PYTHON'
import json, os, sys
results, tmp = sys.argv[1:3]

def results_of(name):
    path = os.path.join(results, name + ".json")
    return json.load(open(path, encoding="utf-8"))["results"] if os.path.exists(path) else []

with open(os.path.join(tmp, "rates"), "w", encoding="utf-8") as f:
    for r in results_of("vs_kernel"):
        if "peer_value" in r:
            name = r["name"].split(".")[1].replace("_", " ")
            print(f'"{name} ({r["unit"]})" {r["value"]} {r["peer_value"]} "x{r["ratio"]:.0f}"', file=f)

value = {r["name"]: r["value"] for r in results_of("engine")}
with open(os.path.join(tmp, "stages"), "w", encoding="utf-8") as f:
    print('side rx input timers events build tx', file=f)
    for side in ("client", "server"):
        total = value.get(f"engine.conn.{side}.connection")
        if total:
            shares = [value[f"engine.conn.{side}.stage.{s}"] * total / 100
                      for s in ("rx", "input", "timers", "events", "build", "tx")]
            print(side, *("%.0f" % s for s in shares), file=f)

for load in ("k", "conn"):
    points = {}
    for r in results_of("knee"):
        parts = r["name"].split(".")
        if parts[1] == load and parts[-1][0] == "c" and parts[-1][1:].isdigit():
            points[int(parts[-1][1:])] = r["value"]  # behind the knee: the later, larger sample
    with open(os.path.join(tmp, "knee." + load), "w", encoding="utf-8") as f:
        for c, rate in sorted(points.items()):
            print(c, rate, file=f)
PYTHON

plots=()
[ -s "$tmp/rates" ] && plots+=(rates)
[ "$(wc -l <"$tmp/stages")" -gt 1 ] && plots+=(stages)
[ -s "$tmp/knee.k" ] && [ -s "$tmp/knee.conn" ] && plots+=(knee)
[ ${#plots[@]} -gt 0 ] || { echo "plot.sh: nothing to draw in $results" >&2; exit 1; }

{
	echo "set terminal pngcairo size $((640 * ${#plots[@]})),480 font ',10'"
	echo "set output '$results/plot.png'"
	echo "set multiplot layout 1,${#plots[@]}"
	echo "set style data histograms; set style fill solid 0.8; set boxwidth 0.9; set grid ytics"
	for plot in "${plots[@]}"; do
		case $plot in
		rates)
			cat <<-GNUPLOT
				set title 'corq on loop and the kernel over veth, same CPUs'
				set style histogram clustered gap 1
				set logscale y; set yrange [1:*]; set key top right
				set xtics rotate by -20
				plot '$tmp/rates' using 2:xtic(1) title 'corq', '' using 3 title 'kernel', \\
					'' using 0:2:4 with labels offset -1.5,0.7 notitle
				unset logscale y
			GNUPLOT
			;;
		stages)
			cat <<-GNUPLOT
				set title 'cycles of a connection, by stage of the turn'
				set style histogram rowstacked
				set yrange [0:*]; set xtics norotate; set ylabel 'cycles'
				set key outside right; set boxwidth 0.5
				plot for [i=2:7] '$tmp/stages' using i:xtic(1) title columnheader(i)
			GNUPLOT
			;;
		knee)
			cat <<-GNUPLOT
				set title 'corq ab against nginx over veth'
				unset ylabel; set xlabel 'connections (-c)'; set ylabel 'requests/s'
				set logscale x 2; set xtics auto; set yrange [0:*]; set key inside bottom right
				plot '$tmp/knee.k' with linespoints title 'kept open (-k)', \\
					'$tmp/knee.conn' with linespoints title 'a connection a request'
			GNUPLOT
			;;
		esac
	done
} >"$tmp/plot.gp"
gnuplot "$tmp/plot.gp"
echo "plot.sh: $results/plot.png" >&2
