#!/bin/sh
# Builds Helm, which renders the chart in deploy/helm for its test, from its Go module into .cache/helm/VERSION/helm.
#
# Usage: .ci/helm.sh
set -eu

name=helm version=3.22.0 probe=version

build() {
	GOBIN=$PWD CGO_ENABLED=0 go install -buildvcs=false -trimpath -ldflags '-s -w' "helm.sh/helm/v3/cmd/helm@v$version"
}

. "$(dirname "$0")/built.sh"
