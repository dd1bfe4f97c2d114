#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# plot.sh RESULTS - draws RESULTS/plot.png from the JSON files of run.sh that are there.
#
# Rates of corq and of the kernel (vs_kernel), logarithmic. Where a connection's cycles go, by stage
# of the turn (engine). What a handle costs at each occupancy, by threads, and across threads
# (handles). corq ab's rate against nginx as -c grows (knee).
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

engine = {r["name"]: r["value"] for r in results_of("engine")}
with open(os.path.join(tmp, "stages"), "w", encoding="utf-8") as f:
    print('side rx input timers events build tx', file=f)
    for side in ("client", "server"):
        total = engine.get(f"engine.conn.{side}.connection")
        if total:
            shares = [engine[f"engine.conn.{side}.stage.{s}"] * total / 100
                      for s in ("rx", "input", "timers", "events", "build", "tx")]
            print(side, *("%.0f" % s for s in shares), file=f)

knee = results_of("knee")
for load in ("k", "conn"):
    points = {}
    for r in knee:
        parts = r["name"].split(".")
        if parts[1] == load and parts[-1][0] == "c" and parts[-1][1:].isdigit():
            points[int(parts[-1][1:])] = r["value"]  # behind the knee: the later, larger sample
    with open(os.path.join(tmp, "knee." + load), "w", encoding="utf-8") as f:
        for c, rate in sorted(points.items()):
            print(c, rate, file=f)

handles = {r["name"].removeprefix("handles."): r["value"] for r in results_of("handles")}

def table(name, rows, columns):
    """A row a load: its name and a figure a column, of those rows that were measured."""
    with open(os.path.join(tmp, name), "w", encoding="utf-8") as f:
        print("row", *(c.replace("_", "-") for c in columns), file=f)
        for row, group in rows:
            if all(f"{group}.{c}" in handles for c in columns):
                print(f'"{row}"', *(handles[f"{group}.{c}"] for c in columns), file=f)

table("handles",
      [("empty", "empty"), ("half", "half"), ("99.9 %", "99.9"), ("all but one", "all_but_one"),
       ("99.9 %, holes", "99.9_holes"), ("half, holes", "half_holes")],
      ["floor_a", "floor_b", "floor_c", "floor_d", "lowest", "lowest_handle", "fast",
       "fast_handle"])
table("handle_threads", [(n, f"threads_{n}") for n in (1, 2, 16, 48)],
      ["lanes", "floor_a", "floor_b", "floor_d"])
table("handle_cross", [(f"{n} %", f"cross_{n}") for n in (0, 10, 50, 100)],
      ["closed_there", "sent_home"])
PYTHON

plots=()
[ -s "$tmp/rates" ] && plots+=(rates)
for plot in stages handles handle_threads handle_cross; do
	[ "$(wc -l <"$tmp/$plot")" -gt 1 ] && plots+=($plot)
done
[ -s "$tmp/knee.k" ] && [ -s "$tmp/knee.conn" ] && plots+=(knee)
[ ${#plots[@]} -gt 0 ] || { echo "plot.sh: nothing to draw in $results" >&2; exit 0; }

{
	columns=$((${#plots[@]} < 3 ? ${#plots[@]} : 3))
	rows=$(((${#plots[@]} + columns - 1) / columns))
	echo "set terminal pngcairo size $((640 * columns)),$((480 * rows)) font ',10'"
	echo "set output '$results/plot.png'"
	echo "set multiplot layout $rows,$columns"
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
		handles | handle_threads | handle_cross)
			case $plot in
			handles) title='ns to take and put a number, open and close a handle' ;;
			handle_threads) title='pairs a second, by threads on two CPUs' ;;
			handle_cross) title='ns a handle, by the part that another thread closes' ;;
			esac
			[ $plot = handle_cross ] && scale='set yrange [0:*]' ||
				scale='set logscale y; set yrange [1:*]'
			cat <<-GNUPLOT
				set title '$title'
				set style histogram clustered gap 1
				$scale; set key outside right; set boxwidth 0.9
				set xtics rotate by -20; unset ylabel
				plot for [i=2:*] '$tmp/$plot' using i:xtic(1) title columnheader(i)
				unset logscale y
			GNUPLOT
			;;
		knee)
			cat <<-GNUPLOT
				set title 'corq ab against nginx over veth'
				set xlabel 'connections (-c)'; set ylabel 'requests/s'
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
