#!/usr/bin/env bash
# Runs every fuzz target of the module: for a time each (10s), or for a number of inputs (1000x), which takes the same work on every
# machine. A package is built once for all its targets. A crash leaves its input in testdata/fuzz. Inputs are made smaller for a
# second only, or that alone would take all the time of targets with slow inputs.
set -euo pipefail
cd "$(dirname "$0")/.."
amount=${1:-10s}
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
corpus=$(go env GOCACHE)/fuzz

# over reports whether a run failed by nothing but that its time was over. Before Go 1.27 the fuzzer takes its own deadline
# for a failure when it notices it before its workers do (https://go.dev/issue/75804), more often on a busy machine. What an
# input does wrong is told with the file that the input was written to.
over() {
	! grep -q 'Failing input written to' "$out" && grep -A1 -- '^--- FAIL: ' "$out" | tail -n 1 | grep -qx ' *context deadline exceeded'
}

targets=$(git ls-files '*_test.go' | xargs grep -oE '^func Fuzz[A-Za-z0-9_]+' | sed 's/func //')
for folder in $(sed 's|/[^/]*$||' <<<"$targets" | sort -u); do
	go test -c -fuzz=Fuzz -o "$work/tests" "./$folder"
	package=$(go list "./$folder")
	for target in $(grep "^$folder/[^/]*$" <<<"$targets" | sed 's/.*://'); do
		echo "fuzz $folder $target $amount"
		mkdir -p "$corpus/$package"
		if ! (cd "$folder" && "$work/tests" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$amount" -test.fuzzminimizetime 1s \
			-test.fuzzcachedir "$corpus/$package") >"$out" 2>&1 && ! over; then
			cat "$out"
			failed=1
		fi
	done
done
exit $failed
