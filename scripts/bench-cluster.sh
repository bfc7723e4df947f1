#!/usr/bin/env bash
# Compares clusters on this machine with one process; prints the numbers of docs/dev/performance.md.
#
# usage: scripts/bench-cluster.sh [WORKDIR]      about fifteen minutes on two cores
#
# EXACT2048_PROGRAM names the program; without it, the script builds one.
# It measures and never fails on a time.
set -euo pipefail
cd "$(dirname "$0")/.."
work=${1:-$(mktemp -d)}
mkdir -p "$work"
solver=${EXACT2048_PROGRAM:-target/dist/exact2048}
[ -n "${EXACT2048_PROGRAM:-}" ] || cargo build --profile dist --quiet
processes=()

stop() {
    [ ${#processes[@]} -eq 0 ] || kill "${processes[@]}" 2>/dev/null || true
    # Restarted workers are not children of this shell.
    [ ! -e "$work/workers" ] || xargs kill <"$work/workers" 2>/dev/null || true
    rm -f "$work/workers"
    wait 2>/dev/null || true
    processes=()
}
trap stop EXIT

seconds() { date +%s.%N; }

# Starts worker number $1.
worker() {
    "$solver" worker --coordinator "$url" --threads 1 --memory 4GiB --cache "$work/cache" >"$work/worker-$1.log" 2>&1 &
    echo $! >>"$work/workers"
}

# Kills the worker started last and starts another, every $1 seconds.
kill_again_and_again() {
    while sleep "$1"; do
        kill -9 "$(tail -n 1 "$work/workers")" 2>/dev/null || true
        worker again
    done
}

# cluster WORKERS KILL ARGS...: a fresh cluster, in which one worker is killed every KILL seconds.
cluster() {
    local workers=$1 kill=$2 begun job=
    shift 2
    rm -rf "$work/store"
    mkdir "$work/store"
    "$solver" coordinator --store "$work/store" --listen 127.0.0.1:0 >"$work/coordinator.out" 2>"$work/coordinator.log" &
    processes+=($!)
    until url=$(sed -n 's/^listening on //p' "$work/coordinator.out") && [ -n "$url" ]; do sleep 0.05; done
    for number in $(seq "$workers"); do worker "$number"; done
    sleep 2 # until all have registered
    begun=$(seconds)
    job=$("$solver" submit --coordinator "$url" "$@")
    if [ "$kill" != 0 ]; then
        kill_again_and_again "$kill" 2>/dev/null &
        processes+=($!)
    fi
    local ended=
    "$solver" status --coordinator "$url" "$job" --watch >"$work/status.log" 2>&1 || ended=", not done"
    took=$(python3 -c "print(f'{$(seconds)-$begun:.2f}')")
    printf '%9s s  cluster of %s worker(s), one killed every %s s (0: never)%s: %s\n' "$took" "$workers" "$kill" "$ended" "$*"
    stop
}

alone() {
    rm -rf "$work/run"
    took=$("$solver" solve --run "$work/run" --json "$@" 2>/dev/null \
        | python3 -c 'import json, sys; print("{:.2f}".format(json.load(sys.stdin)["seconds"]["total"]))')
    printf '%9s s  one process: %s\n' "$took" "$*"
}

# timed NAME COMMAND...: runs one of the above, and adds its time to those of the name.
declare -A seconds_of
timed() {
    "${@:2}"
    seconds_of[$1]+=" $took"
}

# Prints a ratio of two median times, and the limit that was asked for.
ratio() {
    python3 - "$1" "${seconds_of[$2]}" "${seconds_of[$3]}" "$4" <<'EOF'
import statistics, sys
name, above, below, asked = sys.argv[1:]
above, below = (statistics.median(map(float, times.split())) for times in (above, below))
print(f"{above / below:9.2f} ×  {name}, asked {asked}")
EOF
}

for _ in 1 2 3; do
    timed 3x3-alone alone --board 3x3 --threads 2
    timed 3x3-two cluster 2 0 --board 3x3
    timed 5x2-alone alone --board 5x2 --threads 2
    timed 5x2-one cluster 1 0 --board 5x2
    timed 5x2-two cluster 2 0 --board 5x2
done
ratio '5x2, one worker over two' 5x2-one 5x2-two 'at least 1.6'
ratio '3x3, two workers over one process of two threads' 3x3-two 3x3-alone 'at most 1.4'
ratio '5x2, two workers over one process of two threads' 5x2-two 5x2-alone 'at most 1.35'

for board in 4x2 3x3; do
    cluster 2 5 --board "$board"
done
cluster 2 1 --board 4x2
cluster 2 2 --board 3x3
cluster 2 5 --board 5x2
rm -rf "$work"
