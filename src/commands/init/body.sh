# The comment has a section per backend. The other one stays as it is; lines that could pass for a marker are dropped.
section() {
  sed -n "/^<!-- runner:$1 -->\$/,/^<!-- runner:$1 end -->\$/p" old.md
}
{
  echo '<!-- runner -->'
  for kind in gpu simulator; do
    if [ "$kind" = "$KIND" ]; then
      if [ "$kind" = gpu ]; then title='On the GPU'; else title='On the simulator'; fi
      printf '<!-- runner:%s -->\n## %s\n\nCommit %s compared with its base: [job](%s).\n\n' \
        "$kind" "$title" "${HEAD_SHA:0:7}" "$JOB_URL"
      tr -d '\r' < data/comment.md | sed '/^[[:space:]]*<!-- runner/d'
      printf '\n<!-- runner:%s end -->\n' "$kind"
    else
      section "$kind"
    fi
  done
} > body.md
