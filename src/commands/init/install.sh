@changed.sh@
if [ -z "$RUNNER_URL" ] || [ -z "$RUNNER_SHA256" ]; then
  echo "set RUNNER_URL at the top of this file to where the program is published, and RUNNER_SHA256 to its hash"
  exit 1
fi
# The program comes built, and is downloaded by each job: no cache can bring another.
program=target/program/runner
mkdir -p target/program
header=()
# In a package registry of this GitLab, which may be private.
case "$RUNNER_URL" in "${CI_API_V4_URL:-none}"/*) header=(--header "JOB-TOKEN: $CI_JOB_TOKEN") ;; esac
curl --fail --silent --show-error --location --retry 3 "${header[@]}" --output "$program" "$RUNNER_URL"
if ! printf '%s  %s\n' "$RUNNER_SHA256" "$program" | sha256sum --check --status; then
  echo "what is at RUNNER_URL has another hash than RUNNER_SHA256: $(sha256sum "$program")"
  rm -f "$program"
  exit 1
fi
chmod +x "$program"
"$program" --version
