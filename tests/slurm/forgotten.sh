#!/usr/bin/env bash
# Tasks are held, seen, released, cancelled, and forgotten by the controller. With accounting, their fate is known. Without,
# they count as lost once the controller has not known them for a while. Other tasks reach their time limit and get more
# time when they are submitted again. A narrowed job does not replace the report of a whole one.
. "$(dirname "$0")/common.sh"
accounts=${1:-}
named=(submit experiments/scale.toml --backend sim --min-task-time 0s)
"$RUNNER" run experiments/scale.toml --backend sim --set n=256,512 --out alone --quiet
echo 'gpus = "1"' >cluster.toml
submit() { runner "${named[@]}" --set n=256,512 --name scale "$@"; }
submit --extra=--hold | tee said
held=$(arrays said)
runner status "$JOB" | tee said
has said "JobHeldUser"
# Four tasks run to their end, four are cancelled while they wait.
scontrol release "${held}_0" "${held}_1" "${held}_2" "${held}_3"
ended() { [ "$(queue | grep -cE "^${held}_[0-3] COMPLETED")" = 4 ]; }
await 120 ended
forget && runner status "$JOB" | tee said
has said "4 done, 4 queued"
scancel "$held"
await 60 is_empty
# The queue is empty, so the collecting job has run as well.
known() { squeue --noheader --array --states=all --format='%F' | grep -qx "$held"; }
echo "# the controller forgets them"
await 300 eval '! known'
# Backdates everything by a day.
python3 - "$JOB" <<'PY'
import datetime, glob, json, sys
for path in glob.glob(sys.argv[1] + "/submission-*.json"):
    value = json.load(open(path))
    value["submitted"] = (datetime.datetime.utcnow() - datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    json.dump(value, open(path, "w"))
for path in glob.glob(sys.argv[1] + "/scheduler-*.json"):
    value = json.load(open(path))
    value["asked"] -= 86400
    value["answered"] -= 86400
    for task in value["tasks"].values():
        task["at"] -= 86400
    json.dump(value, open(path, "w"))
PY
fails 1 runner status "$JOB" | tee said
if [ -n "$accounts" ]; then has said "4 done, 4 failed" && has said ": cancelled"; else has said "4 done, 4 lost"; fi
submit | tee said
has said "4 shards of 8 in 4 tasks"
await 120 is_empty
same_report target/reports -scale

echo "# tasks reach their time limit, and get three times as long"
cat >cluster.toml <<'TOML'
gpus        = "1"
time        = "1min"
warning     = "0s"
time_factor = 3.0
setup       = [". ./slow.sh"]
TOML
echo 'if [ "$SLURM_ARRAY_TASK_ID" = 0 ] && [ "$1" = 1 ]; then sleep 600; fi' >slow.sh
slow() { runner "${named[@]}" --set n=256 --set block=64,128 --name slow "$@"; }
JOB=target/jobs/slow
slow --allow-host-code
await 240 is_empty
forget && fails 1 runner status "$JOB" | tee said
has said "reached its time limit"
slow --extra=--hold | tee said
[ "$(squeue --noheader --format='%l' --jobs="$(arrays said)")" = 3:00 ] || fail "the time limit has not grown"
scontrol release "$(arrays said)"
await 120 is_empty
forget && runner status "$JOB"

echo "# a narrowed job keeps the report of the whole one"
rm cluster.toml && rm -rf target/reports
"$RUNNER" run experiments/scale.toml --backend sim --quiet
cp -r reports/scale/simulated-h100 before
JOB=target/jobs/part
runner "${named[@]}" --name part --filter 'n == 256'
await 120 is_empty
for file in report.md records.jsonl results.csv environment.json; do
    cmp "before/$file" "reports/scale/simulated-h100/$file" || fail "$file of the whole report has changed"
done
[ -e target/reports/scale/simulated-h100-part/report.md ] || fail "the narrowed job has no report"
echo "the narrowed job has a report of its own, and the whole one is as before"
