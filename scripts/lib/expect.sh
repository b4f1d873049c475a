# shellcheck shell=bash
# Cases of commands and what they print, for scripts that end with "N passed, N failed, N skipped". WORK is a folder for the outputs.

passed=0
failed=0
skipped=0

# skip NAME WHY
skip() {
  skipped=$((skipped + 1))
  echo "SKIP $1: $2"
}

# expect NAME CODE PATTERN... -- COMMAND...: the command ends with this code within EXPECT_LIMIT seconds, and every pattern
# is in what it prints.
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
  ((status == code)) || why+=("it ended with $status, not $code")
  for pattern in "${patterns[@]}"; do
    grep -qE -e "$pattern" "$output" || why+=("nothing in it matches '$pattern'")
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

# run_cases NAME...: those, or every function of the script whose name has three words or more, in the order of the file. The
# last line says how many passed; false where one failed.
run_cases() {
  local cases name
  mapfile -t cases < <(grep -oE '^[a-z0-9]+(_[a-z0-9]+){2,}\(\)' "$0" | tr -d '()')
  for name in "${@:-${cases[@]}}"; do "$name"; done
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0))
}
