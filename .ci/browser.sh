#!/usr/bin/env bash
# The page is tested in Chromium. Installs it where that is allowed, and says how where it is not.
set -euo pipefail
command -v chromium >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing chromium"
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null
	exit 0
fi
echo "The tests of the page need Chromium: sudo apt-get install chromium" >&2
exit 1
