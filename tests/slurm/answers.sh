#!/usr/bin/env bash
# What is said right after something has happened: a healthy job is watched from its first second, a task fails within a
# minute of the last look, two narrowed jobs of one experiment end at the same time, and a search is submitted twice.
. "$(dirname "$0")/common.sh"
named=(submit experiments/scale.toml --backend sim)

echo "# a healthy job waits for no task that is done"
JOB=target/jobs/healthy
runner "${named[@]}" --set n=256,512 --min-task-time 0s --name healthy | tee said
"$RUNNER" status "$JOB" --watch >watched 2>&1
! grep "it waits for task" watched || fail "it is said to wait"
await 60 is_empty

echo "# a task fails after the last look"
JOB=target/jobs/fails
cat >cluster.toml <<'TOML'
setup = ['[ "$SLURM_ARRAY_TASK_ID" != 1 ] || [ "$1" != 1 ] || exit 7']
TOML
runner "${named[@]}" --set n=256,512 --min-task-time 0s --name fails --allow-host-code | tee said
runner status "$JOB" || true
await 120 is_empty
cat "$JOB"/logs/collect-*.out
grep -q "8 shards: 7 done, 1 failed" "$JOB"/logs/collect-*.out || fail "the collecting job does not know that a task failed"
sleep 6
fails 1 runner status "$JOB" | tee said
has said "7 done, 1 failed"
runner submit --again "$JOB" | tee said
has said "1 shard of 8 in 1 task"
await 120 is_empty
rm cluster.toml

echo "# two narrowed jobs of one experiment end at the same time"
for round in 1 2 3; do
    for part in low:256 high:512; do
        runner "${named[@]}" --set "n=${part#*:}" --name "${part%:*}-$round" >>said
    done
    await 120 is_empty
    for part in low:256 high:512; do
        ! grep -h "error" "target/jobs/${part%:*}-$round"/logs/collect* || fail "a collecting job has failed"
        rows=$(tail -n +2 "target/reports/scale/simulated-h100-${part%:*}-$round/results.csv" | cut -d, -f6 | sort -u)
        [ "$rows" = "${part#*:}" ] || fail "the report of $part has rows of n = $rows"
    done
done

echo "# a search is submitted twice"
JOB=target/jobs/search
sed 's/^baseline = "plain"/compare = ["block"]\nbaseline = { variant = "plain", block = 64 }/' experiments/scale.toml >experiments/search.toml
search() {
    runner submit experiments/search.toml --tune 2 --backend sim --set n=256,512 --name search --out search -- --budget 100%
}
search | tee said
search | tee said
has said "no task is missing"
await 180 is_empty
search | tee said
has said "no task is missing"
[ "$(cat "$JOB"/tasks/*.jsonl | grep -c '"event":"started"')" = 3 ] || fail "a task of the search ran twice"
! cat "$JOB"/tasks/*.jsonl | grep '"event":"refused"' || fail "a task was refused"
echo "what is said is not older than what has happened"
