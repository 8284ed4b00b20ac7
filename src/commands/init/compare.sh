# Compares every experiment with the base. What is found goes to target/ci, as text for a comment.
rm -rf target/ci
mkdir -p target/ci/pages
printf '%s\n' "$NUMBER" > target/ci/number
count=0
for manifest in experiments/*.toml; do
  # The name of a file may have line ends, quotes and marks of Markdown. What is shown has none, so it may be that of
  # another file, too: pages are named by number as well.
  count=$((count + 1))
  name=${manifest#experiments/}
  name=${name%.toml}
  name=${name//[!A-Za-z0-9._ -]/_}
  page=target/ci/pages/$count-$name.md
  code=0
  runner run "$manifest" --backend "$BACKEND" --against "$BASE" --gate --thorough \
    --progress lines --markdown "$page" || code=$?
  # Wrong results come first, then broken claims, what is slower, what cannot be compared. Other codes are faults of
  # the manifest or the machine, and come before all.
  case $code in 0) rank=0 ;; 6) rank=1 ;; 4) rank=2 ;; 5) rank=3 ;; 1) rank=4 ;; *) rank=5 ;; esac
  printf '%s %s %s %s\n' "$rank" "$code" "$count" "$name" >> target/ci/codes
done
LC_ALL=C sort -k1,1nr -k4 -o target/ci/codes target/ci/codes
# One page of at most 30 KB, the worst first: a comment has room for two of these.
out=target/ci/comment.md
: > "$out"
while read -r rank code count name; do
  page=target/ci/pages/$count-$name.md
  if [ ! -s "$page" ]; then
    printf '### `%s`\n\nNot compared: exit code %s; the log of the job says why.\n\n' "$name" "$code" >> "$out"
  elif [ $(($(wc -c < "$out") + $(wc -c < "$page"))) -gt 28000 ]; then
    printf '### `%s`\n\nExit code %s; the page is in the artifact of the job.\n\n' "$name" "$code" >> "$out"
  elif [ "$rank" = 0 ]; then
    verdict=$(sed -n '1s/^## //p' "$page")
    printf '<details><summary><code>%s</code>: %s</summary>\n\n' "$name" "$verdict" >> "$out"
    sed '1d; s/^##/####/' "$page" >> "$out"
    printf '\n\n</details>\n\n' >> "$out"
  else
    sed "1s/^## /### \`$name\`: /; 2,\$s/^##/###/" "$page" >> "$out"
    printf '\n\n' >> "$out"
  fi
done < target/ci/codes
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat target/ci/comment.md >> "$GITHUB_STEP_SUMMARY"; fi
exit "$(head -n 1 target/ci/codes | cut -d ' ' -f 2)"
