#!/usr/bin/env bash
# Installs pyarrow and DuckDB into .cache/python, where the tests of the Parquet files look for them: a file that only
# its own writer can read is no Parquet file. What is there already is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$PWD/.cache/python
[ -x "$dir/bin/python" ] && "$dir/bin/python" -c 'import pyarrow.parquet, duckdb' 2>/dev/null && exit 0
python=$(command -v python3 || true)
if [ -z "$python" ] || ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "python: installing the Debian packages python3 python3-venv" >&2
		apt-get install -y -qq python3 python3-venv >&2 || { apt-get update -qq >&2 && apt-get install -y -qq python3 python3-venv >&2; }
		python=$(command -v python3)
	else
		echo "The tests of the Parquet files need Python with venv: sudo apt-get install -y python3 python3-venv" >&2
		exit 1
	fi
fi
echo "python: installing pyarrow and DuckDB into .cache/python" >&2
"$python" -m venv --clear "$dir"
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check 'pyarrow>=15,<30' 'duckdb>=1,<2'
"$dir/bin/python" -c 'import pyarrow, duckdb; print("python: pyarrow", pyarrow.__version__, "DuckDB", duckdb.__version__)' >&2
