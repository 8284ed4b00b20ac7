#!/usr/bin/env bash
# Runs the commands of docs/how-to/cluster.md in order, from the installation to the nightly run, as a reader would type
# them. There are two differences: options that the page itself names for machines without a GPU, and the program, which
# is installed from a file instead of its source.
. "$(dirname "$0")/common.sh"
page=$(dirname "$0")/../../docs/how-to/cluster.md
export RUNNER_CACHE=${RUNNER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/runner} HOME=$RIG/home
mkdir -p blocks "$HOME/.cargo/bin"
export PATH=$HOME/.cargo/bin:$PATH

# Writes each code block of the page to a file: 01.sh, 02.sh, 03.toml, …
awk '/^```/ { if (open) { open = 0 } else { open = 1; file = sprintf("blocks/%02d.%s", ++n, substr($0, 4)) }; next }
     open { print > file }' "$page"
grep -qF 'Without a GPU anywhere, use `--backend sim` in place of `--device-profile h100.json`' <(tr '\n' ' ' <"$page") ||
    fail "the page does not say what to do without a GPU"
sed -i 's/--device-profile h100.json/--backend sim/' blocks/*.sh

# Runs one line of the page. `NAME` stands for the submitted job, and `TASK` for one of its tasks.
follow() {
    local line=${1//NAME/${name:-}}
    if [[ $line == *TASK* ]]; then line=${line//TASK/$(find "$JOB/logs" -name 'task-*.out' -printf '%f\n' | sed -n '1s/^task-\(.*\)\.out$/\1/p')}; fi
    echo "\$ $line"
    case $line in
        "cargo install --locked --path .") install "$RUNNER" "$HOME/.cargo/bin/runner" ;;
        # The node of the rig has no GPU, which is what the command says then.
        "srun "*) { bash -euc "$line" 2>&1 || true; } | tee said && grep -q "libcuda.so.1 not found" said ;;
        *) bash -euc "$line" 2>&1 | tee said ;;
    esac
}

# The nightly script works in ~/kernels, a clone with the reports of the previous day.
nightly() {
    cp "$1" "$HOME/nightly.sh" && chmod +x "$HOME/nightly.sh"
    git config --global user.name Night && git config --global user.email night@example.org
    git config --global init.defaultBranch main
    git init --quiet --bare "$HOME/remote.git"
    git clone --quiet "$HOME/remote.git" "$HOME/kernels" 2>/dev/null
    cp -r experiments kernels reports cluster.toml "$HOME/kernels"
    echo target >"$HOME/kernels/.gitignore"
    (cd "$HOME/kernels" && git add . && git commit --quiet -m "The day before" && git push --quiet origin main &&
        git switch --quiet --create nightly && git push --quiet --set-upstream origin nightly)
    echo "\$ ~/nightly.sh" && "$HOME/nightly.sh" 2>&1 | tee said
    (cd "$HOME/kernels" && git status --porcelain --branch | grep -q '^## nightly\.\.\.origin/nightly$') ||
        fail "the night is not on its branch"
    grep -q "80 cases: 80 same" said || fail "the night is not compared with the day before"
}

"$RUNNER" run experiments/scale.toml --backend sim --out alone --quiet
name=
for block in blocks/*; do
    case $block in
        *.toml) cp "$block" cluster.toml ;;
        *.sh)
            if [ "$(head -c 2 "$block")" = '#!' ]; then
                nightly "$block"
                continue
            fi
            while read -r line; do
                # The page collects after all tasks have ended.
                [[ $line != "runner collect"* ]] || await 120 is_empty
                follow "$line"
                # The next night begins after the reruns have ended.
                [[ $line != *"--rerun"* ]] || await 120 is_empty
                [[ $line != "runner submit"* ]] || name=$(sed -n 's|^runner status target/jobs/||p' said)
                if [[ $line == "runner submit"* ]]; then JOB=target/jobs/${name:?}; fi
            done <"$block"
            ;;
    esac
done
for command in "cargo install" "srun " "runner submit" "runner status" "runner collect" "runner logs" "runner cancel"; do
    grep -qhF "$command" blocks/*.sh || fail "the page has no longer a line with: $command"
done
same_report
