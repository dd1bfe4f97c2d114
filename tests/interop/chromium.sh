#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# chromium.sh - shows a page in headless Chromium, once.
#
#   chromium.sh URL FOLDER WIDTH,HEIGHT
#
# FOLDER gets page.png (screenshot), page.html (the page as it was after its load event, scripts
# included) and chromium.log; its profile, new each time, is in FOLDER/profile and goes at the end.
# Nothing is asked of the network but the page: no updates, no sync, no QUIC. Root must do without
# Chromium's sandbox. Bounded by 90 s. Called by programs.sh, in side A's namespace.
set -u
if [ $# != 3 ]; then
	echo "usage: chromium.sh URL FOLDER WIDTH,HEIGHT" >&2
	exit 2
fi
url=$1 folder=$2 size=$3
profile=$(mktemp -d "$folder/profile.XXXXXX") || exit 1
trap 'rm -rf "$profile"' EXIT
cd "$folder" || exit 1

HOME=$profile XDG_RUNTIME_DIR=$profile timeout --kill-after=5 90 chromium --headless --no-sandbox \
	--disable-gpu --disable-quic --no-first-run --disable-background-networking \
	--disable-component-update --disable-sync --disable-extensions --disable-breakpad \
	--disable-dev-shm-usage --no-proxy-server --hide-scrollbars --force-device-scale-factor=1 \
	--force-color-profile=srgb --user-data-dir="$profile" --window-size="$size" \
	--screenshot="$folder/page.png" --dump-dom "$url" >page.html 2>chromium.log </dev/null
