# The output of the job is untrusted data: it is read and never executed. A wrong size, number or file type fails here.
for file in data/number data/comment.md; do
  if [ -L "$file" ] || [ ! -f "$file" ]; then echo "$file is not a regular file"; exit 1; fi
done
if [ "$(wc -c < data/comment.md)" -gt 30000 ]; then echo "data/comment.md is longer than 30000 bytes"; exit 1; fi
number=$(head -c 20 data/number)
if ! [[ $number =~ ^[1-9][0-9]{0,9}$ ]]; then echo "data/number is not a number"; exit 1; fi
