# Compares every experiment with the base. What is found goes to target/ci, as text for a comment.
rm -rf target/ci
mkdir -p target/ci/pages
printf '%s\n' "$NUMBER" > target/ci/number
count=0
# Notes how the comparison ended whose page has this number: its exit code, and what it is called in the comment.
note() {
  # Wrong results come first, then broken claims, what is slower, what cannot be compared. Other codes are faults of
  # the manifest or the machine, and come before all.
  case $1 in 0) rank=0 ;; 6) rank=1 ;; 4) rank=2 ;; 5) rank=3 ;; 1) rank=4 ;; *) rank=5 ;; esac
  printf '%s %s %s %s\n' "$rank" "$1" "$count" "$2" >> target/ci/codes
}
# Committed reports must be what their records make. Those that changed are compared with the base's.
if [ -n "$(find reports -name records.jsonl 2> /dev/null | head -n 1)" ]; then
  count=$((count + 1))
  code=0
  # With --strict, the job also fails for a report that was measured before its sources or its manifest changed.
  runner report --check reports > target/ci/check || code=$?
  cat target/ci/check
  if [ "$code" = 0 ]; then verdict='✓ What their records make'; else verdict='✗ Not what their records make'; fi
  # A report of an earlier state of the sources is no proof of what this change does.
  if grep -q '^Stale: ' target/ci/check; then verdict="$verdict; some are stale"; fi
  {
    printf '## %s\n\n```text\n' "$verdict"
    # Nothing in a name ends the block.
    head -c 4000 target/ci/check | tr -d '`'
    printf '\n```\n'
  } > "target/ci/pages/$count.md"
  note "$code" 'committed reports'
  if git rev-parse --quiet --verify "$BASE:reports" > /dev/null && ! git diff --quiet "$BASE" HEAD -- reports; then
    count=$((count + 1))
    code=0
    runner compare "$BASE:reports" reports --inform driver --markdown-limit 12000 --markdown "target/ci/pages/$count.md" || code=$?
    # Another device is no fault of the change; the page says that times are not compared. Those of another driver are
    # shown, and fail nothing.
    if [ "$code" = 6 ]; then code=0; fi
    note "$code" 'committed reports, compared'
  fi
fi
# The simulator also counts by lines, so that the comment names those where counts changed.
lines=
if [ "$BACKEND" = sim ]; then lines=--lines; fi
for manifest in experiments/*.toml; do
  # The name of a file may have line ends, quotes and marks of Markdown. What is shown has none, so it may be that of
  # another file, too: pages are named by number.
  count=$((count + 1))
  name=${manifest#experiments/}
  name=${name%.toml}
  name=${name//[!A-Za-z0-9._ -]/_}
  code=0
  runner run "$manifest" --backend "$BACKEND" --against "$BASE" --gate --thorough $lines \
    --progress lines --markdown-limit 12000 --markdown "target/ci/pages/$count.md" || code=$?
  note "$code" "${name:0:80}"
done
LC_ALL=C sort -k1,1nr -k4 -o target/ci/codes target/ci/codes
# One page of at most 28 KB, the worst first: a comment has room for two of these. What has no room for its page keeps
# its verdict.
out=target/ci/comment.md
: > "$out"
fits() { [ $(($(wc -c < "$out") + $(wc -c < target/ci/piece) + $1)) -le 28000 ]; }
left=$(wc -l < target/ci/codes)
more=0
while read -r rank code count name; do
  left=$((left - 1))
  page=target/ci/pages/$count.md
  verdict=$(sed -n '1s/^## //p' "$page" 2> /dev/null || true)
  if [ -z "$verdict" ]; then
    printf '### `%s`\n\nNot compared: exit code %s; the log of the job says why.\n\n' "$name" "$code" > target/ci/piece
  elif [ "$rank" = 0 ]; then
    {
      printf '<details><summary><code>%s</code>: %s</summary>\n\n' "$name" "$verdict"
      sed '1d; s/^##/####/' "$page"
      printf '\n\n</details>\n\n'
    } > target/ci/piece
  else
    { sed "1s/^## /### \`$name\`: /; 2,\$s/^##/###/" "$page"; printf '\n\n'; } > target/ci/piece
  fi
  # Each of the others needs room for its verdict.
  reserved=$((left * 300))
  if [ "$reserved" -gt 14000 ]; then reserved=14000; fi
  if fits "$reserved"; then cat target/ci/piece >> "$out"; continue; fi
  printf -- '- `%s`: %s (exit code %s; the page is in the artifact of the job)\n' "$name" "${verdict:-not compared}" "$code" \
    > target/ci/piece
  if fits 300; then cat target/ci/piece >> "$out"; else more=$((more + 1)); fi
done < target/ci/codes
if [ "$more" -gt 0 ]; then printf '\n%s more, none of them worse, are in the artifact of the job.\n' "$more" >> "$out"; fi
rm -f target/ci/piece
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat target/ci/comment.md >> "$GITHUB_STEP_SUMMARY"; fi
exit "$(head -n 1 target/ci/codes | cut -d ' ' -f 2)"
