#!/bin/sh
# Runs behind a removal, which keeps settings and data, and behind dpkg's purge, which takes them. The account stays: its number
# would go to another one, and with it whatever is left of its files.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /etc/hopscope
	for role in hopscope hopscope-agent hopscope-console hopscope-consume; do
		rm -rf "/var/lib/$role" "/var/lib/private/$role"
	done
fi
