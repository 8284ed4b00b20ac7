#!/usr/bin/env bash
# Runs the scenarios on a real Slurm, with the simulator: `tests/slurm/run.sh RUNNER [TRANSCRIPT]`.
#
# Writes the transcript of the first scenario to TRANSCRIPT, if given. Exits with 77 if Slurm cannot be installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
runner=$(realpath "$1")
transcript=$(realpath -m "${2:-/dev/null}")
work=$(mktemp -d /tmp/slurm-scenarios.XXXXXX)
trap 'rm -rf "$work"' EXIT

# Installs the packages now, so that two rigs do not run the package manager at the same time.
status=0
"$here/rig.sh" --accounting true || status=$?
[ "$status" = 0 ] || exit "$status"

scenario() {
    local name=$1
    shift
    cp -r "$here/project" "$work/$name"
    (cd "$work/$name" && RUNNER=$runner TRANSCRIPT=$transcript exec "$@") >"$work/$name.out" 2>&1
}
# Two rigs at a time; more would disturb each other.
scenario faults "$here/rig.sh" "$here/faults.sh" &
faults=$!
RIG_MAX_ARRAY=16 scenario split "$here/rig.sh" --accounting "$here/split.sh" &
split=$!

failed=0
for part in split:$split guide sending faults:$faults cancels memory answers; do
    name=${part%:*}
    if [ "$part" = "$name" ]; then
        scenario "$name" "$here/rig.sh" "$here/$name.sh" &
        part=$name:$!
    fi
    if wait "${part#*:}"; then
        echo "slurm $name: ok, $(tail -n 1 "$work/$name.out")"
    else
        failed=1
        echo "slurm $name: FAILED" && cat "$work/$name.out"
    fi
done
exit "$failed"
