"""Sets running a tournament's matches again against playing them.

For each tournament: plays it, audits the log, and audits it again with every match run again, on
as many workers. What the third takes longer than the second is the running again. Several rounds,
one after the other, so that what else the machine does falls on all three; the middle round is
what is printed. Needs nothing but Python and the program:

    cargo build --release --package arena
    python3 tests/bench/reexecution.py target/release/arena
    python3 tests/bench/reexecution.py target/release/arena --workers 1 --rounds 5
    python3 tests/bench/reexecution.py target/release/arena tournaments/amazon.toml

Without a file it takes those below, whose agents are built in. It exits with 1 if a log is not
verified.
"""

import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

FILES = ["tournaments/smoke.toml", "tournaments/house.toml", "tournaments/amazon.toml"]


def measure(command):
    """Runs a command; returns wall and processor seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        command = " ".join(map(str, command))
        sys.exit(f"error: `{command}` exited with {done.returncode}\n{done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def one_round(program, file, out, workers):
    """Plays, audits, audits with running again; returns [(wall, CPU), ...] of the three."""
    key = ["--key", out / "log.vkey"]
    workers = ["--workers", str(workers)]
    play = measure([program, "tournament", "run", file, "--out", out, *workers])
    audit = measure([program, "audit", out, *key])
    both = measure([program, "audit", out, *key, "--reexecute", "all", *workers])
    return [play, audit, both]


def print_lines(name, matches, rounds):
    """Prints the middle round by the wall clock and the middle one by processor time."""
    for clock, place in (("wall", 0), ("CPU", 1)):
        figures = [[seconds[place] for seconds in one] for one in rounds]
        ratio = lambda one: (one[2] - one[1]) / one[0]  # noqa: E731
        middle = statistics.median_low([ratio(one) for one in figures])
        play, audit, both = next(one for one in figures if ratio(one) == middle)
        again = both - audit
        line = f"{name:10} {matches:>9,} {clock:>5} {play:>8.2f} {audit:>8.2f} {again:>10.2f}"
        print(f"{line} {middle:>13.2f} {both / play:>14.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path, help="the arena binary")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="tournament files")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="threads that play")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    root = pathlib.Path(__file__).resolve().parents[2]
    files = arguments.files or [root / file for file in FILES]
    print(f"seconds on {arguments.workers} workers, the middle one of {arguments.rounds} rounds")
    heads = ["play", "audit", "run again", "again : play", "audit+ : play"]
    heads = f"{heads[0]:>8} {heads[1]:>8} {heads[2]:>10} {heads[3]:>13} {heads[4]:>14}"
    print(f"{'tournament':10} {'matches':>9} {'clock':>5} {heads}")
    with tempfile.TemporaryDirectory() as parent:
        out = pathlib.Path(parent) / "log"
        for file in files:
            rounds = []
            # The first run compiles the components into the user's cache.
            for number in range(arguments.rounds + 1):
                figures = one_round(program, file, out, arguments.workers)
                matches = int((out / "checkpoint").read_text().split("\n")[1]) - 3
                shutil.rmtree(out)
                if number > 0:
                    rounds.append(figures)
            print_lines(file.stem, matches, rounds)


if __name__ == "__main__":
    main()
