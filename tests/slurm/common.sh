# What the scenarios share. They run in a copy of the project, inside the rig.
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

# await SECONDS COMMAND…: until the command succeeds.
await() {
    local until=$(($(date +%s) + $1))
    shift
    until "$@"; do
        [ "$(date +%s)" -lt "$until" ] || fail "waited too long for: $*"
        sleep 0.5
    done
}

# The runner as a user types it, with what it prints.
runner() {
    echo "\$ runner $*"
    "$RUNNER" "$@" 2>&1
}

queue() { squeue --noheader --array --states=all --format='%i %T %N' "$@"; }
is_state() { queue | grep -qE "^$1 $2( |\$)"; }
is_empty() { [ -z "$(squeue --noheader)" ]; }

# The scheduler was asked less than a minute ago; the scenarios do not wait that long.
forget() { rm -f "$JOB"/scheduler-*.json; }

same_report() {
    local file
    for file in report.md records.jsonl results.csv environment.json; do
        cmp "alone/$file" "reports/scale/simulated-h100/$file" || fail "$file differs from the run in one process"
    done
    echo "the report is byte-identical to that of a run in one process"
}
