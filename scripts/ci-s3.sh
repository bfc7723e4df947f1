#!/usr/bin/env bash
# Tests runs in object stores against real servers on this machine: moto (an emulator) and the Ceph Object Gateway.
#
#   scripts/ci-s3.sh              both
#   scripts/ci-s3.sh moto         only one: moto or ceph
#
# Installs missing programs: moto and the AWS client with pip, Ceph with apt-get (as root). The servers write only to a
# temporary folder, and are stopped at the end.
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

servers=("$@")
[ $# -gt 0 ] || servers=(moto ceph)

# The path must be short, because Ceph has sockets in this folder.
work=$(mktemp -d /tmp/s3.XXXXXX)
moto_pid=
ceph_port=
ceph_conf=$work/ceph/ceph.conf

stop_ceph() {
    local file pid
    for file in "$work"/ceph/*.pid; do
        [ -f "$file" ] || continue
        pid=$(cat "$file")
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq 20); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.2
        done
        kill -9 "$pid" 2>/dev/null || true
    done
}

stop_servers() {
    [ -z "$moto_pid" ] || kill "$moto_pid" 2>/dev/null || true
    stop_ceph
    rm -rf "$work"
}
trap stop_servers EXIT

python_tools() {
    if ! command -v moto_server >/dev/null || ! command -v aws >/dev/null; then
        command -v python3 >/dev/null || fail "python3 is not installed: it runs moto and the AWS client"
        step python3 -m venv "$work/venv" || fail "python3 cannot make a virtual environment (python3-venv)"
        step "$work/venv/bin/pip" install --quiet 'moto[s3,server]' awscli \
            || fail "pip could not install moto[s3,server] and awscli"
        PATH=$work/venv/bin:$PATH
    fi
}

# Waits until something listens on a port of this machine.
wait_for_port() {
    for _ in $(seq 300); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return; fi
        sleep 0.1
    done
    fail "$2 did not start within 30 seconds; its log: $3"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start_moto() {
    local port
    port=$(free_port)
    moto_server -H 127.0.0.1 -p "$port" >"$work/moto.log" 2>&1 &
    moto_pid=$!
    wait_for_port "$port" moto "$work/moto.log"
    export AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing AWS_ENDPOINT_URL=http://127.0.0.1:$port
}

# Configures a cluster with one monitor, one in-memory object daemon, and the gateway, on ports that are free now. Sets
# $ceph_port to the gateway's port.
configure_ceph() {
    local base=$work/ceph fsid mon_v1 mon_v2
    mkdir -p "$base/mon" "$base/osd0" "$base/rgw"
    fsid=$(cat /proc/sys/kernel/random/uuid)
    ceph_port=$(free_port) mon_v1=$(free_port) mon_v2=$(free_port)
    cat >"$ceph_conf" <<EOF
[global]
fsid = $fsid
mon host = [v2:127.0.0.1:$mon_v2,v1:127.0.0.1:$mon_v1]
keyring = $base/keyring
osd pool default size = 1
osd pool default min size = 1
mon allow pool size one = true
mon data avail warn = 2
mon data avail crit = 1
osd crush chooseleaf type = 0
osd pool default pg num = 4
osd objectstore = memstore
memstore device bytes = 2147483648
run dir = $base
admin socket = $base/\$name.\$pid.asok
pid file = $base/\$name.pid
log file = $base/\$name.log
mon data = $base/mon
osd data = $base/osd0
rgw data = $base/rgw
[mon.a]
public addr = 127.0.0.1
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:$ceph_port
EOF
    export CEPH_CONF=$ceph_conf
    monmaptool --create --fsid "$fsid" --addv a "[v2:127.0.0.1:$mon_v2,v1:127.0.0.1:$mon_v1]" "$base/monmap"
}

# Starts the configured daemons.
bring_up_ceph() {
    local base=$work/ceph keys=$work/ceph/keyring osd_id
    osd_id=$(cat /proc/sys/kernel/random/uuid)
    set -x
    ceph-authtool --create-keyring "$keys" --gen-key -n mon. --cap mon 'allow *'
    ceph-authtool "$keys" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *'
    ceph-authtool "$keys" --gen-key -n osd.0 --cap mon 'allow profile osd' --cap osd 'allow *'
    ceph-authtool "$keys" --gen-key -n client.rgw --cap mon 'allow rw' --cap osd 'allow rwx'
    ceph-mon --mkfs -i a --monmap "$base/monmap" --keyring "$keys"
    ceph-mon -i a
    # Both commands need the same id, or the daemon never starts.
    timeout 60 ceph osd new "$osd_id"
    ceph-osd -i 0 --mkfs --osd-uuid "$osd_id"
    ceph-osd -i 0
    timeout 60 bash -c 'until ceph osd stat | grep -q "1 up"; do sleep 0.5; done'
    timeout 60 radosgw -n client.rgw
    timeout 60 radosgw-admin -n client.rgw user create --uid=tester --display-name=tester \
        --access-key=testing --secret-key=testing
}

start_ceph() {
    if ! command -v radosgw >/dev/null || ! command -v ceph-osd >/dev/null; then
        [ "$(id -u)" = 0 ] || fail "Ceph is not installed, and only root can: apt-get install radosgw ceph-mon ceph-osd ceph-common"
        step apt-get update -qq || fail "apt-get update failed"
        step env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
            radosgw ceph-mon ceph-osd ceph-common >/dev/null || fail "apt-get could not install Ceph"
    fi
    # Another process may take a port before Ceph does, so retry with other ports.
    for attempt in 1 2 3; do
        rm -rf "$work/ceph"
        configure_ceph >/dev/null
        # A separate job, because the shell ignores errors within a condition.
        bring_up_ceph >"$work/ceph.log" 2>&1 &
        if wait $!; then
            wait_for_port "$ceph_port" "the Ceph Object Gateway" "$work/ceph.log"
            export AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing AWS_ENDPOINT_URL=http://127.0.0.1:$ceph_port
            return
        fi
        stop_ceph
        { printf '\nCeph did not start (attempt %s):\n' "$attempt"; tail -n 40 "$work"/ceph/*.log "$work/ceph.log"; df -h "$work"; } >&2
    done
    fail "Ceph did not start; the last command above failed"
}

python_tools
export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ALLOW_HTTP=true
export EXACT2048_TEST_S3=s3://exact2048-test EXACT2048_REQUIRE_S3=1
step cargo test --workspace --test program --no-run
for server in "${servers[@]}"; do
    printf '\n==> starting %s\n' "$server"
    case $server in
        moto) start_moto ;;
        ceph) start_ceph ;;
        *) fail "expected moto or ceph, found $server" ;;
    esac
    step aws s3 mb "$EXACT2048_TEST_S3"
    step cargo test --workspace --test program stores::
done
printf '\nThe tests of runs in stores passed on: %s\n' "${servers[*]}"
