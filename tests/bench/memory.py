"""Shows that memory grows with workers and not with matches.

Plays the same two agents over more and more generated items and prints the peak resident memory of
each run, with one worker and with two. Needs nothing but Python and the program:

    cargo build --release --package arena
    python3 tests/bench/memory.py target/release/arena            # up to a million matches
    python3 tests/bench/memory.py target/release/arena --most 100000

It exits with 1 if the largest run needs more than 1.5 times the memory of the smallest one on the
same number of workers.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SMALLEST = 10_000
GROWTH_MAX = 1.5

# The same items again and again: more items would be more catalog, not more matches.
TOURNAMENT = """\
# {matches} matches of two agents.
name = "memory"
seed = 1
schedule = "round-robin"
repetitions = {repetitions}

[rules]
set = "standard"
horizon = {{ turns = 20 }}

[catalog]
kind = "synthetic"
items = 1000
infeasible_share = 0.5

[[agents]]
name = "boulware"
component = "builtin:boulware"

[[agents]]
name = "conceder"
component = "builtin:conceder"
"""

# Waits for a command and prints the peak resident memory of its process in KiB. A process of its
# own, because the system keeps one maximum for all children.
MEASURE = """\
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def play(program, folder, matches, workers):
    """Plays a tournament; returns its peak memory in MiB, its log's size in MiB and seconds."""
    file = folder / f"m{matches}.toml"
    file.write_text(TOURNAMENT.format(matches=matches, repetitions=matches // 2_000))
    out = folder / f"out-{matches}-{workers}"
    command = [program, "tournament", "run", file, "--out", out, "--workers", str(workers)]
    started = time.monotonic()
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, command)], capture_output=True, text=True
    )
    seconds = time.monotonic() - started
    code, kibibytes = measured.stdout.split()
    if code != "0":
        sys.exit(f"{' '.join(map(str, command))} exited with {code}")
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) / 2**20
    shutil.rmtree(out)
    return int(kibibytes) / 2**10, size, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path, help="the arena binary")
    parser.add_argument("--most", type=int, default=1_000_000, help="matches of the largest run")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    grown = False
    print(f"{'workers':>7} {'matches':>9} {'peak MiB':>9} {'log MiB':>8} {'matches/s':>10}")
    with tempfile.TemporaryDirectory() as name:
        for workers in (1, 2):
            matches, first = SMALLEST, None
            while matches <= arguments.most:
                peak, size, seconds = play(program, pathlib.Path(name), matches, workers)
                rate = matches / seconds
                print(f"{workers:>7} {matches:>9,} {peak:>9.1f} {size:>8.1f} {rate:>10,.0f}", flush=True)
                first = first or peak
                grown |= peak > GROWTH_MAX * first
                matches *= 10
    sys.exit(1 if grown else 0)


if __name__ == "__main__":
    main()
