@changed.sh@
if [ -z "$RUNNER_SOURCE" ] || [ -z "$RUNNER_REVISION" ]; then
  echo "set RUNNER_SOURCE at the top of this file to the URL of runner's repository, RUNNER_REVISION to a commit of it"
  exit 1
fi
if command -v runner > /dev/null && [[ $(runner --version) == *"(${RUNNER_REVISION:0:12}, "* ]]; then exit 0; fi
cargo install --locked --force --git "$RUNNER_SOURCE" --rev "$RUNNER_REVISION" runner
