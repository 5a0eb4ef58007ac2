#!/usr/bin/env bash
# What the tests need that make a network of their own: iproute2, and the right to make namespaces. They make them
# themselves, and fail where they cannot; this says why, before a test does.
set -euo pipefail
if ! command -v ip >/dev/null; then
	"$(dirname "$0")/apt.sh" iproute2
fi
unshare --net true 2>/dev/null || {
	echo "no network namespace can be made here: run this as root, in a container with --cap-add SYS_ADMIN,NET_ADMIN,NET_RAW,"
	echo "or as another user by: unshare --user --map-root-user --net make test"
	exit 1
}
