#!/usr/bin/env bash
# Solves boards with scripts/slurm/exact2048.sbatch on a real Slurm with two nodes on this machine.
#
#   scripts/ci-slurm.sh
#
# Needs root. Installs the missing parts of Slurm with apt-get. The daemons write only to a temporary folder, and are stopped
# at the end. An existing Slurm is not touched.
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

[ "$(id -u)" = 0 ] || fail "only root can start the daemons of Slurm"
repository=$PWD

# The path must be short, because munge has a socket in this folder.
work=$(mktemp -d /tmp/slurm.XXXXXX)
export SLURM_CONF=$work/slurm.conf
store=$work/store

stop_slurm() {
    local code=$? file pid
    trap - EXIT
    if [ "$code" != 0 ]; then
        tail -n 30 "$work"/log/*.log "$work"/jobs/*.out "$work"/jobs/*/*.log >&2 2>/dev/null || true
    fi
    if [ -f "$work/slurmctld.pid" ]; then
        # Jobs are cancelled first, because nothing else ends their processes.
        timeout 20 scancel --user=root --full 2>/dev/null || true
        wait_until 20 no_jobs || true
    fi
    for file in "$work"/slurmd-n1.pid "$work"/slurmd-n2.pid "$work"/slurmctld.pid "$work"/munged.pid; do
        [ -f "$file" ] || continue
        pid=$(cat "$file")
        kill "$pid" 2>/dev/null || continue
        wait_until 10 ended "$pid" || kill -9 "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
    exit "$code"
}
trap stop_slurm EXIT

# Waits at most $1 seconds until a command succeeds.
wait_until() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

ended() {
    ! kill -0 "$1" 2>/dev/null
}

no_jobs() {
    [ -z "$(squeue --noheader 2>/dev/null)" ]
}

# ------------------------------------------------------------------------------------------------------------- Slurm

install_slurm() {
    local program missing=
    for program in slurmctld slurmd sbatch munged openssl python3 pgrep; do
        command -v "$program" >/dev/null || missing=1
    done
    [ -n "$missing" ] || return 0
    step apt-get update -qq || fail "apt-get update failed"
    step env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge openssl procps python3 >/dev/null \
        || fail "apt-get could not install Slurm"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

nodes_idle() {
    [ "$(sinfo --noheader --states=idle --format=%D 2>/dev/null)" = 2 ]
}

# A node is a slurmd with a name. Credentials expire after 5 seconds, because a requeued job waits until the old ones end.
start_slurm() {
    local host
    host=$(hostname -s)
    mkdir -p "$work/state" "$work/spool/n1" "$work/spool/n2" "$work/log" "$work/jobs" "$work/tmp" "$store"
    (umask 077 && head -c 1024 /dev/urandom >"$work/munge.key")
    cat >"$SLURM_CONF" <<EOF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.sock,cred_expire=5
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=bf_interval=1,sched_interval=5
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait=30
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/log/slurmctld.log
SlurmdLogFile=$work/log/slurmd-%n.log
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=2 RealMemory=3000 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=2 RealMemory=3000 State=UNKNOWN
PartitionName=test Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
EOF
    munged --force --key-file="$work/munge.key" --socket="$work/munge.sock" --pid-file="$work/munged.pid" \
        --log-file="$work/log/munged.log" --seed-file="$work/munge.seed" || fail "munged did not start"
    slurmctld || fail "slurmctld did not start"
    slurmd -N n1 || fail "the slurmd of node n1 did not start"
    slurmd -N n2 || fail "the slurmd of node n2 did not start"
    wait_until 30 nodes_idle || fail "the two nodes were not idle within 30 seconds: $(sinfo 2>&1)"
}

# -------------------------------------------------------------------------------------------------------------- jobs

# Submits the script with the arguments of a board, and sets `id` to the job's id. Options of sbatch are in `options`.
options=()
submit() {
    cd "$work/jobs"
    id=$(EXACT2048_STORE=file://$store EXACT2048_BIN=$program TMPDIR=$work/tmp \
        sbatch --parsable --output="$work/jobs/%j.out" "${options[@]}" \
        "$repository/scripts/slurm/exact2048.sbatch" "$@") || fail "sbatch refused the script"
    cd "$repository"
    printf 'job %s: %s\n' "$id" "$*"
}

job_field() {
    scontrol show job "$id" 2>/dev/null | sed -nE "s/.*\b$1=([^ ]+).*/\1/p"
}

job_over() {
    case $(job_field JobState) in
        PENDING | RUNNING | COMPLETING | CONFIGURING | REQUEUED | SUSPENDED) return 1 ;;
    esac
}

# Waits for the job to end, and checks its final state.
expect_end() {
    wait_until "$1" job_over || fail "job $id was still $(job_field JobState) after $1 seconds"
    [ "$(job_field JobState)" = "$2" ] || fail "job $id ended as $(job_field JobState), expected $2"
}

# Checks that finished jobs have removed their folders on the nodes.
nothing_left() {
    wait_until 20 rmdir "$work/tmp" || fail "jobs left on the nodes: $(ls "$work/tmp")"
    mkdir "$work/tmp"
}

fingerprint() {
    "$program" info --run "$1" --json | sed -nE 's/.*"fingerprint":"([0-9a-f]+)".*/\1/p'
}

expect_fingerprint() {
    local found
    found=$(fingerprint "$store/$1")
    [ "$found" = "$2" ] || fail "$1 has the fingerprint ${found:-none}, expected $2"
    printf '%s has the fingerprint %s\n' "$1" "$2"
}

# Whether a run has at least $2 journal records. Each record but the first of a start commits a shard.
records() {
    [ "$(find "$store/$1/journal" -type f -name '*.json' 2>/dev/null | wc -l)" -ge "$2" ]
}

# Kills one process of a command of this test.
kill_one() {
    local pid
    pid=$(pgrep -o -f "^$program $1 .*$work") || fail "there is no $1 to kill"
    kill -9 "$pid"
}

# Whether the workers have work from the restarted coordinator.
working() {
    [ "$(grep -c 'took over the store' "$work/jobs/exact2048-$id/coordinator.log")" = 2 ] \
        && sed '1,/took over the store/d' "$work/jobs/exact2048-$id/coordinator.log" | grep -A99 'took over' | grep -q 'epoch began'
}

install_slurm
program=${EXACT2048_PROGRAM:-}
if [ -z "$program" ]; then
    step cargo build --release --locked
    program=${CARGO_TARGET_DIR:-target}/release/exact2048
fi
program=$(realpath "$program") || fail "there is no program $program"
[ -x "$program" ] || fail "there is no $program, though cargo built it"
printf '\n==> starting Slurm\n'
start_slurm
sinfo

printf '\n==> undisturbed jobs\n'
submit --board 3x2
expect_end 120 COMPLETED
expect_fingerprint 3x2 d824fa6f0a7d0cde64a79087a89cab66
submit --board 4x2
expect_end 120 COMPLETED
expect_fingerprint 4x2 512d941b138950ab02da28252f0e594a
# The same command for a solved job ends at once.
submit --board 4x2
expect_end 60 COMPLETED
submit --board 3x2 --name other
expect_end 60 FAILED
grep -q 'error: --name .*EXACT2048_JOB' "$work/jobs/$id.out" || fail "job $id does not say what to use instead of --name"

printf '\n==> solving 3x3 on this machine alone, for comparison\n'
"$program" solve --board 3x3 --run "$work/alone" --json >/dev/null
expected=$(fingerprint "$work/alone")
[ -n "$expected" ] || fail "solve left no fingerprint"
nothing_left

# Jobs with neighbouring ids on the same nodes, each with a coordinator, and a worker on every node.
printf '\n==> two jobs at once on the same nodes\n'
mkdir "$work/tmp/exact2048-root-1-n1"
options=(--exclusive=user --cpus-per-task=1 --mem=1000)
store=$work/store-a submit --board 3x3
first=$id
store=$work/store-b submit --board 3x3
both_run() {
    [ "$(squeue --noheader --states=running --format=%A --jobs="$first,$id" | wc -l)" = 2 ]
}
wait_until 30 both_run || fail "the jobs $first and $id do not run at once: this tested nothing"
wait_until 30 test ! -e "$work/tmp/exact2048-root-1-n1" || fail "the folder of a finished job was not removed"
second=$id
for id in "$first" "$second"; do
    expect_end 180 COMPLETED
done
store=$work/store-a expect_fingerprint 3x3 "$expected"
store=$work/store-b expect_fingerprint 3x3 "$expected"
options=()
nothing_left

# The same signal as Slurm sends before the time limit.
printf '\n==> a job whose time is up\n'
EXACT2048_JOB=time-up submit --board 3x3
wait_until 60 records time-up 2 || fail "job $id committed nothing within 60 seconds"
scancel --batch --signal=TERM "$id"
wait_until 60 grep -q requeued "$work/jobs/$id.out" || fail "job $id did not requeue itself"
[ -z "$(fingerprint "$store/time-up")" ] || fail "the job was done before it could be stopped: this tested nothing"
expect_end 180 COMPLETED
[ "$(job_field Restarts)" = 1 ] || fail "job $id was restarted $(job_field Restarts) times, expected 1"
expect_fingerprint time-up "$expected"

printf '\n==> a job that is cancelled, and submitted again\n'
EXACT2048_JOB=cancelled submit --board 3x3
wait_until 60 records cancelled 2 || fail "job $id committed nothing within 60 seconds"
scancel "$id"
expect_end 60 CANCELLED
[ -z "$(fingerprint "$store/cancelled")" ] || fail "the job was done before it could be stopped: this tested nothing"
EXACT2048_JOB=cancelled submit --board 3x3
expect_end 180 COMPLETED
expect_fingerprint cancelled "$expected"

printf '\n==> a job array of workers that join, are cancelled, and join again\n'
options=(--nodes=1 --exclusive=user --cpus-per-task=1 --mem=1000)
EXACT2048_JOB=joined submit --board 5x2 --objective reach:512
first=$id
folder=exact2048-$first
workers_are() {
    [ "$("$program" status --coordinator "$(cut -d' ' -f2 "$work/jobs/$folder/coordinator")" --tls-ca "$work/jobs/$folder/tls/ca.pem" \
        --tls-cert "$work/jobs/$folder/tls/cert.pem" --tls-key "$work/jobs/$folder/tls/key.pem" --json 2>/dev/null \
        | grep -o '"worker":' | wc -l)" = "$1" ]
}
wait_until 60 records joined 1 || fail "job $id committed nothing within 60 seconds"
options+=(--array=1-2)
submit --join "$folder"
wait_until 60 workers_are 3 || fail "the array $id did not add two workers within 60 seconds"
scancel "$id"
wait_until 60 workers_are 1 || fail "the workers of the cancelled array $id did not leave within 60 seconds"
submit --join "$folder"
wait_until 60 workers_are 3 || fail "the array $id did not add two workers within 60 seconds"
[ -z "$(fingerprint "$store/joined")" ] || fail "the job was done before workers joined again: this tested nothing"
array=$id id=$first
expect_end 180 COMPLETED
wait_until 60 no_jobs || fail "the workers of the array $array did not end with the job $first"
[ "$(scontrol show job "$array" | grep -c JobState=COMPLETED)" = 2 ] || fail "workers of the array $array failed"
expect_fingerprint joined 27b29c6c9b5335b3cccc0b61d57866ab
options=()
nothing_left

printf '\n==> a job that loses a node\n'
EXACT2048_JOB=lost-node submit --board 3x3
wait_until 60 records lost-node 2 || fail "job $id committed nothing within 60 seconds"
scontrol update nodename=n2 state=down reason=test
expect_end 180 COMPLETED
expect_fingerprint lost-node "$expected"

printf '\n==> a job whose coordinator is killed, then a worker\n'
EXACT2048_JOB=killed submit --board 3x3
wait_until 60 records killed 2 || fail "job $id committed nothing within 60 seconds"
kill_one coordinator
wait_until 30 grep -q 'the coordinator was killed' "$work/jobs/$id.out" || fail "job $id did not notice that its coordinator was killed"
wait_until 60 working || fail "no worker computed within 60 seconds after the coordinator was killed"
kill_one worker
expect_end 180 COMPLETED
grep -q 'the worker was killed' "$work/jobs/exact2048-$id"/worker-*.log || fail "job $id did not notice that a worker was killed"
expect_fingerprint killed "$expected"
nothing_left

printf '\nSlurm solves boards.\n'
