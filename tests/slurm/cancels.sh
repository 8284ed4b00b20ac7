#!/usr/bin/env bash
# Jobs are cancelled right after their first tasks have begun, CANCELS times eight tasks (10 for 80): none of them comes back.
# Tasks that wait are cancelled with their whole array.
. "$(dirname "$0")/common.sh"
for round in $(seq "${CANCELS:-2}"); do
    JOB=target/jobs/cancelled-$round
    runner submit experiments/scale.toml --backend sim --set n=256,512 --min-task-time 0s --name "cancelled-$round" >said
    begun() { compgen -G "$JOB/tasks/*.jsonl" >/dev/null; }
    await 60 begun
    # In each round a little later.
    sleep "0.$((round % 10))"
    runner cancel "$JOB" >said
    await 60 is_empty
    ! cat "$JOB"/tasks/*.jsonl | grep -E '"event":"requeued"|"restart":[1-9]' || fail "a cancelled task came back"
    forget
    for state in $(queue | awk '{ print $2 }' | sort -u); do
        [[ "$state" =~ ^(CANCELLED|COMPLETED)$ ]] || fail "a task is $state after the cancel"
    done
    scancel --quiet --user="$(id -un)" || true
    echo "round $round: $(cat "$JOB"/tasks/*.jsonl | grep -c '"event":"started"') tasks had begun, $(cat "$JOB"/tasks/*.jsonl | grep -c '"event":"finished"' || true) had finished"
done

# An array that waits as a whole is cancelled without runner: Slurm then lists only the array.
JOB=target/jobs/waiting
runner submit experiments/scale.toml --backend sim --set n=256,512 --min-task-time 0s --name waiting --extra=--begin=now+1hour >said
forget && runner status "$JOB" | tee said
has said "8 shards: 8 queued"
scancel "$(squeue --noheader --format=%F | sort -un | head -n 1)_[2-4]"
# An answer must be a second younger than the submission to show that a task is missing.
sleep 2
forget && fails 1 runner status "$JOB" | tee said
has said "8 shards: 5 queued, 3 failed"
scancel --state=PENDING --me
await 60 is_empty
forget && fails 1 runner status "$JOB" | tee said
has said "8 shards: 8 failed"
runner submit --again "$JOB" --dry-run | tee said
has said "8 shards in 8 tasks"
echo "$((${CANCELS:-2} * 8)) tasks cancelled, and none came back"
