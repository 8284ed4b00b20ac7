# Shared code of the scenarios, which run in a copy of the project, inside the rig.
set -euo pipefail
started=$(date +%s)
export NO_COLOR=1
JOB=target/jobs/scale

fail() {
    echo "FAILED after $(($(date +%s) - started)) s: $*"
    squeue --array --states=all --format='%i %T %r %N' || true
    for log in "$JOB"/logs/*; do echo "== $log" && tail -n 5 "$log"; done
    exit 1
}

# await SECONDS COMMAND…: waits until the command succeeds.
await() {
    local until=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt "$until" ] || fail "waited too long for: $*"
        sleep 0.5
    done
}

# Runs the runner, and prints the command as a user would type it.
runner() {
    echo "\$ runner $*"
    "$RUNNER" "$@" 2>&1
}

queue() { squeue --noheader --array --states=all --format='%i %T %N' "$@"; }
is_state() { queue | grep -qE "^$1 $2( |\$)"; }
# If the controller does not answer, the queue does not count as empty.
is_empty() {
    local left
    left=$(squeue --noheader) && [ -z "$left" ]
}

# Deletes the stored replies of the scheduler. They are reused for a minute, and the scenarios do not wait that long.
forget() { rm -f "$JOB"/scheduler-*.json; }

# Kills the controller, as when its machine fails, and starts it again. The controller keeps new jobs in memory for some
# seconds before it writes them to disk.
stop_controller() { sleep 6 && kill -KILL "$(cat "$RIG/slurmctld.number")"; }
start_controller() {
    setsid slurmctld -D -f "$SLURM_CONF" >>"$RIG/slurmctld.out" 2>&1 &
    echo $! >"$RIG/slurmctld.number"
    disown
    await 30 eval 'timeout 2 scontrol ping | grep -q "is UP"'
}

# Ids of the job's arrays that were submitted to Slurm.
arrays() { sed -n 's/^array \([0-9]*\):.*/\1/p' "$@"; }

# fails CODE COMMAND…: the command must exit with this code.
fails() {
    local code=$1 status=0
    shift
    "$@" || status=$?
    [ "$status" = "$code" ] || fail "exit code $status, not $code: $*"
}

# has FILE TEXT: a line of the file must contain the text.
has() { grep -qF -- "$2" "$1" || fail "no line with: $2"; }

same_report() {
    local file folder=${1:-reports}/scale/simulated-h100${2:-}
    for file in report.md records.jsonl results.csv environment.json; do
        cmp "alone/$file" "$folder/$file" || fail "$file differs from the run in one process"
    done
    echo "the report is byte-identical to that of a run in one process"
}
