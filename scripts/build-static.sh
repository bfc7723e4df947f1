#!/usr/bin/env bash
# Builds a program that needs nothing of the system that it runs on but Linux: linked statically, with musl.
#
#   scripts/build-static.sh [x86_64|aarch64]    by default for the machine that it runs on
#
# Prints where it is: target/ARCH-unknown-linux-musl/dist/exact2048. Needs Rust with the target's standard library, which
# `rustup target add` brings, and python3 with venv: the C compiler and the linker, which can build for any machine, are
# those of Zig, and come from PyPI into target/zig.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

arch=${1:-$(uname -m)}
case $arch in
    x86_64 | aarch64) ;;
    *) fail "no such machine: $arch; expected x86_64 or aarch64" ;;
esac
target=$arch-unknown-linux-musl
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target" >&2 \
    || fail "the standard library of $target is not installed: rustup target add $target"

zig=$PWD/target/zig
if ! "$zig/bin/cargo-zigbuild" --version >/dev/null 2>&1; then
    python3 -m venv "$zig"
    "$zig/bin/pip" install --quiet --disable-pip-version-check "cargo-zigbuild==0.24.*" "ziglang==0.17.*" >&2
fi
# Panics would name folders of this machine, and no two machines build the same bytes.
export RUSTFLAGS="--remap-path-prefix=$PWD= --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
# The first python3 is asked for ziglang.
PATH=$zig/bin:$PATH cargo zigbuild --quiet --locked --package exact2048 --profile dist --target "$target" >&2

program=target/$target/dist/exact2048
! readelf --program-headers "$program" | grep INTERP >/dev/null || fail "$program asks for a dynamic linker"
printf '%s\n' "$program"
