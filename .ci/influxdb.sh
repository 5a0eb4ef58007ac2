#!/bin/sh
# Builds the InfluxDB servers that the tests of the stores run against, each from its Go module:
#
#   .cache/influxdb/1.8.10/influxd   the last of the old line, Go alone: a minute
#   .cache/influxdb/2.7.12/influxd   tokens, organisations, Flux; its Flux parser is Rust, so it needs cargo and clang: ten minutes
#
# A server that is there already is kept.
#
# Usage: .ci/influxdb.sh VERSION...
set -eu

. "$(dirname "$0")/cache.sh"
root=$PWD cache=$PWD/.cache/influxdb
log() { printf 'influxdb: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# One builder at a time: a second one waits and then finds everything there.
mkdir -p "$cache"
if have flock && [ "${INFLUXDB_LOCKED:-}" != 1 ]; then
	INFLUXDB_LOCKED=1 exec flock "$cache/lock" "$0" "$@"
fi

have go || { log "Go is missing: install it and run again"; exit 1; }

# need COMMAND PACKAGE... makes sure that COMMAND exists.
need() {
	command=$1
	shift
	have "$command" && return 0
	log "$command is missing: installing the Debian package $*"
	"$root/.ci/apt.sh" "$@" && have "$command"
}

# build VERSION runs build_VERSION in a scratch folder and moves the program into place when it starts.
build() {
	version=$1
	if [ -x "$cache/$version/influxd" ]; then
		log "$version is there"
		return 0
	fi
	work=$cache/build-$version
	rm -rf "$work"
	mkdir -p "$work/bin" "$cache/$version"
	start=$(date +%s)
	log "building $version, which takes some minutes (output in .cache/influxdb/build-$version.log)"
	set +e # a condition around the subshell would disarm its own -e
	(
		set -e
		cd "$work"
		"build_$2" "$version"
	) >"$cache/build-$version.log" 2>&1
	built=$?
	set -e
	if [ $built -ne 0 ]; then
		tail -n 30 "$cache/build-$version.log" >&2
		log "$version did not build"
		return 1
	fi
	"$work/influxd" version >&2
	mv "$work/influxd" "$cache/$version/influxd"
	rm -rf "$work"
	log "built $version in $(($(date +%s) - start)) s"
}

# The command cannot be installed by name (its module replaces others), so a module of its own requires it.
build_v2() {
	cat >rustc-wrapper <<-'WRAPPER'
		#!/bin/sh
		# The Flux crates deny warnings, and a newer compiler has more of them.
		exec "$@" --cap-lints warn
	WRAPPER
	chmod +x rustc-wrapper
	# It knows how to build the Flux library and tells cgo where it is.
	GOBIN=$PWD/bin GOFLAGS= go install github.com/influxdata/pkg-config@v0.2.7
	export PKG_CONFIG="$PWD/bin/pkg-config" RUSTUP_TOOLCHAIN=stable RUSTC_WRAPPER="$PWD/rustc-wrapper"
	have gcc || export CC=clang CXX=clang++
	go mod init influxd
	go get "github.com/influxdata/influxdb/v2/cmd/influxd@v$1"
	CGO_ENABLED=1 go build -buildvcs=false -trimpath -tags sqlite_foreign_keys,sqlite_json \
		-ldflags "-s -w -X main.version=v$1" -o influxd github.com/influxdata/influxdb/v2/cmd/influxd
}

# Without inlining it takes three quarters of the processor time, and a server of tests need not be fast.
build_v1() {
	CGO_ENABLED=0 GOBIN=$PWD GOFLAGS=-trimpath go install -buildvcs=false -gcflags=github.com/...=-l -ldflags "-s -w -X main.version=$1" \
		"github.com/influxdata/influxdb/cmd/influxd@v$1"
}

[ $# -gt 0 ] || { log "name a version: 1.8.10 or 2.7.12"; exit 1; }
status=0
for version; do
	case $version in
	1.*)
		build "$version" v1 || status=1
		;;
	2.*)
		if [ -x "$cache/$version/influxd" ]; then
			log "$version is there"
		elif ! have cargo; then
			log "cargo is missing, which $version needs: install Rust with rustup"
			status=1
		elif ! need clang clang || ! need cc gcc libc6-dev || ! need pkg-config pkg-config; then
			log "so $version is not built"
			status=1
		else
			build "$version" v2 || status=1
		fi
		;;
	*)
		log "no idea how to build $version: it is neither 1.x nor 2.x"
		status=1
		;;
	esac
done
exit $status
