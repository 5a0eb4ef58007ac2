#!/bin/sh
# Installs Debian packages. The scripts that set up servers run side by side, and apt-get refuses to run twice: one waits here for
# the other, and in apt-get for programs such as unattended-upgrades, which hold its lock.
#
# Usage: .ci/apt.sh PACKAGE...
set -eu
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "missing; on Debian: sudo apt-get install -y $*" >&2; exit 1; }
get='apt-get -qq -o DPkg::Lock::Timeout=900'
install="$get install -y \"\$@\" || { $get update && $get install -y \"\$@\"; }"
DEBIAN_FRONTEND=noninteractive flock "${TMPDIR:-/tmp}/hopscope-apt.lock" sh -c "{ $install; } >&2" sh "$@"
