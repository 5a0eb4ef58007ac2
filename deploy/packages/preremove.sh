#!/bin/sh
# Runs before a removal ("remove" of dpkg, 0 of rpm), and before an upgrade, which lets the service run.
set -e
case $1 in
remove | 0) ;;
*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now hopscope.service hopscope-agent.service hopscope-console.service hopscope-consume.service || true
