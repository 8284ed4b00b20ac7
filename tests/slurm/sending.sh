#!/usr/bin/env bash
# What can go wrong while a job is submitted, in one Slurm without accounting: a source is edited while tasks wait, the
# collecting job or an array is refused, sbatch ends without an answer, two users submit at once, the controller is down,
# the site allows few tasks in the queue, and a partition has a short time limit.
. "$(dirname "$0")/common.sh"
submit() { runner submit experiments/scale.toml --backend sim --set n=256,512 --min-task-time 0s --name "$name" "$@"; }
named() { name=$1 JOB=target/jobs/$1; }
reported() { await 120 is_empty && same_report "$@"; }
jobs_named() { squeue --noheader --states=all --format='%F %j' | sort -u | grep -c " runner-$name\." || true; }
begin() { echo "# $*"; }
finished() { runner status "$JOB" | tee said && grep -q ": 8 done\$" said; }
await_done() { await 120 eval "forget; finished >/dev/null"; }

"$RUNNER" run experiments/scale.toml --backend sim --set n=256,512 --out alone --quiet
echo 'gpus = "1"' >cluster.toml

begin "a source is edited while tasks wait"
named edited
submit --extra=--hold | tee said
held=$(arrays said)
forget && runner status "$JOB" | tee said
has said "8 queued"
has said "JobHeldUser"
cp kernels/scale.cu as-it-was.cu
sed -i 's/2.0f \* input/3.0f * input/' kernels/scale.cu
forget && fails 2 submit | tee said
has said "sources or inputs have changed since 8 shards still queued or running were submitted"
scontrol release "$held"
await_done && await 60 is_empty
same_report target/reports "-$name"
cp as-it-was.cu kernels/scale.cu

begin "the collecting job is refused, and sent by the next submit"
named refused
printf '[collect]\npartition = "nowhere"\n' >>cluster.toml
submit | tee said
has said "the job that collects the results was not accepted"
await_done
sed -i '/collect/,$d' cluster.toml
forget && submit | tee said
has said "no shard is missing"
has said ": collects the results"
reported target/reports "-$name"

begin "the second of two arrays is refused, and sent by the next submit"
named second
mkdir -p silent && real=$(command -v sbatch)
cat >silent/sbatch <<SH
#!/bin/sh
case "\$*" in *.1.4\ *) set -- --partition=nowhere "\$@" ;; esac
exec $real "\$@"
SH
chmod +x silent/sbatch
PATH=$PWD/silent:$PATH fails 3 submit --max-array 4 | tee said
has said "4 tasks not submitted: run the same command again to submit what is missing"
forget && { runner status "$JOB" || true; } | tee said
has said "4 not submitted"
submit --max-array 4 | tee said
has said "4 shards of 8 in 4 tasks"
await_done
reported target/reports "-$name"
[ "$(cat "$JOB"/tasks/*.jsonl | grep -c '"event":"started"')" = 8 ] || fail "a task ran twice"

begin "sbatch is accepted and ends without an answer"
named silent
cat >silent/sbatch <<SH
#!/bin/sh
$real "\$@" >/dev/null && echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1
SH
chmod +x silent/sbatch
PATH=$PWD/silent:$PATH submit | tee said
has said "checking whether it was accepted"
[ "$(jobs_named)" = 2 ] || fail "one array and one collecting job, not $(jobs_named)"
reported target/reports "-$name"

begin "two submit at once"
named twice
(submit >one 2>&1 || echo "exit code $?" >>one) &
(submit >two 2>&1 || echo "exit code $?" >>two) &
wait
cat one two
[ "$(cat one two | grep -c '^array ')" = 1 ] || fail "one array, not $(cat one two | grep '^array ')"
[ "$(jobs_named)" = 2 ] || fail "one array and one collecting job, not $(jobs_named)"
reported target/reports "-$name"

begin "at most three tasks are in the queue"
named few
echo 'queue = 3' >>cluster.toml
submit | tee said
most=0
until is_empty; do
    waiting=$(squeue --noheader --array --states=pending,running --format='%j' | grep -vc collect || true)
    [ "$waiting" -le "$most" ] || most=$waiting
    [ $(($(date +%s) - started)) -lt 550 ] || fail "the tasks do not end"
    sleep 0.2
done
[ "$most" = 3 ] || fail "3 tasks should be in the queue at a time, $most were"
sed -i '/queue/d' cluster.toml
reported target/reports "-$name"

begin "a partition allows ten minutes"
named short
fails 2 submit --partition short --time 20min | tee said
has said "time: the partition allows at most 10 min"
submit --partition short --extra=--hold | tee said
squeue --noheader --format='%l' | sort -u | tee limits
grep -qx '10:00' limits || fail "the collecting job has the longest time"
! grep -vE '^([0-9]:[0-9]{2}|10:00)$' limits || fail "a time limit is too long"
scontrol release "$(arrays said)"
reported target/reports "-$name"

begin "the controller is away during status and collect"
named away
submit --extra=--hold | tee said
held=$(arrays said)
stop_controller
forget && fails 0 runner status "$JOB" | tee said
has said "the scheduler does not answer"
has said "8 shards: 8 queued"
fails 3 runner collect "$JOB" | tee said
has said "no shard has a result yet"
fails 0 submit | tee said
has said "no shard is missing"
start_controller
scontrol release "$held"
reported target/reports "-$name"

begin "the controller is away during submit"
named vanished
cat >silent/sbatch <<SH
#!/bin/sh
kill -KILL \$(cat "$RIG/slurmctld.number") 2>/dev/null
exec $real "\$@"
SH
PATH=$PWD/silent:$PATH fails 3 submit | tee said
has said "run the same command again to submit what is missing"
start_controller
# Slurm does not have the failed submission, and after a minute its reply is trusted.
sent() { forget && submit | tee said && grep -q '^array ' said; }
await 120 sent
[ "$(jobs_named)" = 2 ] || fail "one array and one collecting job, not $(jobs_named)"
reported target/reports "-$name"
