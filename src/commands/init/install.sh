@changed.sh@
if [ -z "$RUNNER_URL" ] || [ -z "$RUNNER_SHA256" ]; then
  echo "set RUNNER_URL at the top of this file to the URL of the runner binary, and RUNNER_SHA256 to its hash"
  exit 1
fi
# Each job downloads the prebuilt binary, so that no cache can substitute another one.
program=target/program/runner
mkdir -p target/program
header=()
# It may be in a private package registry of this GitLab.
case "$RUNNER_URL" in "${CI_API_V4_URL:-none}"/*) header=(--header "JOB-TOKEN: $CI_JOB_TOKEN") ;; esac
curl --fail --silent --show-error --location --retry 3 "${header[@]}" --output "$program" "$RUNNER_URL"
if ! printf '%s  %s\n' "$RUNNER_SHA256" "$program" | sha256sum --check --status; then
  echo "RUNNER_SHA256 does not match the file at RUNNER_URL: $(sha256sum "$program")"
  rm -f "$program"
  exit 1
fi
chmod +x "$program"
"$program" --version
