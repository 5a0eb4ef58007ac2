#!/bin/sh
# Compiles the programs for BMv2, and writes what a controller and a switch load, and the hash of the sources that it was made of:
#
#   bmv2/NAME.json              the program, without the compiler's notes on places in the sources
#   bmv2/NAME.p4info.txtpb      what a P4Runtime controller knows of it
#   bmv2/SOURCES                SHA-256 of the sources of each program, and of both files
#
# P4C is the compiler, p4c-bm2-ss of p4c 1.2.5; a test fails where a source was changed and this was not run.
set -eu
cd "$(dirname "$0")"
P4C=${P4C:-p4c-bm2-ss}
mkdir -p bmv2
: > bmv2/SOURCES
for name in srint intmd pint; do
	$P4C --Werror -o bmv2/$name.json --p4runtime-files bmv2/$name.p4info.txtpb $name.p4
	python3 - bmv2/$name.json <<-'PYTHON'
		import json, sys
		def strip(v):
		    if isinstance(v, dict):
		        return {k: strip(x) for k, x in v.items() if k != "source_info"}
		    return [strip(x) for x in v] if isinstance(v, list) else v
		with open(sys.argv[1]) as f:
		    program = strip(json.load(f))
		with open(sys.argv[1], "w") as f:
		    json.dump(program, f, separators=(",", ":"))
		    f.write("\n")
	PYTHON
	sources="$name.p4 $(sed -n 's/^#include "\(.*\)"$/\1/p' $name.p4 | sort)"
	for made in "$name.json" "$name.p4info.txtpb"; do
		echo "$made $(cat $sources | sha256sum | cut -d' ' -f1) $(sha256sum < bmv2/$made | cut -d' ' -f1)" >> bmv2/SOURCES
	done
done
