#!/usr/bin/env bash
# Solves boards by clusters on slow networks; prints the table of docs/dev/performance.md.
#
# usage: scripts/bench-network.sh [WORKDIR]      about eight minutes on two cores; needs root
#
# The coordinator and two workers of one thread have a network namespace each, as on three hosts. A switch between the
# namespaces delays, drops and holds up frames (scripts/network-switch.py). All three share the folder of the store. It
# measures and never fails on a time. EXACT2048_PROGRAM names the program, if it is not to be built.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-$(mktemp -d)}
mkdir -p "$work"
solver=${EXACT2048_PROGRAM:-}
if [ -z "$solver" ]; then
    cargo build --profile dist --quiet
    solver=target/dist/exact2048
fi
hosts=(e2048-head e2048-one e2048-two)
head=http://10.20.48.1:2049
call=(--coordinator "$head" --token-file "$work/store/coordinator/token" --insecure)
processes=()

stop() {
    # The switch ends last, so that the workers can take their leave.
    local process
    for process in "${processes[@]}"; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    processes=()
}
trap stop EXIT

# bench BOARD NETWORK SWITCH-OPTIONS...: solves a board on a network.
bench() {
    local board=$1 network=$2 job begun ended=
    shift 2
    rm -rf "$work/store" "$work/switch.out"
    mkdir "$work/store"
    scripts/network-switch.py "$@" "${hosts[@]}" >"$work/switch.out" 2>&1 &
    processes=("$!")
    until grep -qs ready "$work/switch.out"; do sleep 0.1; done
    ip netns exec "${hosts[0]}" "$solver" coordinator --store "$work/store" --listen 10.20.48.1:2049 --insecure \
        2>"$work/coordinator.log" >"$work/coordinator.out" &
    processes=("$!" "${processes[@]}")
    until grep -qs listening "$work/coordinator.out"; do sleep 0.1; done
    for host in 1 2; do
        ip netns exec "${hosts[$host]}" "$solver" worker --coordinator "$head" --store "$work/store" --listen 0.0.0.0:0 \
            --insecure --threads 1 --memory 4GiB --cache "$work/cache-$host" >"$work/worker-$host.log" 2>&1 &
        processes=("$!" "${processes[@]}")
    done
    sleep 2 # until both have registered
    begun=$(date +%s.%N)
    job=$(ip netns exec "${hosts[0]}" "$solver" submit "${call[@]}" --board "$board" 2>"$work/submit.log")
    ip netns exec "${hosts[0]}" "$solver" status "${call[@]}" "$job" --watch >"$work/status.log" 2>&1 \
        || ended=", not done"
    python3 -c "print(f'| {\"$board\".replace(\"x\", \"×\")} | $network | {$(date +%s.%N)-$begun:.1f} s$ended |', flush=True)"
    stop
}

bench 3x3 "no delay"
bench 3x3 "1 ms" --round-trip-ms 1
bench 3x3 "5 ms" --round-trip-ms 5
bench 3x3 "1 ms, 100 Mbit/s" --round-trip-ms 1 --mbit 100
bench 5x2 "no delay"
bench 5x2 "1 ms" --round-trip-ms 1
bench 5x2 "5 ms" --round-trip-ms 5
bench 5x2 "1 ms, 1 Gbit/s" --round-trip-ms 1 --mbit 1000
bench 5x2 "1 ms, 1% of frames lost" --round-trip-ms 1 --loss 0.01
bench 5x2 "1 ms, one worker at 100 Mbit/s" --round-trip-ms 1 --slow-mbit 100
rm -rf "$work"
