"""Plays the shared price scenarios in NegMAS and writes what was offered.

Run with the virtualenv's python (see tests/cases/negmas/README.md). Every negotiation is also
worked out from the formulas of that README, without NegMAS, and the two must agree; so the file is
written only if the formulas are right.

    record.py            writes tests/cases/negmas/offers.json
    record.py --check    plays again and compares with the file; writes nothing

Not here: speed. See tests/bench/negmas_ratio.py.
"""

import json
import math
import pathlib
import platform
import sys
import warnings

warnings.filterwarnings("ignore")

import negmas  # noqa: E402
from negmas import LinearAdditiveUtilityFunction, SAOMechanism, make_issue, make_os  # noqa: E402
from negmas.gb.components import MiCROOfferingPolicy  # noqa: E402
from negmas.preferences.value_fun import AffineFun  # noqa: E402
from negmas.sao import (  # noqa: E402
    BoulwareTBNegotiator,
    ConcederTBNegotiator,
    LinearTBNegotiator,
    MiCRONegotiator,
)

NEGMAS_VERSION = "0.16.0"
CASES = pathlib.Path(__file__).resolve().parents[1] / "cases" / "negmas" / "offers.json"

EXPONENTS = {"boulware": 4.0, "linear": 1.0, "conceder": 0.25}
STRATEGIES = ["boulware", "linear", "conceder", "micro"]
STRATEGY_EPS = 1e-4
SEARCH_EPS = 1e-6
# A decision closer to its threshold than this would hang on the last bit of a float.
MARGIN = 1e-9

# Name, low, high, tick, budget, cost (cents), opener, steps. One step is two turns.
SCENARIOS = [
    ("dollars", 0, 10_000, 100, 8_000, 4_000, "buyer", 10),
    ("seller-opens", 0, 10_000, 100, 8_000, 4_000, "seller", 20),
    ("off-grid", 2_500, 12_500, 50, 9_130, 6_075, "buyer", 6),
    ("infeasible", 0, 10_000, 100, 5_000, 6_000, "seller", 5),
    ("wide-reserves", 1_000, 5_000, 10, 6_000, 500, "buyer", 15),
    ("cents", 0, 12_345, 1, 9_876, 5_432, "seller", 12),
    ("coarse", 0, 10_000, 1_000, 9_000, 2_000, "buyer", 12),
    ("long", 0, 10_000, 100, 7_700, 4_400, "seller", 100),
    ("one-step", 0, 10_000, 100, 8_000, 4_000, "buyer", 1),
]


class RepeatLast(MiCROOfferingPolicy):
    """MiCRO's offers, with the draw of a repeated offer replaced by the last new one."""

    # A class attribute, since NegMAS's attrs class has slots of its own.
    repeats = 0

    def sample_sent(self):
        RepeatLast.repeats += 1
        return self.ensure_sorter().outcome_at(self.next_indx - 1) if self.next_indx else None


class Grid:
    """A scenario in NegMAS's terms: prices are 0 ..= N, utilities are 0 ..= 1."""

    def __init__(self, scenario):
        name, low, high, tick, budget, cost, opener, steps = scenario
        assert (high - low) % tick == 0, f"{name}: tick must divide the range"
        self.name, self.low, self.high, self.tick = name, low, high, tick
        self.budget, self.cost, self.opener, self.steps = budget, cost, opener, steps
        self.count = (high - low) // tick

    def price(self, k):
        return self.low + k * self.tick

    def slope_and_bias(self, role):
        return (-1 / self.count, 1.0) if role == "buyer" else (1 / self.count, 0.0)

    def utility(self, role, k):
        slope, bias = self.slope_and_bias(role)
        return slope * k + bias

    def reserve(self, role):
        # Through the utility itself, so that a reserve on the grid is exactly rational.
        cents = self.budget if role == "buyer" else self.cost
        return self.utility(role, (cents - self.low) / self.tick)

    def roles(self):
        return ["buyer", "seller"] if self.opener == "buyer" else ["seller", "buyer"]


def negotiator(strategy):
    if strategy == "micro":
        return MiCRONegotiator(offering=RepeatLast())
    return {
        "boulware": BoulwareTBNegotiator,
        "linear": LinearTBNegotiator,
        "conceder": ConcederTBNegotiator,
    }[strategy]()


def play_negmas(grid, agents):
    """Returns (offers in cents, deal in cents or None, whether MiCRO repeated an offer)."""
    space = make_os([make_issue((0, grid.count), "price")])
    mechanism = SAOMechanism(outcome_space=space, n_steps=grid.steps)
    RepeatLast.repeats = 0
    for role in grid.roles():
        slope, bias = grid.slope_and_bias(role)
        utility = LinearAdditiveUtilityFunction(
            values=[AffineFun(slope=slope, bias=bias)],
            weights=[1.0],
            outcome_space=space,
            reserved_value=grid.reserve(role),
        )
        mechanism.add(negotiator(agents[role]), ufun=utility)
    state = mechanism.run()
    assert not state.has_error and not state.broken, f"{grid.name}: {state}"
    ids = mechanism.negotiator_ids
    offers = []
    for turn, (step, author, outcome) in enumerate(mechanism.extended_trace):
        assert author == ids[turn % 2] and step == turn // 2, "turns must alternate"
        offers.append(grid.price(outcome[0]))
    deal = None if state.agreement is None else grid.price(state.agreement[0])
    assert deal is None or deal == offers[-1], "a deal is at the standing offer"
    return offers, deal, RepeatLast.repeats > 0


class TimeDependent:
    """The README's formulas of boulware, linear and conceder."""

    def __init__(self, grid, role, strategy):
        self.grid, self.role, self.exponent = grid, role, EXPONENTS[strategy]
        self.floor = max(grid.reserve(role), 0.0)

    def act(self, own_turn, received):
        t = (own_turn + 1) / (self.grid.steps + 1)
        low = self.floor + (1 - self.floor) * (1 - t**self.exponent) - STRATEGY_EPS
        low = min(max(low, self.floor), 1.0)
        if received:
            standing = self.grid.utility(self.role, received[-1])
            # At the floor itself both sides of the comparison are the same expression.
            assert low == self.floor or abs(standing - low) > MARGIN, "too close to call"
            if low <= standing <= 1.0:
                return None
        count = self.grid.count
        if self.role == "buyer":
            exact = count * (1 - low + SEARCH_EPS)
            k = math.floor(exact)
        else:
            exact = count * (low - SEARCH_EPS)
            k = math.ceil(exact)
        assert abs(exact - round(exact)) > count * MARGIN, "too close to call"
        return min(max(k, 0), count)


class Micro:
    """The README's rules of MiCRO, repeating the last new own offer."""

    def __init__(self, grid, role):
        self.grid, self.role, self.made = grid, role, 0
        reserve = grid.reserve(role)
        order = range(grid.count + 1) if role == "buyer" else range(grid.count, -1, -1)
        self.rational = [k for k in order if grid.utility(role, k) >= reserve]

    def act(self, _own_turn, received):
        ready = self.made <= len(set(received))
        has_next = self.made < len(self.rational)
        if received:
            if not ready:
                mine = self.grid.utility(self.role, self.rational[self.made - 1])
            elif has_next:
                mine = self.grid.utility(self.role, self.rational[self.made])
            else:
                mine = self.grid.reserve(self.role)
            if self.grid.utility(self.role, received[-1]) >= mine:
                return None
        if ready and has_next:
            self.made += 1
        return self.rational[self.made - 1]


def play_formulas(grid, agents):
    """Returns (offers in cents, deal in cents or None), by the README alone."""
    roles = grid.roles()
    seats = [
        Micro(grid, role) if agents[role] == "micro" else TimeDependent(grid, role, agents[role])
        for role in roles
    ]
    made = [[], []]
    offers = []
    for turn in range(2 * grid.steps):
        seat = turn % 2
        k = seats[seat].act(turn // 2, made[1 - seat])
        if k is None:
            return offers, offers[-1]
        made[seat].append(k)
        offers.append(grid.price(k))
    return offers, None


def play(scenario, buyer, seller):
    grid, agents = Grid(scenario), {"buyer": buyer, "seller": seller}
    offers, deal, repeats = play_negmas(grid, agents)
    name = f"{grid.name}/{buyer}-{seller}"
    worked_out = play_formulas(grid, agents)
    assert (offers, deal) == worked_out, f"{name}: NegMAS {offers, deal}, formulas {worked_out}"
    return {
        "id": name,
        "buyer": buyer,
        "seller": seller,
        "opener": grid.opener,
        "low": grid.low,
        "high": grid.high,
        "tick": grid.tick,
        "budget": grid.budget,
        "cost": grid.cost,
        "turn_limit": 2 * grid.steps,
        "repeats": repeats,
        "offers": offers,
        "deal": deal,
    }


def main():
    if negmas.__version__ != NEGMAS_VERSION:
        sys.exit(f"error: NegMAS is {negmas.__version__}, the cases are for {NEGMAS_VERSION}")
    matches = [play(s, b, c) for s in SCENARIOS for b in STRATEGIES for c in STRATEGIES]
    if "--check" in sys.argv[1:]:
        recorded = json.loads(CASES.read_text())["matches"]
        if recorded != matches:
            sys.exit(f"error: `{CASES}` differs from what NegMAS plays now")
        print(f"{len(matches)} matches as recorded")
        return
    lines = ",\n".join(json.dumps(match) for match in matches)
    head = f'"negmas": "{negmas.__version__}", "python": "{platform.python_version()}"'
    CASES.write_text(f'{{{head}, "matches": [\n{lines}\n]}}\n')
    deals = sum(match["deal"] is not None for match in matches)
    repeats = sum(match["repeats"] for match in matches)
    print(f"{len(matches)} matches, {deals} deals, {repeats} with repeated MiCRO offers")


if __name__ == "__main__":
    main()
