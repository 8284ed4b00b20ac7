#!/usr/bin/env bash
# Takes the pictures of the README and of docs/ again, with Chromium: of the committed report of the reduction ladder, and of
# three kernels that the simulator runs. `docs/pictures.sh [PROGRAM]`; PROGRAM is target/release/runner by default.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-target/release/runner}
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

browser=
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" > /dev/null; then browser=$name; break; fi
done
if [ -z "$browser" ]; then echo "no Chromium: install it, or google-chrome" >&2; exit 1; fi

# Takes a picture of $pages/NAME.html, light, with the given size.
picture() {
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --blink-settings=preferredColorScheme=1 \
    --user-data-dir="$pages/browser" --virtual-time-budget=5000 --window-size="$2" --screenshot="docs/$1.png" \
    "file://$pages/$1.html" 2> "$pages/log" || { cat "$pages/log" >&2; exit 1; }
  # A third of the bytes, where pngquant is there.
  if command -v pngquant > /dev/null; then pngquant --force --ext .png 64 "docs/$1.png"; fi
}

# The page of a case by its source lines.
lines() {
  "$program" show "$2" "$3" --source --backend sim --html "$pages/$1.html"
  picture "$1" 1400,800
}

"$program" report reports/reduce/nvidia-h100-80gb-hbm3 --html --out "$pages/report.html"
picture report 1140,1730
lines source-groups experiments/cooperative_groups.toml groups
lines source-flashinfer experiments/gallery/likeliest.toml 'flashinfer[rows = 3, columns = 2048, share = 0.1]'
lines source-nerfacc experiments/gallery/ray_sums.toml 'nerfacc[rays = 40, samples = 100]'
