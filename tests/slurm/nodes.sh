#!/usr/bin/env bash
# Three of the four nodes that a task may run on are bad, and the user excludes a fifth: the task completes on the fourth
# node and never runs on the fifth.
. "$(dirname "$0")/common.sh"
# On a bad node, the simulator gets no memory for its device.
cat >cluster.toml <<'TOML'
gpus  = "1"
extra = ["--exclude=n5"]
setup = [". ./break.sh"]
TOML
echo 'case "$SLURM_ARRAY_TASK_ID $SLURMD_NODENAME" in "0 n4") ;; "0 "*) ulimit -v 8000000 ;; esac' >break.sh
"$RUNNER" run experiments/scale.toml --backend sim --set n=256,512 --out alone --quiet
runner submit experiments/scale.toml --backend sim --set n=256,512 --min-task-time 0s --name scale --allow-host-code
await 300 is_empty
forget && runner status "$JOB" | tee said
has said "8 shards: 8 done"
grep -o '"event":"started","id":"[0-9_]*","node":"[^"]*"' "$JOB/tasks/1-0.jsonl" | tee starts
[ "$(sed 's/.*"node"://' starts | sort -u | grep -c .)" = "$(grep -c . starts)" ] || fail "a node was tried twice"
tail -n 1 starts | grep -q '"n4"' || fail "the good node ends the task"
! grep -h '"n5"' "$JOB"/tasks/*.jsonl || fail "a node ran that the user excludes"
same_report target/reports -scale
