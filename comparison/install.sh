#!/bin/sh
# Installs the pinned Qwen Code and a node that runs it: sh install.sh DIRECTORY VERSION PYTHON.
# The machine's own node serves if it is 22 or newer; else one comes as a Python package, pinned with its hashes.
# The version must be named: npm on an older node would silently take an older release. `--ignore-scripts`, so
# nothing of it runs before we start it; `--no-package-lock`, so that no registry's address is written down.
set -eu
directory=$1 version=$2 python=$3
if ! command -v npm >/dev/null 2>&1; then
  echo "make compare needs npm (Debian and Ubuntu: apt-get install npm)" >&2
  exit 1
fi
stamp="$directory/installed-$version"
if [ -e "$stamp" ]; then
  exit 0
fi
mkdir -p "$directory/node/bin"
major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/')
if [ "${major:-0}" -ge 22 ]; then
  ln -sf "$(command -v node)" "$directory/node/bin/node"
elif command -v uv >/dev/null 2>&1; then
  uv pip install -q --python "$python" --target "$directory/node" --no-deps --require-hashes -r requirements/node.txt
else
  "$python" -m pip install -q --disable-pip-version-check --upgrade --target "$directory/node" --no-deps \
    --require-hashes -r requirements/node.txt
fi
echo '{"private": true}' >"$directory/package.json"
npm install --prefix "$directory" --ignore-scripts --no-package-lock --no-audit --no-fund --loglevel=error \
  "@qwen-code/qwen-code@$version"
touch "$stamp"
