#!/usr/bin/env bash
# Installs pyarrow, DuckDB, HiGHS, scapy, networkx and NumPy into .cache/python, where tests look for them: a file that only its own writer can
# read is no Parquet file, a plan that only its own planner calls best is not proven, and packets that only their own sender reads
# follow no RFC; networkx is what the example of a foreign planner is written with. What is there already is kept.
set -euo pipefail
. "$(dirname "$0")/cache.sh"
dir=$PWD/.cache/python
[ -x "$dir/bin/python" ] && "$dir/bin/python" -c 'import pyarrow.parquet, duckdb, highspy, scapy.contrib.stamp, networkx, numpy' 2>/dev/null && exit 0
python=$(command -v python3 || true)
if [ -z "$python" ] || ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
	echo "python: the tests of Parquet files, of plans and of STAMP need Python with venv: installing the Debian packages python3 python3-venv" >&2
	.ci/apt.sh python3 python3-venv
	python=$(command -v python3)
fi
echo "python: installing pyarrow, DuckDB, HiGHS, scapy, networkx and NumPy into .cache/python" >&2
"$python" -m venv --clear "$dir"
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check 'pyarrow>=15,<30' 'duckdb>=1,<2' 'highspy>=1.9,<2' 'scapy>=2.7,<3' 'networkx>=3,<4' 'numpy>=1.26,<3'
"$dir/bin/python" -c 'import pyarrow, duckdb, highspy, scapy, networkx; print("python: pyarrow", pyarrow.__version__, "DuckDB", duckdb.__version__, "HiGHS", highspy.Highs().version(), "scapy", scapy.__version__, "networkx", networkx.__version__)' >&2
