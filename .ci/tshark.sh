#!/bin/sh
# Installs tshark, whose reading of sFlow, IPFIX and NetFlow 9 is compared with ours in make check.
set -eu
command -v tshark >/dev/null || "$(dirname "$0")/apt.sh" tshark
