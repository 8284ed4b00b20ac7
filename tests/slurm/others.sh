#!/usr/bin/env bash
# Scripts for other schedulers, checked with available parsers: Slurm's own qsub for PBS, and the schema for Kubernetes.
# Each part says if it was not run.
. "$(dirname "$0")/common.sh"
submit() { runner submit experiments/scale.toml --backend sim --set n=256,512 --min-task-time 0s "$@"; }
: >cluster.toml

if ! command -v qsub >/dev/null && ! apt-get install -y --no-install-recommends slurm-wlm-torque >/dev/null 2>&1; then
    echo "# PBS: not run, there is no qsub"
else
    # Slurm's qsub is not PBS. It reads the options, but its tasks have no PBS_ARRAY_INDEX and share one log.
    echo "# PBS: Slurm's qsub reads the script"
    JOB=target/jobs/pbs
    submit --name pbs --scheduler pbs --partition gpu --memory 500M --throttle 2 --time 70min --extra=-h | tee said
    bash -euxc "$(grep '^qsub ' said)"
    squeue --noheader --array --format='%K %P %l %m %j' | tee queued
    for element in 0 1 2 3 4 5 6 7; do has queued "$element gpu 1:10:00 500M runner-pbs"; done
    scancel --me
fi

if ! { python3 -m venv checker && checker/bin/python -m pip install --quiet kubernetes-validate==1.37.0; } >/dev/null 2>&1; then
    echo "# Kubernetes: not checked, its schema cannot be installed"
else
    echo "# Kubernetes: the schema of 1.31, and no other key"
    printf 'image = "runner:1"\nclaim = "shared"\nmount = "/tmp"\n' >cluster.toml
    for more in "" "--gpus 1" "--cpus 2 --memory 4G --throttle 3 --requeues 5 --time 2h"; do
        # shellcheck disable=SC2086
        submit --name k8s --scheduler kubernetes $more --allow-host-code | tee said
        checker/bin/kubernetes-validate --strict --kubernetes-version 1.31 target/jobs/k8s/task-1-0.json
        rm -rf target/jobs/k8s
    done
fi
