#!/bin/sh
# Prints the version of the sources: that of the tag on them, such as 0.1.0 for v0.1.0. Between tags it is the newest heading of
# CHANGELOG.md, as a version that comes before it: 0.1.0-dev.2731+76b05551, with the number of commits and the commit.
set -eu
cd "$(dirname "$0")/.."
heading=$(sed -n 's/^## \([0-9].*\)/\1/p' CHANGELOG.md | head -n 1)
next=${heading%% *}
if ! commit=$(git rev-parse --short=8 HEAD 2>/dev/null); then # sources from an archive
	case $heading in *unreleased*) next=$next-dev ;; esac
	echo "$next"
elif git diff --quiet HEAD && tag=$(git describe --exact-match --match 'v[0-9]*' 2>/dev/null); then
	echo "${tag#v}"
else
	git diff --quiet HEAD || commit=$commit.dirty
	echo "$next-dev.$(git rev-list --count HEAD)+$commit"
fi
