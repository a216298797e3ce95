#!/bin/sh
# What must hold for every change. Add the commands of your language here.
set -eu

cd "$(dirname "$0")"
test -s README.md || { echo "README.md is missing or empty" >&2; exit 1; }
echo "ok"
