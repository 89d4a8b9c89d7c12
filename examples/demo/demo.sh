#!/usr/bin/env bash
# Shows mcveto ($1) on the bundled binary demo.elf, a stripped lock with a flaw; fails if anything is not as expected.
set -euo pipefail
mcveto=$(realpath "$1")
cd "$(dirname "$0")"

# show EXIT-CODE ARGUMENT...: prints and runs a command, and checks how it ends.
show() {
  local expected=$1 code=0
  shift
  printf '\n$ mcveto %s\n' "$*"
  "$mcveto" "$@" || code=$?
  if [ "$code" != "$expected" ]; then
    echo "demo: exit code $code instead of $expected" >&2
    exit 1
  fi
}

echo "demo.elf is a stripped x86 program: a lock that opens for some three input bytes (address 0x8048110)."
show 0 disasm --spec demo.yaml --count 17
echo
echo "Harmless inputs run to the halt:"
show 0 run --spec demo.yaml --inputs 1,2,3
echo
echo "These reach the bad address (exit code 10):"
show 10 run --spec demo.yaml --inputs 103,32,25
echo
echo "Why: the condition on the inputs under which a run takes this path:"
show 10 trace --spec demo.yaml --inputs 103,32,25
echo
echo "Finding such inputs is mcveto's work:"
show 10 verify --spec demo.yaml --quiet
