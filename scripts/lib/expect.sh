# shellcheck shell=bash
# Test cases that run commands and check their output, for scripts that print "N passed, N failed, N skipped" at the end.
# WORK is a directory for the outputs.

passed=0
failed=0
skipped=0

# skip NAME WHY
skip() {
  skipped=$((skipped + 1))
  echo "SKIP $1: $2"
}

# expect NAME CODE PATTERN... -- COMMAND...: the command must exit with this code within EXPECT_LIMIT seconds, and its output
# must match every pattern.
expect() {
  local name=$1 code=$2 patterns=() pattern why=() start=$SECONDS status
  shift 2
  while [[ $1 != -- ]]; do
    patterns+=("$1")
    shift
  done
  shift
  local output=$WORK/$name.txt
  timeout --kill-after=10 "$EXPECT_LIMIT" "$@" >"$output" 2>&1 </dev/null
  status=$?
  ((status == code)) || why+=("exited with $status, expected $code")
  for pattern in "${patterns[@]}"; do
    grep -qE -e "$pattern" "$output" || why+=("no output matches '$pattern'")
  done
  if ((${#why[@]} == 0)); then
    passed=$((passed + 1))
    echo "PASS $name ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    echo "FAIL $name ($((SECONDS - start)) s): $*"
    printf '     %s\n' "${why[@]}"
    tail -n 60 "$output" | sed 's/^/     | /'
  fi
}

# run_cases NAME...: runs these cases, or every function of the script whose name has three words or more, in file order. The
# last line is the count. Returns false if a case failed.
run_cases() {
  local cases name
  mapfile -t cases < <(grep -oE '^[a-z0-9]+(_[a-z0-9]+){2,}\(\)' "$0" | tr -d '()')
  for name in "${@:-${cases[@]}}"; do "$name"; done
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0))
}
