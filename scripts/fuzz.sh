#!/usr/bin/env bash
# Feeds arbitrary bytes to everything that reads what others wrote: fuzz/targets. libFuzzer looks for bytes that lead
# to code that no others have led to. What it finds that panics, hangs or takes too much memory, it writes to
# fuzz/artifacts/TARGET, and this ends with an error; `fuzz/target/HOST/release/TARGET FILE` tries it again.
#
#   scripts/fuzz.sh [SECONDS [TARGET...]]    by default 60 seconds for each target
#
# Bytes that led to new code are kept in fuzz/corpus/TARGET, and the next call begins with them. Needs a C++ compiler, and
# no other Rust than that of rust-toolchain.toml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../fuzz"

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

command -v c++ >/dev/null || fail "there is no C++ compiler (c++): it builds libFuzzer"
seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "$seconds is no number of seconds"
shift || true
targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(sed -nE 's/^name = "(.*)"$/\1/p' Cargo.toml | tail -n +2)

# With --target, programs that run while building are not compiled like this.
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
        || fail "$target failed; what it was fed is in fuzz/artifacts/$target"
done
