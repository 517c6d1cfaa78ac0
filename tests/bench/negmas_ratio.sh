#!/bin/sh
# Sets boulware against conceder in arena and in NegMAS, one after the other on the same core, and
# prints matches per second and the ratios. Builds arena (release) and installs NegMAS if missing.
#
#   tests/bench/negmas_ratio.sh [--seconds N] [--json]
#
# N is how long each of the three measurements runs, 10 by default.
set -eu

cd "$(dirname "$0")/../.."
venv=target/negmas-venv
version=0.16.0

if ! "$venv/bin/python" -c "import negmas; assert negmas.__version__ == '$version'" 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "negmas==$version"
fi
cargo build --quiet --release --package arena

# One core for everything, where the system lets us choose.
pin=
if command -v taskset >/dev/null 2>&1 && taskset --cpu-list 0 true 2>/dev/null; then
    pin="taskset --cpu-list 0"
fi
# NumPy must not start threads that a single-core figure would hide.
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
    exec $pin "$venv/bin/python" tests/bench/negmas_ratio.py --arena target/release/arena "$@"
