#!/usr/bin/env bash
# The page is tested in Chromium. Installs it where that is allowed, and says how where it is not.
set -euo pipefail
command -v chromium >/dev/null && exit 0
echo "browser: the tests of the page need Chromium: installing the Debian package chromium" >&2
"$(dirname "$0")/apt.sh" chromium
