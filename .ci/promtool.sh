#!/bin/sh
# Builds promtool, which checks and unit-tests the alert rules in deploy/prometheus, from its Go module into
# .cache/promtool/VERSION/promtool. One that is there already is kept.
#
# Usage: .ci/promtool.sh
set -eu

version=0.315.0
cd "$(dirname "$0")/.."
cache=$PWD/.cache/promtool
log() { printf 'promtool: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# One builder at a time: a second one waits and then finds everything there.
mkdir -p "$cache"
if have flock && [ "${PROMTOOL_LOCKED:-}" != 1 ]; then
	PROMTOOL_LOCKED=1 exec flock "$cache/lock" "$0" "$@"
fi

if [ -x "$cache/$version/promtool" ]; then
	log "$version is there"
	exit 0
fi
have go || { log "Go is missing: install it and run again"; exit 1; }

work=$cache/build-$version
rm -rf "$work"
mkdir -p "$work" "$cache/$version"
start=$(date +%s)
log "building $version, which takes some minutes (output in .cache/promtool/build-$version.log)"
set +e # a condition around the subshell would disarm its own -e
(
	set -e
	cd "$work"
	# The module replaces others, so it cannot be installed by name; a module of its own requires it.
	go mod init promtool
	go get "github.com/prometheus/prometheus/cmd/promtool@v$version"
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' \
		-o promtool github.com/prometheus/prometheus/cmd/promtool
) >"$cache/build-$version.log" 2>&1
built=$?
set -e
if [ $built -ne 0 ]; then
	tail -n 30 "$cache/build-$version.log" >&2
	log "$version did not build"
	exit 1
fi
"$work/promtool" --version >&2
mv "$work/promtool" "$cache/$version/promtool"
rm -rf "$work"
log "built $version in $(($(date +%s) - start)) s"
