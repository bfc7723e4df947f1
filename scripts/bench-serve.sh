#!/usr/bin/env bash
# Measures the query service over loopback on a 3x3 run: states per second of BatchGetValues, latencies of GetValue, and the
# cold start of `query`. Prints the numbers of docs/dev/performance.md.
#
# usage: scripts/bench-serve.sh [RUN]      RUN (3x3) is solved if it does not exist; the default is a temporary run
#
# It measures and never fails on a time.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
work=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server"; wait; rm -rf "$work"' EXIT
run=${1:-$work/3x3}
cargo build --profile dist --quiet -p exact2048
cargo build --profile dist --quiet -p exact2048-server --example load
solver=$target/dist/exact2048
test -e "$run" || "$solver" solve --board 3x3 --run "$run" --json >/dev/null 2>&1

: >"$work/serve.out"
"$solver" serve --run "$run" --listen 127.0.0.1:0 --log warn >"$work/serve.out" &
server=$!
until grep -q '^listening on ' "$work/serve.out"; do kill -0 "$server"; sleep 0.1; done
url=$(sed -n 's/^listening on //p' "$work/serve.out")
echo "$(nproc) cores, $(uname -m), server and client on the same"
"$target/dist/examples/load" "$url" 1000000
grep VmHWM "/proc/$server/status"
python3 - "$solver" "$run" "$url" <<'PY'
import subprocess, sys, time
solver, run, url = sys.argv[1:]
for board in ["2 0 0 / 0 2 0 / 0 0 0", "2 4 0 / 8 16 0 / 128 64 4", "2 4 8 / 512 16 2 / 256 64 4"]:
    for source in (["--run", run], ["--server", url]):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            subprocess.run([solver, "query", *source, board, "--json"], stdout=subprocess.DEVNULL, check=True)
            times.append((time.perf_counter() - start) * 1e3)
        times.sort()
        print(f"  query {source[0]:<9} {board:<32} median {times[10]:5.1f} ms, most {times[-1]:5.1f} ms")
PY
