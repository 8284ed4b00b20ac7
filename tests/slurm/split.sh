#!/usr/bin/env bash
# A job above the site's array limit of 16 tasks, with a throttle, a time limit warning, a failing task, a node without
# memory, and a cancelled task.
. "$(dirname "$0")/common.sh"

cat >cluster.toml <<'TOML'
gpus          = "1"
min_task_time = "0s"
throttle      = 3
setup         = [". ./break.sh"]
TOML
cat >break.sh <<'SH'
task=$(($2 + SLURM_ARRAY_TASK_ID))
if [ "$1" = 1 ] && [ "$task" = 0 ] && [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then
    (until grep -qs started target/jobs/scale/tasks/1-0.jsonl; do sleep 0.01; done; kill -USR1 $$) &
fi
if [ "$1" = 1 ] && [ "$task" = 5 ]; then exit 7; fi
if [ "$task" = 20 ] && [ "$SLURMD_NODENAME" = n1 ]; then ulimit -v 8000000; fi
SH

"$RUNNER" run experiments/scale.toml --backend sim --out alone --quiet
runner submit experiments/scale.toml --backend sim --name scale --allow-host-code | tee submitted
[ "$(grep -c '^array' submitted)" = 3 ] || fail "40 tasks are three arrays of at most 16"
mapfile -t arrays < <(sed -n 's/^array \([0-9]*\):.*/\1/p' submitted)

# Cancels a task of the second array while it waits for the first array.
await 30 is_state "${arrays[0]}_0" '(RUNNING|COMPLETED)'
scancel "${arrays[1]}_9"
most=0
until is_empty; do
    running=$(squeue --noheader --array --states=running,completing | wc -l)
    [ "$running" -le "$most" ] || most=$running
    [ $(($(date +%s) - started)) -lt 150 ] || fail "the arrays do not end"
    sleep 0.3
done
[ "$most" -le 4 ] && [ "$most" -ge 2 ] || fail "3 tasks should run at a time, $most did"

forget
runner status "$JOB" | tee status && fail "two shards are missing"
grep -q 'failed .*scale 6/40.*exited with an error' status || fail "task 5 has failed"
grep -q 'failed .*scale 26/40.*cancelled' status || fail "task 25 is cancelled"
grep -q '"event":"finished"' "$JOB/tasks/1-20.jsonl" || fail "task 20 has not found the other node"

for line in '"event":"stopped","why":"its time limit was near"' '"event":"requeued"' '"restart":1' '"event":"finished"'; do
    grep -qF "$line" "$JOB/tasks/1-0.jsonl" || fail "the log of the warned task lacks: $line"
done

runner submit experiments/scale.toml --backend sim --name scale --wait | tee again
grep -q '2 shards of 40' again || fail "only what is missing is sent"
same_report
