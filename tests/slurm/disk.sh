#!/usr/bin/env bash
# The job's disk is full while tasks run: no node is blamed, no attempt is used up, and status works. Once space is free
# again, the same command runs what is missing.
. "$(dirname "$0")/common.sh"
mkdir small && mount -t tmpfs -o size=200m tmpfs small
small=$PWD/small
trap 'cd / && umount --lazy "$small"' EXIT
cp -r experiments kernels small && cd small
cat >cluster.toml <<'TOML'
gpus  = "1"
setup = [". ./fill.sh"]
TOML
# The tasks of the first submission wait until the disk is full.
echo 'if [ "$1" = 1 ]; then until [ -e full ]; do sleep 0.1; done; fi' >fill.sh
named=(submit experiments/scale.toml --backend sim --set n=256,512 --min-task-time 0s --name scale)
"$RUNNER" run experiments/scale.toml --backend sim --set n=256,512 --out ../alone --quiet
runner "${named[@]}" --allow-host-code | tee ../said
touch full && { head -c 1G /dev/zero >filler 2>/dev/null || true; }
await 120 is_empty
forget
fails 1 runner status "$JOB" | tee ../said
has ../said "8 failed"
! grep -h requeued "$JOB"/tasks/* || fail "a try was used up"
rm filler
forget
runner "${named[@]}" | tee ../said
await 120 is_empty
forget && runner status "$JOB" | tee ../said
has ../said "8 shards: 8 done"
cd .. && same_report small/target/reports -scale
