#!/usr/bin/env bash
# Tasks with too little memory, of which the system kills the workers and lets the task live, as under cgroups. A stand-in
# kills them, because the kernel of this machine may not allow limits. They are sent again with more, and end.
. "$(dirname "$0")/common.sh"
"$RUNNER" run experiments/scale.toml --backend sim --set n=256,512 --out alone --quiet
cat >cluster.toml <<'TOML'
memory        = "16M"
memory_factor = 4.0
setup         = [". ./memory.sh"]
TOML
cat >memory.sh <<'SH'
if [ "$SLURM_MEM_PER_NODE" -le 16 ]; then
    (
        while kill -0 $$ 2>/dev/null; do
            for parent in $$ $(pgrep -P $$); do kill -KILL $(pgrep -P "$parent" -f __worker) 2>/dev/null; done
            sleep 0.01
        done
    ) &
fi
SH
# No worker ends before it is killed.
cp kernels/scale.cu as-it-was.cu
sed -i 's/output\[i\] = 2.0f \* input\[i\]/for (int k = 0; k < 100000000; ++k) output[i] += 1.0f/' kernels/scale.cu
submit() { runner submit experiments/scale.toml --backend sim --set n=256,512 --min-task-time 0s --name scale "$@"; }
submit --allow-host-code | tee said
await 120 is_empty
forget && fails 1 runner status "$JOB" | tee said
has said "8 shards: 8 failed"
has said "its worker was killed, which the system does when memory runs out"
! grep -i crash target/reports/scale/simulated-h100-scale/report.md || fail "cases count as crashed"
cp as-it-was.cu kernels/scale.cu
submit --wait | tee said
has said "8 shards in 8 tasks"
has said "8 shards: 8 done"
same_report target/reports -scale
