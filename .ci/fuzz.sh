#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each. A crash leaves its input in testdata/fuzz.
# Inputs are made smaller for a second only, or that alone would take all the time of targets with slow inputs.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
failed=0
while IFS=: read -r file target; do
	echo "fuzz ${file%/*} $target $time"
	go test "./${file%/*}" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1s >/tmp/fuzz.$$ 2>&1 || { cat /tmp/fuzz.$$; failed=1; }
done < <(git ls-files '*_test.go' | xargs grep -oE '^func Fuzz[A-Za-z0-9_]+' | sed 's/func //')
rm -f /tmp/fuzz.$$
exit $failed
