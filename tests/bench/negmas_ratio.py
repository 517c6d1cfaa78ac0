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
    """Plays one negotiation in NegMAS; returns its turns, the acceptance included."""
    space = make_os([make_issue((0, GRID.count), "price")])
    mechanism = SAOMechanism(outcome_space=space, n_steps=GRID.steps)
    mechanism.add(negotiator(buyer), ufun=utility("buyer", space))
    mechanism.add(negotiator(seller), ufun=utility("seller", space))
    mechanism.run()
    return len(mechanism.extended_trace) + (mechanism.agreement is not None)


def measure_loop(seconds):
    for _ in range(20):
        play_once(*AGENTS)
    matches = turns = 0
    clock = Clock()
    while clock.seconds()[0] < seconds:
        turns += play_once(*AGENTS) + play_once(*reversed(AGENTS))
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
