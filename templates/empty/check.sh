#!/bin/sh
# Checks for every change. Add your language's commands here.
set -eu

cd "$(dirname "$0")"
test -s README.md || { echo "README.md is missing or empty" >&2; exit 1; }
echo "ok"
