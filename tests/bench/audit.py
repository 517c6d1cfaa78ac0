"""Shows what an audit of a large log costs, and that its memory does not grow with the matches.

Plays two agents over generated items, a hundred thousand matches and a million, and audits each
log on one core: every step but running the agents again. Prints wall and processor seconds and
the peak resident memory of the audit. Needs nothing but Python and the program:

    cargo build --release --package arena
    python3 tests/bench/audit.py target/release/arena             # up to a million matches
    python3 tests/bench/audit.py target/release/arena --most 100000
    python3 tests/bench/audit.py target/release/arena --audit-only FOLDER...   # logs that are there

It exits with 1 if a log is not verified, or if the largest audit needs more than 1.5 times the
memory of the smallest one.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from memory import TOURNAMENT

SMALLEST = 100_000
GROWTH_MAX = 1.5

# Runs a command on one core, where the system lets us choose, and prints its exit code, seconds
# by the clock, processor seconds, and the peak resident memory of its process in KiB. A process of
# its own, because the system keeps one maximum for all children.
MEASURE = """\
import os, resource, subprocess, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
start = time.monotonic()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
wall = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(code, wall, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def play(program, folder, matches):
    """Plays a tournament on all cores; returns its folder."""
    file = folder / f"m{matches}.toml"
    file.write_text(TOURNAMENT.format(matches=matches, repetitions=matches // 2_000))
    out = folder / f"log-{matches}"
    command = [program, "tournament", "run", file, "--out", out]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return out


def audit(program, log):
    """Audits a log; returns wall and processor seconds and the peak memory in MiB."""
    command = [program, "audit", log, "--key", log / "log.vkey"]
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, command)], stdout=subprocess.PIPE, text=True
    )
    code, wall, cpu, kibibytes = measured.stdout.split()
    if code != "0":
        sys.exit(f"{' '.join(map(str, command))} exited with {code}")
    return float(wall), float(cpu), int(kibibytes) / 2**10


def report(program, log):
    """Audits a log and prints a line; returns the peak memory in MiB."""
    # The last head is over the announcement, the matches, the close and the reveal.
    matches = int((log / "checkpoint").read_text().split("\n")[1]) - 3
    size = sum(file.stat().st_size for file in log.rglob("*") if file.is_file()) / 2**20
    wall, cpu, peak = audit(program, log)
    micros = 1e6 * cpu / matches
    print(
        f"{matches:>9,} {size:>8.1f} {wall:>7.1f} {cpu:>7.1f} {micros:>13.1f} {peak:>9.1f}",
        flush=True,
    )
    return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path, help="the arena binary")
    parser.add_argument("--most", type=int, default=1_000_000, help="matches of the largest log")
    parser.add_argument("--audit-only", nargs="+", type=pathlib.Path, metavar="FOLDER",
                        help="audit these logs and play none")
    arguments = parser.parse_args()
    program = arguments.program.resolve()
    if not hasattr(os, "sched_setaffinity"):
        print("not pinned to one core: the system has no call for it", file=sys.stderr)
    heads = f"{'matches':>9} {'log MiB':>8} {'wall s':>7} {'CPU s':>7}"
    print(f"{heads} {'CPU us/match':>13} {'peak MiB':>9}", flush=True)
    peaks = []
    with tempfile.TemporaryDirectory() as name:
        for log in arguments.audit_only or []:
            peaks.append(report(program, log))
        matches = SMALLEST
        while not arguments.audit_only and matches <= arguments.most:
            log = play(program, pathlib.Path(name), matches)
            peaks.append(report(program, log))
            shutil.rmtree(log)
            matches *= 10
    sys.exit(1 if max(peaks) > GROWTH_MAX * min(peaks) else 0)


if __name__ == "__main__":
    main()
