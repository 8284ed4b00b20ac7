#!/usr/bin/env bash
# Runs the scenarios that take too long for every build: `tests/slurm/long.sh RUNNER [SCENARIO…]`.
#
# Exits with 77 if Slurm cannot be installed. Needs root for the daemons, two users and a small file system.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
runner=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- users disk nodes forgotten forgotten-with-accounts others many
work=$(mktemp -d /tmp/slurm-long.XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
SHARED_CACHE=${RUNNER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/runner}
export SHARED_CACHE RUNNER=$runner
failed=0
for name in "$@"; do
    cp -r "$here/project" "$work/$name"
    cd "$work/$name"
    status=0
    case $name in
        nodes) RIG_NODES=5 "$here/rig.sh" "$here/nodes.sh" ;;
        forgotten) RIG_MIN_JOB_AGE=5 "$here/rig.sh" "$here/forgotten.sh" ;;
        forgotten-with-accounts) RIG_MIN_JOB_AGE=5 "$here/rig.sh" --accounting "$here/forgotten.sh" accounts ;;
        # Slurm allows 10,000 jobs by default. Nodes get no answer while a new controller reads the jobs.
        many) RIG_CONF=MaxJobCount=20000 RIG_SLURMD_TIMEOUT=60 "$here/rig.sh" "$here/many.sh" ;;
        *) "$here/rig.sh" "$here/$name.sh" ;;
    esac >"$work/$name.out" 2>&1 || status=$?
    if [ "$status" = 0 ]; then
        echo "slurm $name: ok, $(tail -n 1 "$work/$name.out")"
    elif [ "$status" = 77 ]; then
        cat "$work/$name.out" && exit 77
    else
        failed=1
        echo "slurm $name: FAILED" && cat "$work/$name.out"
    fi
done
exit "$failed"
