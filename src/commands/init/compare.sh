# Compares all experiments and the committed reports with the base. Results go to target/ci, as text for a comment.
rm -rf target/ci
mkdir -p target/ci/pages
printf '%s\n' "$NUMBER" > target/ci/number
touch target/ci/codes
@changed.sh@
export PATH="$PWD/target/program:$PATH"
# Makes the verdict of a page agree with a job that does not fail because of it.
pass() {
  if [ -f "target/ci/pages/$1.md" ]; then
    sed -i '1s/^## [^ ]* Fails: /## ! Passes, needs a reviewer: /' "target/ci/pages/$1.md"
  fi
}
# Records the outcome of a comparison: its page, its exit code, and its name in the comment.
note() {
  # On the default branch a slowdown is already merged: it is shown, but does not fail the job.
  code=$2
  if [ -z "$NUMBER" ] && { [ "$code" = 4 ] || [ "$code" = 6 ]; }; then
    code=0
    pass "$1"
  fi
  # Wrong results come first, then broken claims, slowdowns, what cannot be compared, and what passes but needs a
  # reviewer. Other codes are faults of the manifest or the machine, and come before all of these.
  case $2 in 0) rank=0 ;; 6) rank=2 ;; 4) rank=3 ;; 5) rank=4 ;; 1) rank=5 ;; *) rank=6 ;; esac
  if [ "$rank" = 0 ] && head -n 1 "target/ci/pages/$1.md" 2> /dev/null | grep -q '^## !'; then rank=1; fi
  printf '%s %s %s %s\n' "$rank" "$code" "$1" "$3" >> target/ci/codes
}
# Compares all manifests below the folder, and names the experiments that only the base has.
if [ -d experiments ] || git rev-parse --quiet --verify "$BASE:experiments" > /dev/null; then
  # The simulator also counts per line, so that the comment names the lines where counts changed.
  lines=
  if [ "$BACKEND" = sim ]; then lines=--lines; fi
  code=0
  runner run experiments --backend "$BACKEND" --against "$BASE" --gate --thorough $lines \
    --progress lines --markdown-limit 15000 --markdown target/ci/pages/experiments.md || code=$?
  # Without manifests on either side there is no page.
  if [ "$code" != 0 ] || [ -f target/ci/pages/experiments.md ]; then note experiments "$code" experiments; fi
fi
# Committed reports must match their records. Those that changed are compared with the base's.
if [ -n "$(find reports \( -name records.jsonl -o -name report.md \) 2> /dev/null | head -n 1)" ]; then
  code=0
  # With --strict, the job also fails for a report that was measured before its sources or its manifest changed.
  runner report --check reports > target/ci/check 2> target/ci/log || code=$?
  cat target/ci/check target/ci/log
  verdict='✓ Passes: what their records make'
  # A report on an earlier state of the sources proves nothing about this change.
  advice=
  if grep -q '^Stale: ' target/ci/check; then
    verdict='! Passes, needs a reviewer: measured before this change'
    advice='To measure again, run `runner run MANIFEST` on the device of each report.'
  fi
  # With --strict, code 6 is for stale reports only.
  if [ "$code" != 0 ] && [ "$code" != 6 ]; then verdict='✗ Fails: not what their records make'; fi
  {
    printf '## %s\n\n' "$verdict"
    if [ -n "$advice" ]; then printf '%s\n\n' "$advice"; fi
    printf '```text\n'
    # Ensures that no name can end the block.
    head -c 3000 target/ci/check | tr -d '`'
    # What cannot be read has no deviations, only an error.
    if [ "$code" != 0 ] && [ "$code" != 6 ]; then head -c 2000 target/ci/log | tr -d '`'; fi
    printf '\n```\n'
  } > target/ci/pages/check.md
  note check "$code" 'committed reports'
  if git rev-parse --quiet --verify "$BASE:reports" > /dev/null && ! git diff --quiet "$BASE" HEAD -- reports; then
    code=0
    runner compare "$BASE:reports" reports --inform driver --markdown-limit 9000 --markdown target/ci/pages/reports.md 2> target/ci/pages/reports.log || code=$?
    cat target/ci/pages/reports.log >&2
    # A different device is not the change's fault; the page says that times are not compared. With a different driver,
    # they are shown but do not fail the job.
    if [ "$code" = 6 ]; then
      code=0
      pass reports
    fi
    note reports "$code" 'committed reports, compared'
  fi
elif git ls-tree -r --name-only "$BASE" -- reports | grep -q 'records\.jsonl$'; then
  printf '## ! Passes, needs a reviewer: all committed reports deleted\n' > target/ci/pages/check.md
  note check 0 'committed reports'
fi
# The comment: worst page first. Its verdict is the job's; the others have only their findings, and are folded if all
# is well. The size limits of the pages leave room for all of them.
LC_ALL=C sort -s -k1,1nr -o target/ci/codes target/ci/codes
first=1
while read -r rank code page name; do
  file=target/ci/pages/$page.md
  verdict=$(sed -n '1s/^## //p' "$file" 2> /dev/null || true)
  finding=$(printf '%s\n' "$verdict" | sed 's/^\([^ ]*\) \(Passes, needs a reviewer\|Passes\|Fails\): /\1 /')
  if [ -z "$verdict" ]; then
    # Only the first page has the verdict of the job.
    lead='### ✗'
    if [ -n "$first" ]; then lead='## ✗ Fails:'; fi
    printf '%s `%s` not compared\n\nExit code %s; the log of the job says why.\n\n' "$lead" "$name" "$code"
    if [ -s "target/ci/pages/$page.log" ]; then
      printf '```text\n%s\n```\n\n' "$(head -c 1000 "target/ci/pages/$page.log" | tr -d '`')"
    fi
  elif [ -n "$first" ]; then
    if [ "$page" = experiments ]; then cat "$file"; else sed "1s/^\(## [^:]*: \)/\1\`$name\`: /" "$file"; fi
    printf '\n\n'
  elif [ "$page" != experiments ] && [ "$rank" = 0 ] && [ "${verdict#✓}" != "$verdict" ]; then
    printf '<details><summary><code>%s</code>: %s</summary>\n\n' "$name" "$finding"
    sed '1d; s/^##/####/' "$file"
    printf '\n\n</details>\n\n'
  else
    printf '### `%s`: %s\n' "$name" "$finding"
    sed '1d; s/^##/###/' "$file"
    printf '\n\n'
  fi
  first=
done < target/ci/codes > target/ci/comment.md
if [ ! -s target/ci/comment.md ]; then
  printf '## ✓ Passes: nothing to compare\n\nThere are no experiments and no committed reports.\n' > target/ci/comment.md
fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat target/ci/comment.md >> "$GITHUB_STEP_SUMMARY"; fi
exit "$(awk '$2 != 0 { print $2; found = 1; exit } END { if (!found) print 0 }' target/ci/codes)"
