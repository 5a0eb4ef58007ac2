#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time each. A crash leaves its input in testdata/fuzz.
# Inputs are made smaller for a second only, or that alone would take all the time of targets with slow inputs.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# over reports whether a run failed by nothing but that its time was over. Before Go 1.27 the fuzzer takes its own deadline
# for a failure when it notices it before its workers do (https://go.dev/issue/75804), more often on a busy machine. What an
# input does wrong is told with the file that the input was written to.
over() {
	! grep -q 'Failing input written to' "$out" && grep -A1 -- '^--- FAIL: ' "$out" | tail -n 1 | grep -qx ' *context deadline exceeded'
}

while IFS=: read -r file target; do
	echo "fuzz ${file%/*} $target $time"
	if ! go test "./${file%/*}" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1s >"$out" 2>&1 && ! over; then
		cat "$out"
		failed=1
	fi
done < <(git ls-files '*_test.go' | xargs grep -oE '^func Fuzz[A-Za-z0-9_]+' | sed 's/func //')
exit $failed
