"""Measures arena and NegMAS on the same negotiations and prints the ratios.

Called by negmas_ratio.sh, which pins everything to one core. Three measurements, one after the
other, each about `--seconds` long:

    arena       `arena tournament run --workers 1`: sandboxed components with a fresh instance for
                each seat and match, the log on disk, the final table; the whole process is timed
    loop        a bare loop of NegMAS's SAOMechanism, in process, nothing stored
    tournament  NegMAS's cartesian_tournament, serial, results stored on disk

Both programs play the same two strategies on the same grid of prices with the same number of steps;
in its compatibility mode arena's agents make the very offers of NegMAS's (tests/it/negmas.rs), so
the matches are the same turn by turn. Roles alternate.

Wall time is what a user waits for; CPU time is what one idle core would need, and the fairer figure
on a busy machine. No figure is judged here: this measures, it does not test.
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "negmas"))

from record import SCENARIOS, Grid, negotiator  # noqa: E402

from negmas import (  # noqa: E402
    LinearAdditiveUtilityFunction,
    SAOMechanism,
    Scenario,
    make_issue,
    make_os,
)
from negmas.preferences.value_fun import AffineFun  # noqa: E402
from negmas.sao import BoulwareTBNegotiator, ConcederTBNegotiator  # noqa: E402
from negmas.tournaments.neg import cartesian_tournament  # noqa: E402

GRID = Grid(SCENARIOS[0])
AGENTS = ["boulware", "conceder"]


class Clock:
    """Wall and CPU seconds of this process and of its finished children."""

    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        cpu = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            usage = resource.getrusage(who)
            cpu += usage.ru_utime + usage.ru_stime
        return time.perf_counter(), cpu

    def seconds(self):
        wall, cpu = self.now()
        return wall - self.start[0], cpu - self.start[1]


def utility(role, space):
    slope, bias = GRID.slope_and_bias(role)
    return LinearAdditiveUtilityFunction(
        values=[AffineFun(slope=slope, bias=bias)],
        weights=[1.0],
        outcome_space=space,
        reserved_value=GRID.reserve(role),
        name=role,
    )


def play_once(buyer, seller):
    """Plays one negotiation in NegMAS; returns its turns (the acceptance included) and deal."""
    space = make_os([make_issue((0, GRID.count), "price")])
    mechanism = SAOMechanism(outcome_space=space, n_steps=GRID.steps)
    mechanism.add(negotiator(buyer), ufun=utility("buyer", space))
    mechanism.add(negotiator(seller), ufun=utility("seller", space))
    mechanism.run()
    turns = len(mechanism.extended_trace) + 1
    return turns, GRID.price(mechanism.agreement[0])


def measure_loop(seconds):
    for _ in range(20):
        play_once(*AGENTS)
    matches = turns = 0
    clock = Clock()
    while clock.seconds()[0] < seconds:
        turns += play_once(*AGENTS)[0] + play_once(*reversed(AGENTS))[0]
        matches += 2
    return row(matches, clock.seconds(), turns)


def run_cartesian(repetitions, folder):
    space = make_os([make_issue((0, GRID.count), "price")], name="price")
    scenario = Scenario(
        outcome_space=space, ufuns=(utility("buyer", space), utility("seller", space))
    )
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        results = cartesian_tournament(
            [BoulwareTBNegotiator, ConcederTBNegotiator],
            [scenario],
            n_repetitions=repetitions,
            n_steps=GRID.steps,
            njobs=-1,
            self_play=False,
            rotate_ufuns=False,
            # Utilities as they are: rescaling would change the offers.
            normalize_ufuns=False,
            save_scenario_figs=False,
            verbosity=0,
            path=folder,
        )
    return len(results.details)


def measure_tournament(seconds):
    with tempfile.TemporaryDirectory() as parent:
        parent = pathlib.Path(parent)
        clock = Clock()
        first = run_cartesian(10, parent / "first")
        wall, _ = clock.seconds()
        # Two ordered pairs a repetition; as many as the time allows at the first run's pace.
        repetitions = max(10, int(seconds / wall * first / 2))
        clock = Clock()
        matches = run_cartesian(repetitions, parent / "second")
        return row(matches, clock.seconds())


def row(matches, seconds, turns=None):
    wall, cpu = seconds
    return {
        "matches": matches,
        "turns_per_match": None if turns is None else turns / matches,
        "per_second_wall": matches / wall,
        "per_second_cpu": matches / cpu,
    }


TOURNAMENT = """\
name = "negmas-ratio"
seed = 1
repetitions = {repetitions}

[rules]
set = "standard"
opener = "buyer"
horizon = {{ turns = {turns} }}

[catalog]
kind = "amazon-history-price"
folder = "catalog"
budget_factor = {budget_factor}
"""

AGENT = """
[[agents]]
name = "{name}"
component = "builtin:{name}"
params = "compat=negmas low={low} high={high} tick={tick}"
"""

# NegMAS's negotiators see no text; arena's do, so they get as much as a product has.
DESCRIPTION = "A plain thing of good make, sold as it is, with no warranty but its looks. " * 8


def write_tournament(folder, repetitions):
    """Writes a tournament of the two agents over the one scenario; returns its path."""
    dollars = lambda cents: f"${cents // 100}.{cents % 100:02}"  # noqa: E731
    product = {
        "title": "A plain thing of good make",
        "category": "token",
        "description": DESCRIPTION,
        "list_price": dollars(GRID.high),
        "highest_price": dollars(GRID.high),
        "lowest_price": dollars(GRID.cost),
    }
    (folder / "catalog").mkdir()
    (folder / "catalog" / "token.json").write_text(json.dumps([product]))
    text = TOURNAMENT.format(
        repetitions=repetitions, turns=2 * GRID.steps, budget_factor=GRID.budget / GRID.high
    )
    for name in AGENTS:
        text += AGENT.format(name=name, low=GRID.low, high=GRID.high, tick=GRID.tick)
    path = folder / "tournament.toml"
    path.write_text(text)
    return path


def run_arena(arena, repetitions):
    """Plays a tournament in a new process; returns matches and (wall, CPU) seconds."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        path = write_tournament(folder, repetitions)
        command = [arena, "tournament", "run", path, "--out", folder / "out"]
        command += ["--workers", "1", "--json"]
        clock = Clock()
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = clock.seconds()
        if done.returncode != 0:
            sys.exit(f"error: arena failed\n{done.stderr}")
        report = json.loads(done.stdout)["report"]
        matches = report["header"]["matches_played"]
        assert matches == 2 * repetitions, f"{matches} matches for {repetitions} pairs"
        check_same_matches(report)
        return matches, seconds


def check_same_matches(report):
    """Checks that arena's matches end in the deals of NegMAS's, after as many turns.

    Every match of a leg is the same, so the means over a role are what one match gives.
    """
    for entry in report["rows"]:
        name = AGENTS[entry["agent"]]
        other = AGENTS[1 - entry["agent"]]
        for role, pair in (("buyer", (name, other)), ("seller", (other, name))):
            turns, deal = play_once(*pair)
            gain = GRID.budget - deal if role == "buyer" else deal - GRID.cost
            theirs = (turns, gain / (GRID.budget - GRID.cost))
            ours = (entry[role]["turns"], entry[role]["reward"])
            close = all(abs(a - b) < 1e-6 for a, b in zip(ours, theirs))
            assert close, f"{name} as {role}: arena {ours}, NegMAS {theirs} (turns, reward)"


def measure_arena(arena, seconds):
    # The first run compiles the components into the user's cache and gives the pace.
    run_arena(arena, 10)
    matches, (wall, _) = run_arena(arena, 2_000)
    repetitions = min(max(2_000, int(seconds / wall * matches / 2)), 1_000_000)
    return row(*run_arena(arena, repetitions))


def print_table(rows, pinned):
    print(f"boulware v conceder, both orders, {GRID.count + 1} prices, {GRID.steps} NegMAS steps")
    core = "one core" if pinned else "NOT pinned to one core"
    print(f"(= {2 * GRID.steps} turns at most); {core}")
    print()
    print(f"{'':24}{'matches':>9}{'wall /s':>11}{'CPU /s':>11}{'arena is':>12}{'by CPU':>12}")
    for name, figures in rows.items():
        wall, cpu = figures["per_second_wall"], figures["per_second_cpu"]
        ratios = ""
        if name != "arena":
            by_wall = rows["arena"]["per_second_wall"] / wall
            by_cpu = rows["arena"]["per_second_cpu"] / cpu
            ratios = f"{by_wall:>10.0f} x{by_cpu:>10.0f} x"
        print(f"{name:24}{figures['matches']:>9}{wall:>11.1f}{cpu:>11.1f}{ratios}")
    print()
    turns = rows["negmas loop"]["turns_per_match"]
    print(f"The matches are the same in both programs, {turns:.1f} turns on average.")
    print("arena         sandboxed components, a fresh instance for each seat, the log on disk,")
    print("              start-up and final table included: compare it with `negmas tournament`")
    print("negmas loop   negotiations alone, in process, no isolation, nothing stored")
    print("negmas tournament  serial cartesian_tournament, in process, results stored on disk")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arena", required=True, help="the program to measure")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each measurement")
    parser.add_argument("--json", action="store_true", help="print figures instead of a table")
    args = parser.parse_args()
    pinned = len(os.sched_getaffinity(0)) == 1
    rows = {
        "arena": measure_arena(args.arena, args.seconds),
        "negmas loop": measure_loop(args.seconds),
        "negmas tournament": measure_tournament(args.seconds),
    }
    if args.json:
        print(json.dumps({"pinned": pinned, "rows": rows}, indent=2))
    else:
        print_table(rows, pinned)


if __name__ == "__main__":
    main()
