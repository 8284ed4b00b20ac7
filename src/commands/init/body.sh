# The comment has a section per backend. The other one stays as it is; lines that could pass for a marker are dropped.
section() {
  sed -n "/^<!-- runner:$1 -->\$/,/^<!-- runner:$1 end -->\$/p" old.md
}
# A blank without width.
gap=$(printf '\342\200\213')
{
  echo '<!-- runner -->'
  for kind in gpu simulator; do
    if [ "$kind" = "$KIND" ]; then
      if [ "$kind" = gpu ]; then title='On the GPU'; else title='On the simulator'; fi
      printf '<!-- runner:%s -->\n## %s\n\nCommit %s compared with its base: [job](%s).\n\n' \
        "$kind" "$title" "${HEAD_SHA:0:7}" "$JOB_URL"
      # A name in it mentions no person, and no line is a command of the service.
      tr -d '\r' < data/comment.md |
        sed -e '/^[[:space:]]*<!-- runner/d' -e "s/@/@$gap/g" -e 's#^\([[:space:]]*\)/#\1\\/#'
      printf '\n<!-- runner:%s end -->\n' "$kind"
    else
      section "$kind"
    fi
  done
} > body.md
