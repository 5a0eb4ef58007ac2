# The part that the scripts of tools have in common which are built from their Go modules. It is read (with .) by a script that
# has set name and version, and a function build that leaves the tool as a file of that name where it is called. The script may set
# probe, by which the tool says its version. The tool comes to .cache/NAME/VERSION/NAME. One that is there already is kept.
. "$(dirname "$0")/cache.sh"
cache=$PWD/.cache/$name
log() { printf '%s: %s\n' "$name" "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# One builder at a time: a second one waits and then finds everything there.
mkdir -p "$cache"
if have flock && [ "${TOOL_LOCKED:-}" != "$name" ]; then
	TOOL_LOCKED=$name exec flock "$cache/lock" ".ci/$(basename "$0")" "$@"
fi

if [ -x "$cache/$version/$name" ]; then
	log "$version is there"
	exit 0
fi
have go || { log "Go is missing: install it and run again"; exit 1; }

work=$cache/build-$version
rm -rf "$work"
mkdir -p "$work" "$cache/$version"
start=$(date +%s)
log "building $version, which takes some minutes (output in .cache/$name/build-$version.log)"
set +e # a condition around the subshell would disarm its own -e
(
	set -e
	cd "$work"
	build
) >"$cache/build-$version.log" 2>&1
built=$?
set -e
if [ $built -ne 0 ]; then
	tail -n 30 "$cache/build-$version.log" >&2
	log "$version did not build"
	exit 1
fi
"$work/$name" ${probe:---version} >&2
mv "$work/$name" "$cache/$version/$name"
chmod -R u+w "$work"
rm -rf "$work"
log "built $version in $(($(date +%s) - start)) s"
