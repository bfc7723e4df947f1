#!/usr/bin/env bash
# Checks the dependencies: that the query server links none of the code that computes runs, licences, sources and versions as
# deny.toml says, vulnerabilities that are known, and whether each is used.
#
#   scripts/check-dependencies.sh
#
# Needs cargo-deny and cargo-machete, and installs into target/tools what is not on PATH, which takes some minutes of one core.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

step() {
    printf '\n==> %s\n' "$*"
    "$@"
}

# What reads runs needs their contents, and nothing of what computes them.
for reader in server explorer stats export report players; do
    tree=$(cargo tree --locked --package "exact2048-$reader" --edges normal,build --prefix none --format '{p}')
    linked=$(grep --extended-regexp --only-matching '^exact2048-(worker|coordinator|run|cluster) ' <<<"$tree" | sort --unique || true)
    [[ -z $linked ]] || fail "exact2048-$reader reads runs and must not link what computes them:" $linked
done

tools=$PWD/${CARGO_TARGET_DIR:-target}/tools
[[ ${CARGO_TARGET_DIR:-} != /* ]] || tools=$CARGO_TARGET_DIR/tools
export PATH=$PATH:$tools/bin

# They run for seconds, so that they are not worth optimising.
install() {
    command -v "$1" >/dev/null || step env CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=false \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_TARGET_DIR="$tools/build" \
        cargo install --quiet --locked --root "$tools" "$1@$2" || fail "cargo could not install $1"
}

install cargo-deny 0.20.2
install cargo-machete 0.9.2
rm -rf "$tools/build"

step cargo deny --log-level error check licenses bans sources --allow duplicate
# The list of vulnerabilities is on GitHub, which not every machine reaches.
if step cargo deny --log-level error fetch db; then
    step cargo deny --log-level error check --disable-fetch advisories
else
    printf 'warning: the list of known vulnerabilities cannot be fetched, and was not looked at\n' >&2
fi
step cargo machete . fuzz
