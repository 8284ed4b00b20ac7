if command -v runner > /dev/null; then exit 0; fi
if [ -z "$RUNNER_SOURCE" ]; then echo "set RUNNER_SOURCE at the top of this file to the URL of runner's repository"; exit 1; fi
cargo install --locked --git "$RUNNER_SOURCE" --rev "$RUNNER_REVISION" runner
