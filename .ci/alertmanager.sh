#!/bin/sh
# Builds the Alertmanager that the tests of sink/notify/receiver run against, from its Go module into
# .cache/alertmanager/VERSION/alertmanager. Its page is left out: it needs node to be built, and the tests speak to the API.
#
# Usage: .ci/alertmanager.sh
set -eu

name=alertmanager version=0.34.2

build() {
	module=github.com/prometheus/alertmanager@v$version
	go mod download "$module"
	# The module embeds its page, which its source does not hold, so a copy gets an empty one.
	cp -R "$(go env GOMODCACHE)/$module" source
	chmod -R u+w source
	cd source
	mkdir -p ui/app/dist
	echo '<!doctype html><title>no page</title>' >ui/app/dist/index.html
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' -o ../alertmanager ./cmd/alertmanager
}

. "$(dirname "$0")/built.sh"
