#!/usr/bin/env bash
# Creates the virtual environment $1 and installs the pinned packages of $2 plus mcveto itself (editable).
# On a bare Debian the only thing asked of the system is python3 with venv, which is installed if missing.
set -euo pipefail
venv=$1 lock=$2

find_python() {
  for candidate in python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" >/dev/null 2>&1 &&
       "$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
}

python=$(find_python)
if [ -z "$python" ] && command -v apt-get >/dev/null 2>&1; then
  elevate=
  [ "$(id -u)" = 0 ] || elevate=sudo
  $elevate apt-get update -qq
  $elevate apt-get install -y -qq python3 python3-venv >/dev/null
  python=$(find_python)
fi
if [ -z "$python" ]; then
  echo "mcveto needs Python 3.11 or newer with the venv module (Debian: apt-get install python3-venv)" >&2
  exit 1
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --requirement "$lock"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
