#!/bin/sh
# Compiles the programs for BMv2, and writes what a controller and a switch load, and the hash of the sources that it was made of:
#
#   bmv2/NAME.json              the program, without the compiler's notes on places in the sources
#   bmv2/NAME.p4info.txtpb      what a P4Runtime controller knows of it
#   bmv2/SOURCES                SHA-256 of the sources of each program, and of both files
#
# P4C is the compiler, p4c-bm2-ss of p4c 1.2.5; a test fails where a source was changed and this was not run. Arguments are the programs, or nothing for
# all of them.
set -eu
cd "$(dirname "$0")"
P4C=${P4C:-p4c-bm2-ss}
mkdir -p bmv2
touch bmv2/SOURCES
for name in ${*:-srint intmd into pint rft hopscope}; do
	$P4C --Werror -o bmv2/$name.json --p4runtime-files bmv2/$name.p4info.txtpb $name.p4
	python3 - $name <<-'PYTHON'
		import hashlib, json, os, re, sys
		name = sys.argv[1]

		def strip(v):
		    if isinstance(v, dict):
		        return {k: strip(x) for k, x in v.items() if k != "source_info"}
		    return [strip(x) for x in v] if isinstance(v, list) else v

		with open(f"bmv2/{name}.json") as f:
		    program = strip(json.load(f))
		with open(f"bmv2/{name}.json", "w") as f:
		    json.dump(program, f, separators=(",", ":"))
		    f.write("\n")

		def read(path):
		    with open(path, "rb") as f:
		        return f.read()

		def included(path): # by it, and by what it includes
		    found = set()
		    for m in re.findall(rb'(?m)^#include "(.*)"$', read(path)):
		        found |= {os.path.join(os.path.dirname(path), m.decode())}
		    return found.union(*map(included, found))

		def sha256(*paths):
		    return hashlib.sha256(b"".join(map(read, paths))).hexdigest()

		sources = [name + ".p4", *sorted(included(name + ".p4"))]
		made = [f"{name}.json", f"{name}.p4info.txtpb"]
		with open("bmv2/SOURCES") as f:
		    lines = [l for l in f if l.split()[0] not in made]
		lines += [f"{m} {sha256(*sources)} {sha256('bmv2/' + m)}\n" for m in made]
		with open("bmv2/SOURCES", "w") as f:
		    f.writelines(sorted(lines))
	PYTHON
done
