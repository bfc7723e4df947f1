#!/usr/bin/env bash
# Measures whole runs: wall time, ns per state and phase, bytes, peak memory. Prints the numbers of docs/dev/performance.md.
#
# usage: scripts/bench.sh [WORKDIR]        all of them, about five minutes on two cores
#        YARDSTICK=path scripts/bench.sh   also times that program on "3 3" and prints the ratio, run in turn with ours
#
# It measures and never fails on a time.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-$(mktemp -d)}
mkdir -p "$work"
cargo build --profile dist --quiet
solver=target/dist/exact2048

# json_field FILE PATH: one number of a summary; PATH is a Python index
json_field() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print(eval('d'+sys.argv[2]))" "$1" "$2"; }

# run NAME ARGS...: a fresh solve, with its summary as one line
run() {
    local name=$1; shift
    rm -rf "$work/run"
    "$solver" solve --run "$work/run" --json "$@" >"$work/summary.json" 2>/dev/null
    python3 - "$name" "$work/summary.json" <<'PY'
import json, sys
s = json.load(open(sys.argv[2]))
t, n = s["seconds"], s["states"]
print(f"{sys.argv[1]:<28}{t['total']:>9.2f} s  enumerate {t['enumerate']*1e9/n:>6.1f} ns/state  "
      f"back up {t['solve']*1e9/n:>6.1f} ns/state  disk {s['bytes_on_disk']/1e6:>8.1f} MB  "
      f"peak {s['peak_rss_bytes']/2**20:>7.0f} MiB")
PY
}

echo "$(nproc) cores, $(uname -m)"
if [ -n "${YARDSTICK:-}" ]; then
    for round in 1 2 3; do
        start=$(date +%s.%N)
        "$YARDSTICK" 3 3 >/dev/null 2>&1
        middle=$(date +%s.%N)
        run "3x3 (round $round)" --board 3x3
        python3 -c "import sys; y=$middle-$start; o=$(json_field "$work/summary.json" "['seconds']['total']"); print(f'{\"\":<28}{y:>9.2f} s  yardstick: {y/o:.1f} times as long')"
    done
else
    for round in 1 2 3; do run "3x3 (round $round)" --board 3x3; done
fi
cp -r "$work/run" "$work/3x3"
for round in 1 2 3; do run "3x3 --memory 200MiB ($round)" --board 3x3 --memory 200MiB; done
run "3x3 --precision 64" --board 3x3 --precision 64
run "3x3 reach:512" --board 3x3 --objective reach:512
run "4x3 --until-layer 224" --board 4x3 --until-layer 224
run "5x2" --board 5x2 --memory 8GiB

echo "query, cold process on the 3x3 run:"
for board in "2 0 0 / 0 2 0 / 0 0 0" "2 4 0 / 8 16 0 / 128 64 4" "2 4 8 / 512 16 2 / 256 64 4"; do
    python3 - "$solver" "$work/3x3" "$board" <<'PY'
import subprocess, sys, time
times = []
for _ in range(20):
    start = time.perf_counter()
    code = subprocess.run([sys.argv[1], "query", "--run", sys.argv[2], sys.argv[3], "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    times.append(time.perf_counter() - start)
times.sort()
print(f"  {sys.argv[3]:<32} median {times[10]*1e3:5.1f} ms, most {times[-1]*1e3:5.1f} ms, exit {code}")
PY
done
rm -rf "$work/run" "$work/3x3" "$work/summary.json"
