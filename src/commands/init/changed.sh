# On the default branch, the base is the commit before the push. A new branch has none, and after a forced push it may be
# missing: the base is then the parent.
if [ -z "$NUMBER" ] && ! git cat-file -e "$BASE^{commit}" 2> /dev/null; then BASE=HEAD^1; fi
# If nothing relevant changed, the job succeeds at once: a required check has to end.
if git diff --quiet "$BASE" HEAD -- $RUNNER_PATHS; then
  mkdir -p target/ci
  printf '%s\n' "$NUMBER" > target/ci/number
  printf '## ✓ Passes: nothing to compare\n\nNo file in %s changed.\n' "$RUNNER_PATHS" > target/ci/comment.md
  echo "no file in $RUNNER_PATHS changed"
  exit 0
fi
