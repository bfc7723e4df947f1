#!/usr/bin/env bash
# Runs the long checks whose files have changed since the check last passed: emulated processors, Slurm, Kubernetes, Ceph.
#
#     scripts/ci-rare.sh              checks with changed files, as CI does
#     scripts/ci-rare.sh --record     the same, and notes in scripts/ci-rare.sums that they passed; commit this file
#     scripts/ci-rare.sh --all        all checks
#
# The file of sums holds, for each check, a hash of the tracked files that it depends on. Needs the test build and
# EXACT2048_PROGRAM, the path of the program; the checks install missing servers and schedulers as root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sums=scripts/ci-rare.sums
mode=${1:-changed}
case $mode in
    changed | --record | --all) ;;
    *) printf 'error: expected --record or --all, found %s\n' "$mode" >&2; exit 2 ;;
esac

# A hash of the contents of all tracked files under some paths, as they are in the working tree.
hash_of() {
    git ls-files -z -- "$@" | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
}

# Runs a check unless its files are those of its last success: rare NAME FILES... -- COMMAND...
rare() {
    local name=$1 files=() hash begun=$SECONDS
    shift
    while [ "$1" != -- ]; do
        files+=("$1")
        shift
    done
    shift
    hash=$(hash_of "${files[@]}" "$0" rust-toolchain.toml)
    if [ "$mode" != --all ] && grep -qx "$name $hash" "$sums"; then
        printf '\n==> %s: not run, because its files have not changed\n' "$name"
        return
    fi
    printf '\n==> %s: %s\n' "$name" "$*"
    "$@"
    printf '<== %s s\n' $((SECONDS - begun))
    if [ "$mode" = --record ]; then
        { grep -v "^$name " "$sums" || true; echo "$name $hash"; } | sort >"$sums.new"
        mv "$sums.new" "$sums"
    fi
}

rare instruction-sets worker combo4w scripts/check-instruction-sets.sh -- scripts/check-instruction-sets.sh
rare slurm cluster coordinator net scripts/slurm scripts/ci-slurm.sh -- scripts/ci-slurm.sh
rare kubernetes cluster coordinator net scripts/k8s scripts/ci-k8s*.sh scripts/ci-k8s*.py Dockerfile -- scripts/ci-k8s.sh
rare ceph storage tests/stores.rs scripts/ci-s3.sh -- scripts/ci-s3.sh ceph
