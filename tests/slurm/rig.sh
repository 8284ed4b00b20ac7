#!/usr/bin/env bash
# Runs a command next to a real Slurm: munged, slurmctld and several slurmd on this machine. Each node has two fake GPUs,
# which are other device files. Everything is in a private folder and ends with the command.
#
#   tests/slurm/rig.sh [--accounting] COMMAND [ARGUMENT…]
#
# --accounting also starts slurmdbd with its own MariaDB. SLURM_CONF and RIG (the folder) are set for the command.
# RIG_NODES is the number of nodes (default: two), RIG_CPUS the number of CPUs of each, RIG_SLURMD_TIMEOUT the time that a
# node may be silent (default: 6 s), and RIG_CONF adds lines to slurm.conf.
# Exits with 77 if Slurm cannot be installed, otherwise with the exit code of the command. Needs root.
set -euo pipefail

accounting=
if [ "${1:-}" = --accounting ]; then accounting=1 && shift; fi
[ $# -gt 0 ] || { echo "usage: $0 [--accounting] COMMAND [ARGUMENT…]" >&2 && exit 2; }

unavailable() {
    echo "slurm rig: $1" >&2
    exit 77
}

[ "$(id -u)" = 0 ] || unavailable "needs root, to run as slurmctld and to start jobs"
need=()
command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v sbatch >/dev/null ||
    need+=(slurmctld slurmd slurm-client)
command -v munged >/dev/null || need+=(munge)
if [ -n "$accounting" ]; then
    command -v slurmdbd >/dev/null || need+=(slurmdbd)
    command -v mariadbd >/dev/null || need+=(mariadb-server)
fi
if [ ${#need[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || unavailable "no ${need[*]}, and no apt-get to install them with"
    log=$(mktemp)
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${need[@]}"; } \
        >"$log" 2>&1 || unavailable "apt-get cannot install ${need[*]}: $(grep -m1 '^E:' "$log" || tail -n1 "$log")"
    rm -f "$log"
fi

RIG=$(mktemp -d /tmp/slurm-rig.XXXXXX)
chmod 755 "$RIG"
export RIG SLURM_CONF=$RIG/slurm.conf
# Rigs that run at the same time need different ports.
port=$((12000 + $$ % 2000 * 10))
started=()

stop() {
    status=$?
    trap - EXIT
    # Remaining jobs would outlive the daemons.
    timeout 5 scancel --quiet --full --signal=KILL --user="$(id -un)" 2>/dev/null || true
    # The command may have started another controller.
    started+=("$(cat "$RIG/slurmctld.number" 2>/dev/null || echo 0)")
    for pid in "${started[@]}"; do [ "$pid" = 0 ] || kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do
        [ "$pid" != 0 ] || continue
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null && sleep 0.1 || break; done
        kill -KILL "$pid" 2>/dev/null || true
    done
    for step in $(pgrep slurmstepd || true); do
        if grep -qszxF "SLURM_CONF=$SLURM_CONF" "/proc/$step/environ"; then kill -KILL "$step" 2>/dev/null || true; fi
    done
    if [ -n "${RIG_KEEP:-}" ]; then echo "slurm rig: logs are in $RIG" >&2; else rm -rf "$RIG"; fi
    exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Starts a daemon in the background; its output goes to a file with its name.
daemon() {
    local name=$1
    shift
    setsid "$@" >"$RIG/$name.out" 2>&1 &
    started+=($!)
    # Otherwise, the shell would report its end.
    disown
}

# Waits until a command succeeds.
await() {
    local what=$1
    shift
    for _ in $(seq 100); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    echo "slurm rig: $what did not start" >&2
    tail -n 20 "$RIG"/*.out >&2
    exit 1
}

(umask 077 && head -c 1024 /dev/urandom >"$RIG/munge.key")
daemon munged munged --foreground --force --key-file="$RIG/munge.key" --socket="$RIG/munge.sock" \
    --pid-file="$RIG/munge.pid" --log-file="$RIG/munge.log" --seed-file="$RIG/munge.seed"
await munged munge --no-input --socket="$RIG/munge.sock"

host=$(hostname)
nodes=()
for number in $(seq "${RIG_NODES:-2}"); do nodes+=("n$number"); done
all=$(IFS=, && echo "${nodes[*]}")
mkdir "$RIG/state"
for node in "${nodes[@]}"; do mkdir "$RIG/spool.$node"; done
# cred_expire: Slurm holds back a requeued job until the credential of its first start has expired, by default 120 s.
cat >"$RIG/slurm.conf" <<CONF
ClusterName=rig
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$RIG/munge.sock,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$RIG/state
SlurmctldPidFile=$RIG/slurmctld.pid
SlurmctldLogFile=$RIG/slurmctld.log
SlurmdSpoolDir=$RIG/spool.%n
SlurmdPidFile=$RIG/slurmd.%n.pid
SlurmdLogFile=$RIG/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
MaxArraySize=${RIG_MAX_ARRAY:-1001}
MinJobAge=${RIG_MIN_JOB_AGE:-300}
ReturnToService=2
KillWait=${RIG_KILL_WAIT:-5}
SlurmdTimeout=${RIG_SLURMD_TIMEOUT:-6}
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
PartitionName=DEFAULT Nodes=$all PriorityTier=1 State=UP
PartitionName=batch Default=YES
PartitionName=urgent PriorityTier=10
PartitionName=gpu
PartitionName=short MaxTime=10
${RIG_CONF:-}
CONF
for number in $(seq ${#nodes[@]}); do
    echo "NodeName=n$number NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + number)) CPUs=${RIG_CPUS:-8} RealMemory=4000 Gres=gpu:2"
done >"$RIG/nodes"
# Nodes must be defined before their partitions.
sed -i "/^PartitionName=DEFAULT/{
    r $RIG/nodes
    N
}" "$RIG/slurm.conf"
cat >"$RIG/gres.conf" <<CONF
NodeName=$all Name=gpu File=/dev/null
NodeName=$all Name=gpu File=/dev/zero
CONF

if [ -n "$accounting" ]; then
    mkdir "$RIG/db" && chown mysql "$RIG" "$RIG/db"
    mariadb-install-db --no-defaults --user=mysql --datadir="$RIG/db" --skip-test-db >"$RIG/install-db.out" 2>&1
    daemon mariadbd mariadbd --no-defaults --user=mysql --datadir="$RIG/db" --socket="$RIG/db.sock" --skip-networking \
        --pid-file="$RIG/db.pid" --innodb-buffer-pool-size=64M
    sql() { mariadb --no-defaults --socket="$RIG/db.sock" --user=root -e "$1"; }
    await mariadbd sql 'select 1'
    sql "create database slurm_acct_db; create user 'slurm'@'localhost' identified by 'rig';
         grant all on slurm_acct_db.* to 'slurm'@'localhost';"
    cat >"$RIG/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$RIG/munge.sock
DbdHost=localhost
DbdPort=$((port + 9))
SlurmUser=root
LogFile=$RIG/slurmdbd.log
PidFile=$RIG/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=rig
StorageLoc=slurm_acct_db
CONF
    chmod 600 "$RIG/slurmdbd.conf"
    cat >>"$RIG/slurm.conf" <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$((port + 9))
AccountingStoragePass=$RIG/munge.sock
CONF
    MYSQL_UNIX_PORT=$RIG/db.sock SLURM_CONF=$RIG/slurmdbd.conf daemon slurmdbd slurmdbd -D
    await slurmdbd timeout 2 sacctmgr --immediate --noheader list cluster
    sacctmgr --immediate add cluster rig >/dev/null 2>&1 || true
fi

daemon slurmctld slurmctld -D -f "$SLURM_CONF"
echo "${started[-1]}" >"$RIG/slurmctld.number"
await slurmctld timeout 2 scontrol ping
for node in "${nodes[@]}"; do
    daemon "$node" slurmd -D -N "$node" -f "$SLURM_CONF"
    echo "${started[-1]}" >"$RIG/$node.pid"
done
idle() { [ "$(timeout 2 sinfo --noheader --Node --partition=batch --states=idle | wc -l)" = "${#nodes[@]}" ]; }
await "all nodes" idle

"$@"
