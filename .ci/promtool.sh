#!/bin/sh
# Builds promtool, which checks and unit-tests the alert rules in deploy/prometheus, from its Go module into
# .cache/promtool/VERSION/promtool.
#
# Usage: .ci/promtool.sh
set -eu

name=promtool version=0.315.0

build() {
	# The module replaces others, so it cannot be installed by name; a module of its own requires it. Service discovery, which rules do
	# not need, brings the clients of all clouds: it is left out.
	go mod init promtool
	go get "github.com/prometheus/prometheus/cmd/promtool@v$version"
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -tags remove_all_sd -ldflags '-s -w' \
		-o promtool github.com/prometheus/prometheus/cmd/promtool
}

. "$(dirname "$0")/built.sh"
