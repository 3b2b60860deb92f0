#!/bin/sh
# Installs the pinned real agent program for the real-host tests: sh install.sh DIRECTORY VERSION.
# Its native binary needs no node to run; npm is needed to fetch it. The version must be named: npm on an older node
# would silently take an older release. `--no-package-lock`, so that no registry's address is written down.
set -eu
directory=$1 version=$2
if ! command -v npm >/dev/null 2>&1; then
  echo "make real-host needs npm (Debian and Ubuntu: apt-get install npm)" >&2
  exit 1
fi
if ! command -v tmux >/dev/null 2>&1; then
  echo "make real-host needs tmux, the terminal it drives (Debian and Ubuntu: apt-get install tmux)" >&2
  exit 1
fi
stamp="$directory/installed-$version"
if [ -e "$stamp" ]; then
  exit 0
fi
mkdir -p "$directory"
echo '{"private": true}' >"$directory/package.json"
npm install --prefix "$directory" --no-package-lock --no-audit --no-fund --loglevel=error "@anthropic-ai/claude-code@$version"
touch "$stamp"
