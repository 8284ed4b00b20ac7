#!/usr/bin/env bash
# Of 40 tasks with one group each, one is killed, one is preempted, one reaches its time limit, and one runs on a node that
# fails. After submitting again, the report is that of a run in one process.
. "$(dirname "$0")/common.sh"

cat >cluster.toml <<'TOML'
gpus          = "1"
min_task_time = "0s"
time          = "1min"
warning       = "10s"
setup         = [". ./hold.sh"]
TOML
# On their first start, the first four tasks wait for something to happen to them.
cat >hold.sh <<'SH'
if [ "$1" = 1 ] && [ "$SLURM_ARRAY_TASK_ID" -lt 4 ] && [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
    trap '' USR1
    echo "$$" >"held.$SLURM_ARRAY_TASK_ID"
    sleep 600
fi
SH

# Ends a node at once, as when its power fails: nothing on it can tell Slurm how its tasks ended.
power_off() {
    local node=$1 daemon steps process socket
    daemon=$(cat "$RIG/$node.pid")
    # Stops the daemon first, so that it starts no more tasks. A starting step is its child; a running step has a socket.
    kill -STOP "$daemon"
    steps=$(pgrep -P "$daemon" || true)
    for socket in "$RIG/spool.$node/${node}"_*; do
        socket=${socket##*_}
        steps+=" $(pgrep -f "^slurmstepd: \[${socket%%.*}\." || true)"
    done
    for process in $steps; do kill -KILL "$process" 2>/dev/null || true; done
    kill -KILL "$daemon"
    for process in /proc/[0-9]*; do
        if grep -qszx "SLURMD_NODENAME=$node" "$process/environ" && grep -qszxF "SLURM_CONF=$SLURM_CONF" "$process/environ"; then
            kill -KILL "${process#/proc/}" 2>/dev/null || true
        fi
    done
}

"$RUNNER" run experiments/scale.toml --backend sim --out alone --quiet
{
    runner submit experiments/scale.toml --backend sim --name scale --allow-host-code
    array=$(grep -o 'array [0-9]*' said | head -n 1 | cut -d' ' -f2)
    for task in 0 1 2 3; do await 30 test -s "held.$task"; done

    echo "# task ${array}_0 is killed"
    kill -KILL "$(cat held.0)"
    await 30 is_state "${array}_0" FAILED

    echo "# a job of higher priority preempts a task on node n2"
    urgent=$(sbatch --parsable --partition=urgent --nodelist=n2 --gpus=1 --output=/dev/null --wrap 'sleep 1')
    preempted() { queue | grep -qE "^${array}_[23] PENDING"; }
    await 30 preempted

    echo "# node n2 fails with the tasks that run there"
    power_off n2

    # If this job has not ended yet, it would wait for its node forever.
    scancel --quiet "$urgent" || true

    echo "# task ${array}_1 reaches its time limit"
    await 150 is_state "${array}_1" TIMEOUT
    await 90 is_empty
    echo "# the preempted task and the one on the failed node were started again by Slurm, on n1:"
    for task in 2 3; do
        grep -H '"event":"started"' "$JOB/tasks/1-$task.jsonl" | tail -n 1
        grep -q '"node":"n1","restart":[1-9]' "$JOB/tasks/1-$task.jsonl" || fail "task $task was not started again on n1"
    done
    forget
    runner status "$JOB" && fail "two shards are missing"
    echo "# the collecting job has named them:"
    cat "$JOB"/logs/collect-*.out
    for line in "40 shards: 38 done, 2 failed" "task ${array}_0): exited with an error" "task ${array}_1): reached its time"; do
        grep -qF "$line" "$JOB"/logs/collect-*.out || fail "the collecting job does not say: $line"
    done

    echo "# what is missing is submitted again, by the same command"
    runner submit experiments/scale.toml --backend sim --name scale --wait
    same_report
    cp said "$TRANSCRIPT"
} > >(tee said) 2>&1
