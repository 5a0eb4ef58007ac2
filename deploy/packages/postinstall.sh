#!/bin/sh
# Runs behind an installation or an upgrade.
set -e

# The account of the collector. systemd takes it, by the name of the unit, instead of one that exists while the service runs: files
# keep their owner, and a token can be readable for it alone.
if ! getent passwd hopscope >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/hopscope --no-create-home --shell /usr/sbin/nologin hopscope
fi

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
# The kernel's limits are raised at once, and never lowered.
if [ "$(cat /proc/sys/net/core/rmem_max)" -lt 16777216 ]; then
	/usr/lib/systemd/systemd-sysctl /usr/lib/sysctl.d/30-hopscope.conf || true
fi
# What runs goes on with the new program.
systemctl try-restart hopscope.service hopscope-agent.service hopscope-console.service hopscope-consume.service || true
