#!/usr/bin/env bash
# Tests the kernels on emulated processors with fewer vector instructions: with AVX2 and no AVX-512, and with neither. The
# tests compare every value with those of a slow implementation, so all paths must give the same bits.
#
#     scripts/check-instruction-sets.sh [OPTIONS OF CARGO TEST]     default: --workspace, which uses the build of CI
#
# Needs qemu-x86_64 (qemu-user 7.2 or newer, which supports AVX2), and root to install it if it is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ "$(uname -m)" != x86_64 ]; then
    echo "not checked: this machine is not x86-64, and has only one path"
    exit 0
fi
if ! command -v qemu-x86_64 >/dev/null; then
    [ "$(id -u)" = 0 ] || { echo "error: qemu-x86_64 is not installed, and only root can: apt-get install qemu-user" >&2; exit 1; }
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends qemu-user >/dev/null
fi

[ $# -gt 0 ] || set -- --workspace
programs=$(cargo test "$@" --no-run --message-format=json | python3 -c '
import json, sys
WANTED = {"kernels", "exact2048_worker", "exact2048_combo4w"}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["profile"]["test"] and message["target"]["name"] in WANTED:
        print(message["executable"])
')
[ "$(wc -w <<<"$programs")" = 3 ] || { echo "error: expected the tests of three targets, found: $programs" >&2; exit 1; }

emulated() {
    local program tests
    for program in $programs; do
        echo "==> ${program##*/} on $1"
        case $program in
            */kernels-* | */exact2048_combo4w-*) tests=() ;;
            # The tests of vector code. Others take long, or need more addresses than an emulator has.
            *) tests=(kernels:: fingerprint::) ;;
        esac
        qemu-x86_64 -cpu "$1" "$program" --quiet "${tests[@]}" || return
    done
}

# Most of the time is spent in one test of each, so both run at once, as separate jobs that end with this script.
set -m
logs=$(mktemp -d)
pids=()
trap 'kill -- "${pids[@]/#/-}" 2>/dev/null || true; rm -rf "$logs"' EXIT
for processor in Haswell qemu64; do
    emulated "$processor" >"$logs/$processor" 2>&1 &
    pids+=($!)
done
failed=
for pid in "${pids[@]}"; do
    wait "$pid" || failed=1
done
# The features that the emulator reports as unsupported are unrelated to vectors.
grep -hv "TCG doesn't support requested feature" "$logs"/*
[ -z "$failed" ] || { echo "error: a test failed on an emulated processor; see above" >&2; exit 1; }
