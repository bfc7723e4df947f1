#!/usr/bin/env bash
# Feeds arbitrary bytes to all code that reads data of others (fuzz/targets). libFuzzer searches for bytes that reach new
# code. It writes bytes that panic, hang or take too much memory to fuzz/artifacts/TARGET, and the script fails.
# `fuzz/target/HOST/release/TARGET FILE` repeats such a case.
#
#   scripts/fuzz.sh [SECONDS [TARGET...]]    by default 60 seconds for each target
#
# Bytes that reached new code are kept in fuzz/corpus/TARGET, where the next call begins. Needs a C++ compiler, and only the
# Rust of rust-toolchain.toml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz"

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

command -v c++ >/dev/null || fail "no C++ compiler (c++) is installed; it builds libFuzzer"
seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "expected a number of seconds, found $seconds"
shift || true
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(sed -nE 's/^name = "(.*)"$/\1/p' Cargo.toml | tail -n +2)

# With --target, these flags do not apply to programs that run during the build.
host=$(rustc -vV | sed -n 's/^host: //p')
passes="-C passes=sancov-module"
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    passes+=" -C llvm-args=-sanitizer-coverage-$option"
done
features=()
[[ " ${targets[*]} " != *" wire "* ]] || features=(--features wire)
RUSTFLAGS="$passes" cargo build --release --target "$host" "${features[@]}" "${targets[@]/#/--bin=}"

for target in "${targets[@]}"; do
    printf '\n==> %s, %s seconds\n' "$target" "$seconds"
    mkdir -p "corpus/$target" "artifacts/$target"
    "target/$host/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
        -print_final_stats=1 -verbosity=0 -artifact_prefix="artifacts/$target/" "corpus/$target" "seeds/$target" \
        || fail "$target failed; its input is in fuzz/artifacts/$target"
done
