#!/usr/bin/env bash
# Builds a static program with musl, which runs on any Linux.
#
#   scripts/build-static.sh [x86_64|aarch64]    by default for this machine
#
# Prints the path of the program: target/ARCH-unknown-linux-musl/dist/exact2048. Needs Rust with the target's standard
# library (`rustup target add`), and python3 with venv. The C compiler and the linker, which can build for any machine, are
# those of Zig; pip installs them from PyPI into target/zig.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

arch=${1:-$(uname -m)}
case $arch in
    x86_64 | aarch64) ;;
    *) fail "expected x86_64 or aarch64, found $arch" ;;
esac
target=$arch-unknown-linux-musl
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target" >&2 \
    || fail "the standard library of $target is not installed: rustup target add $target"

zig=$PWD/target/zig
if ! "$zig/bin/cargo-zigbuild" --version >/dev/null 2>&1; then
    python3 -m venv "$zig"
    "$zig/bin/pip" install --quiet --disable-pip-version-check "cargo-zigbuild==0.24.*" "ziglang==0.17.*" >&2
fi
# Without this, panics would name folders of this machine, and two machines would build different bytes.
export RUSTFLAGS="--remap-path-prefix=$PWD= --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
# cargo zigbuild imports ziglang from the first python3 on PATH.
PATH=$zig/bin:$PATH cargo zigbuild --quiet --locked --package exact2048 --profile dist --target "$target" >&2

program=target/$target/dist/exact2048
! readelf --program-headers "$program" | grep INTERP >/dev/null || fail "$program asks for a dynamic linker"
printf '%s\n' "$program"
