#!/usr/bin/env bash
# Builds the front end of the pages into the package. With --with-browser also installs what testing them needs.
# On Debian what is missing (node, npm, Chromium) is installed, if we are root or may become it.
set -euo pipefail
cd "$(dirname "$0")/../web"

install() {
  command -v apt-get >/dev/null 2>&1 || return 1
  elevate=
  [ "$(id -u)" = 0 ] || elevate="sudo -n"
  $elevate apt-get update -qq >/dev/null &&
    DEBIAN_FRONTEND=noninteractive $elevate apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
  install nodejs npm || { echo "the pages need node 18 or newer and npm (Debian: apt-get install nodejs npm)" >&2; exit 1; }
fi
if [ "${1:-}" = --with-browser ] && ! command -v chromium >/dev/null 2>&1; then
  install chromium fonts-dejavu-core || echo "testing the pages needs Chromium (Debian: apt-get install chromium)" >&2
fi
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  npm ci --silent --ignore-scripts
  touch node_modules/.package-lock.json
fi
built=../src/mcveto/viewer/assets/viewer.js
if [ ! -e "$built" ] || [ -n "$(find src build.mjs package.json tsconfig.json -newer "$built" -print -quit)" ]; then
  npm run --silent build
fi
