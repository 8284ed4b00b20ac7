#!/usr/bin/env bash
# Ten thousand tasks in arrays of at most 1001. The controller is killed twice while they run. The report is that of a run
# in one process. MANY overrides the number of tasks.
. "$(dirname "$0")/common.sh"
many=${MANY:-10000}
cat >experiments/many.toml <<TOML
[experiment]
name  = "scale"
title = "Twice the input"

[axes]
n = { range = [1, $many, 1] }

[buffers.input]
type = "f32"
len  = "n"
fill = { uniform = [-1, 1], seed = 7 }

[buffers.output]
type   = "f32"
len    = "n"
access = "out"

[check]
actual = "output"
expect = "add(input, input)"

[[variant]]
name   = "plain"
source = "scale.cu"
kernel = "scale"
grid   = ["ceil_div(n, 1024)"]
block  = [1024]
args   = ["input", "output", "u32(n)"]
TOML
: >cluster.toml
"$RUNNER" run experiments/many.toml --backend sim --out alone --quiet >alone.out 2>&1 &
alone=$!
began=$(date +%s)
time runner submit experiments/many.toml --backend sim --min-task-time 0s --name scale | tee said
echo "submitted after $(($(date +%s) - began)) s"
[ "$(grep -c '^array ' said)" = $(((many + 1000) / 1001)) ] || fail "not all arrays are sent"
# Counts the folders of shards, which asks nothing of Slurm.
begun() { find "$JOB/shards/scale" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
# A killed controller has forgotten whatever it had not written yet. It gives the id of a running task to another one, finds
# both on a node, drains the node, and holds the task that it could not start. This resumes both, as an operator would.
resume() {
    local node task
    for task in $(squeue --noheader --array --states=pending --format='%i|%r' 2>/dev/null | sed -n 's/|.*requeued held$//p'); do
        echo "# task $task is held, and released"
        scontrol release "$task"
    done
    for node in $(sinfo --noheader --Node --partition=batch --states=drain --format=%N 2>/dev/null); do
        echo "# node $node is drained ($(sinfo --noheader --nodes="$node" --partition=batch --format=%E)), and resumed"
        scontrol update NodeName="$node" State=RESUME
    done
}
for share in 3 2; do
    until [ "$(begun)" -ge $((many / share)) ]; do resume && sleep 5; done
    echo "# $(begun) tasks have begun after $(($(date +%s) - began)) s: the controller is killed"
    stop_controller
    sleep 20
    forget && { time runner status "$JOB"; } 2>&1 | head -n 20
    start_controller
done
until is_empty 2>/dev/null; do resume && sleep 10; done
echo "the queue is empty after $(($(date +%s) - began)) s"
forget && { time runner status "$JOB"; } 2>&1 | tee said
has said "$many shards: $many done"
wait "$alone" || fail "the run in one process: $(cat alone.out)"
grep -h -o '"event":"started","id":"[^"]*"' "$JOB"/tasks/*.jsonl | wc -l | sed 's/$/ starts in all/'
same_report
