#!/usr/bin/env bash
# Makes the downloads of a release: an archive for x86-64, one for 64-bit ARM, and SHA256SUMS with their checksums. An archive
# has the static program, its manual pages, completions for shells, and licences.
#
#   scripts/release.sh [DIR]    by default target/release-VERSION
#
# Each program solves a board, answers and verifies before it is packed, and all must compute the same values. A program for
# another machine runs under qemu-user, if that is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
out=${1:-target/release-$version}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# This machine's program comes first, because it makes the parts that are the same for all.
case $(uname -m) in
    aarch64) machines=(aarch64 x86_64) ;;
    *) machines=(x86_64 aarch64) ;;
esac
made_by=

# check PROGRAM...: solves a board, and checks the answer.
check() {
    rm -rf "$work/run"
    "$@" solve --board 3x2 --run "$work/run" >/dev/null 2>&1 || fail "$* does not solve 3x2"
    "$@" query --run "$work/run" --json "2 0 / 0 2 / 0 0" | grep '"value":48' >/dev/null || fail "$* does not answer"
    "$@" verify --run "$work/run" >/dev/null || fail "$* does not verify what it solved"
    "$@" info --run "$work/run" --json | grep --only-matching '"fingerprint":"[0-9a-f]*"' >>"$work/fingerprints"
    [ "$(sort --unique "$work/fingerprints" | wc -l)" = 1 ] || fail "$* computes other values"
}

for arch in "${machines[@]}"; do
    program=$(scripts/build-static.sh "$arch")
    runs=("$PWD/$program")
    [ "$arch" = "$(uname -m)" ] || runs=("qemu-$arch" "$PWD/$program")
    if command -v "${runs[0]}" >/dev/null; then
        check "${runs[@]}"
        [ "$("${runs[@]}" --version)" = "exact2048 $version" ] || fail "$program is not version $version"
    else
        printf 'SKIPPED: the program for %s was not tested, because %s is not installed\n' "$arch" "${runs[0]}" >&2
    fi

    name=exact2048-$version-$arch-linux
    mkdir -p "$work/$name/completions"
    cp "$program" LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$work/$name/"
    made_by=${made_by:-$PWD/$program}
    "$made_by" man --out "$work/$name/man"
    for shell in bash zsh fish; do
        "$made_by" completions "$shell" >"$work/$name/completions/exact2048.$shell"
    done
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
        --directory "$work" "$name" | gzip --no-name -9 >"$out/$name.tar.gz"
done
(cd "$out" && sha256sum "exact2048-$version"-*.tar.gz >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
ls -l "$out"
