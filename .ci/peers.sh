#!/bin/sh
# Installs other collectors, which hopscope-bench peers measures beside ours, as .cache/peers/NAME or as packages of Debian:
#
#   goflow2, telegraf     from their Go modules; of Telegraf the plugins that are measured alone
#   nfdump, pmacct        packages, with softflowd, which sends
#
# vflow and akvorado are in no registry: where .cache/peers has them, they are measured, too.
#
# A program that is there already is kept.
#
# Usage: .ci/peers.sh
set -eu

. "$(dirname "$0")/cache.sh"
root=$PWD cache=$PWD/.cache/peers
log() { printf 'peers: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }
mkdir -p "$cache"

have nfcapd && have sfcapd && have nfacctd && have softflowd || "$root/.ci/apt.sh" nfdump nfdump-sflow pmacct softflowd
export CGO_ENABLED=0 GOFLAGS=-trimpath
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ ! -x "$cache/goflow2" ]; then
	log "building goflow2"
	GOBIN=$cache go install -ldflags '-s -w' github.com/netsampler/goflow2/v2/cmd/goflow2@v2.2.6
fi
if [ ! -x "$cache/telegraf" ]; then
	log "building Telegraf, which takes some minutes"
	(
		cd "$work"
		go mod init peer
		go get github.com/influxdata/telegraf/cmd/telegraf@v1.37.2
		go build -mod=mod -tags custom,inputs.netflow,outputs.discard,outputs.file,outputs.kafka,serializers.influx -ldflags '-s -w' -o "$cache/telegraf" \
			github.com/influxdata/telegraf/cmd/telegraf
	)
fi
log "$(ls "$cache" | tr '\n' ' ')"
