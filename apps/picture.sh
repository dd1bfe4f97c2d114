#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# picture.sh - makes the README's terminal picture, apps/ab.png, from a real run.
#
#   CORQ=build/apps/corq apps/picture.sh
#
# nginx and corq ab run in a network namespace of their own, joined by a tap; `script` records what
# a terminal of 100 columns shows. The picture has one state of the progress bar from the middle of
# the run, then the report; corq's figures are cut to some lines, with a mark where. Nothing in it
# is typed by hand. Needs root, nginx, chromium, util-linux (apps/deps.sh test). 20 s.
set -eu
cd "$(dirname "$0")/.."
. tests/interop/lab.sh
lab_need_corq nginx chromium script
lab_up --dev tap
lab_file index.html 1024

# The tap is there only while corq runs, so nginx listens on every address.
lab_nginx_start a
command="$CORQ ab --dev tap:corq0 --ip $LAB_IP_B/$LAB_LEN -k -n 300000 -c 50 http://$LAB_IP_A/"
lab_in_b script -qec "stty cols 100; $command" "$LAB_TMP/session" >/dev/null </dev/null
lab_nginx_stop

python3 - "$LAB_TMP/session" "$LAB_TMP/ab.html" <<'PYTHON'
import html, re, sys

shown = ["model", "requests_started", "requests_complete", "counters_add_up", "conn_opened",
         "pkts_per_request", "retransmitted", "busy_pct_per_core", "cpu_lost_pct_per_core",
         "cycles_per_request_by_stage", "median_ms", "lat_ttfb", "lat_total", "verdict",
         "verdict_reason"]
text = open(sys.argv[1], encoding="utf-8", newline="").read()
text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
lines, cut = [], False
lines.append("$ sudo corq ab --dev tap:corq0 --ip 10.77.0.2/24 -k -n 300000 -c 50 http://10.77.0.1/")
for line in text.split("\n"):
    if line.startswith("Script "):
        continue
    states = [s.rstrip() for s in line.split("\r") if s.strip()]
    bars = [s for s in states if re.search(r"ETA|eta", s)]
    if bars:
        lines.append(bars[len(bars) // 2])
    rest = [s for s in states if s not in bars]
    line = rest[-1] if rest else ""
    key = re.match(r"([a-z_0-9]+):", line)
    if key and key.group(1) not in shown:
        cut = True
        continue
    if cut:
        lines.append("...")
        cut = False
    lines.append(line)
body, width = "", 118
for line in lines:
    while len(line) > width:
        body += html.escape(line[:width]) + "\n"
        line = "    " + line[width:]
    line = html.escape(line)
    if line.startswith(("verdict", "$")):
        line = "<b>" + line + "</b>"
    body += line + "\n"
open(sys.argv[2], "w", encoding="utf-8").write(
    "<meta charset=utf-8><style>body{margin:0;background:#1b1f27}"
    "pre{margin:0;padding:16px;color:#d6dae2;font:14px/18px 'DejaVu Sans Mono',monospace}"
    "b{color:#8fd18f;font-weight:normal}</style><pre>" + body + "</pre>")
PYTHON
height=$(($(grep -c '' "$LAB_TMP/ab.html") * 18 + 36))
tests/interop/chromium.sh "file://$LAB_TMP/ab.html" "$LAB_TMP" "1040,$height"
cp "$LAB_TMP/page.png" apps/ab.png
echo "apps/ab.png"
