#!/usr/bin/env bash
# Two users of one job: one submits it, the other checks on it while its tasks wait and run, and resubmits what has failed.
. "$(dirname "$0")/common.sh"
useradd --create-home rig-ann 2>/dev/null || true
useradd --create-home rig-ben 2>/dev/null || true
trap '{ userdel --remove rig-ann; userdel --remove rig-ben; } 2>/dev/null' EXIT
groupadd --force rig && usermod --append --groups rig rig-ann && usermod --append --groups rig rig-ben
# The job's folder, and whatever is created in it, belongs to the group.
chgrp -R rig . && chmod -R g+rwX . && find . -type d -exec chmod g+s {} +
install -m 755 "$RUNNER" "$RIG/runner" && RUNNER=$RIG/runner
as() {
    local user=$1
    shift
    runuser --user "$user" -- env HOME="/home/$user" RUNNER_CACHE="/home/$user/runner" XDG_CONFIG_HOME="/home/$user" \
        bash -c 'umask 002; exec "$@"' bash "$@" 2>&1
}
# Ann has the compiler, Ben does not.
mkdir /home/rig-ann/runner && cp -r "$SHARED_CACHE/toolkit" /home/rig-ann/runner
chown -R rig-ann /home/rig-ann/runner && chmod -R go=rX /home/rig-ann
named=(submit experiments/scale.toml --backend sim --set n=256,512 --min-task-time 0s --name scale)
"$RUNNER" run experiments/scale.toml --backend sim --set n=256,512 --out alone --quiet
cat >cluster.toml <<'TOML'
gpus  = "1"
setup = ["if [ \"$SLURM_ARRAY_TASK_ID\" = 5 ] && [ \"$1\" = 1 ]; then exit 7; fi"]
TOML
as rig-ann "$RUNNER" "${named[@]}" --extra=--hold --allow-host-code | tee said
held=$(arrays said)
echo "# Ben sees what waits, and nothing of it counts as lost"
as rig-ben "$RUNNER" status "$JOB" | tee said
has said "8 queued"
fails 3 as rig-ben "$RUNNER" cancel "$JOB" | tee said
scontrol release "$held"
await 120 is_empty
echo "# Ann's task has failed, and Ben sends it again"
forget
fails 1 as rig-ben "$RUNNER" status "$JOB" | tee said
has said "7 done, 1 failed"
echo "# He begins with what she has compiled"
as rig-ben cp -r /home/rig-ann/runner /home/rig-ben && as rig-ben chmod -R go-w /home/rig-ben/runner
compiled() { find /home/rig-ben/runner/code -type f | sort; }
compiled >before && [ -s before ] || fail "Ann has compiled nothing"
as rig-ben "$RUNNER" "${named[@]}" --allow-host-code --offline | tee said
has said "1 shard of 8 in 1 task"
compiled | cmp before - || fail "Ben has compiled what Ann has"
await 120 is_empty
forget
as rig-ann "$RUNNER" status "$JOB" | tee said
has said "8 shards: 8 done"
same_report target/reports -scale
