#!/bin/sh
# What the tests of packages and images need: a bare Debian, as .cache/debian/SUITE.tar, in which they are installed, and programs
# that read and install them beside ours (rpm, skopeo), and pages of the manual (groff).
set -eu
. "$(dirname "$0")/cache.sh"
suite=bookworm
for tool in debootstrap rpm skopeo groff; do
	command -v "$tool" >/dev/null || { .ci/apt.sh debootstrap rpm skopeo groff-base; break; }
done
[ "$(id -u)" = 0 ] || { echo "packages are installed as root: run this as root" >&2; exit 1; }
mkdir -p .cache/debian
exec 9>.cache/debian/lock
flock 9
[ ! -e ".cache/debian/$suite.tar" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The mirror is the one that this machine has, if it is a Debian.
mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
debootstrap --variant=minbase "$suite" "$work/root" ${mirror:+"$mirror"} >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; exit 1; }
rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
tar -C "$work/root" -cf ".cache/debian/$suite.tar.new" .
mv ".cache/debian/$suite.tar.new" ".cache/debian/$suite.tar"
