#!/bin/sh
# Makes the virtual environment with the pinned packages and this checkout in it. uv where it is, else venv and pip.
set -eu
python=$1 venv=$2 part=$3
PATH="$PWD/$venv/bin:$PATH" # the build backend looks for its program there
export PATH
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "Stopwarden needs Python 3.11 or newer; $python is older. Try: make PYTHON=python3.12 ..." >&2
  exit 1
}
if command -v uv >/dev/null 2>&1; then
  [ -x "$venv/bin/python" ] || uv venv -q --seed --python "$python" "$venv"
  uv pip install -q --python "$venv/bin/python" --require-hashes -r "requirements/$part.txt"
  uv pip install -q --python "$venv/bin/python" --no-deps --no-build-isolation -e .
else
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r "requirements/$part.txt"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
fi
