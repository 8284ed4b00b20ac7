# The comment has one section per backend. The other section is kept; lines that look like a marker are dropped.
section() {
  sed -n "/^<!-- runner:$1 -->\$/,/^<!-- runner:$1 end -->\$/p" old.md
}
# Zero-width space.
gap=$(printf '\342\200\213')
{
  echo '<!-- runner -->'
  for kind in gpu simulator; do
    if [ "$kind" = "$KIND" ]; then
      if [ "$kind" = gpu ]; then title='On the GPU'; else title='On the simulator'; fi
      printf '<!-- runner:%s -->\n## %s\n\nCommit %s compared with its base: [job](%s).\n\n' \
        "$kind" "$title" "${HEAD_SHA:0:7}" "$JOB_URL"
      # Prevents mentions of people and commands to the service.
      tr -d '\r' < data/comment.md |
        sed -e '/^[[:space:]]*<!-- runner/d' -e "s/@/@$gap/g" -e 's#^\([[:space:]]*\)/#\1\\/#'
      printf '\n<!-- runner:%s end -->\n' "$kind"
    else
      section "$kind"
    fi
  done
} > body.md
