"""A few thousand cases of the campaign, and that its machinery would notice what it is there to notice."""

import math
import random
from collections import Counter
from typing import Any

import pytest
from flint import arb

from dpcalc.certify.case import may_stay_open
from dpcalc.certify.guarantee import Profile
from dpcalc.certify.numerics.balls import log_delta, precision
from dpcalc.certify.numerics.sums import BELOW, PROVED, enclosed, expm1_reciprocals, hockey_sticks
from dpcalc.certify.risk.costs import PRICES
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import Definition, definitions
from dpcalc.theorems.record import all_bounds
from tests.oracles import cases
from tests.soundness import compare, front
from tests.soundness.campaign import campaign, report
from tests.soundness.compare import ABOVE, FLOOR, UNREACHED, judged, verdict
from tests.soundness.conversions import CONVERSIONS
from tests.soundness.generate import COMPOSED_COSTS, Case, chances, draw
from tests.soundness.shrink import line, shrunk

SEED = 20261121
SUBJECTS = sorted({*chances(), *CONVERSIONS})
SLOW = COMPOSED_COSTS  # up to a second a case
WIDE = ("shifted.laplace", "shifted.laplace_domain")
"""Where step sizes and noise span twenty orders of magnitude, their search may end a few per cent above its optimum."""


@pytest.mark.campaign
@pytest.mark.parametrize("subject", SUBJECTS)
def test_no_value_is_below_the_truth(subject: str) -> None:
    tally = campaign(cases(most(subject)), SEED, only=(subject,))
    assert not tally.failures, report(tally)
    assert not tally.loose, report(tally)
    assert {PROVED, FLOOR} & set(tally.outcomes[subject])


def most(subject: str) -> int:
    """The random cases of a campaign: some for every subject, and more where a case is cheap."""
    share = chances()[subject] / sum(chances().values())
    return 12 if subject in SLOW else max(25, round(3000 * share))


def few(subject: str) -> int:
    """The random cases of the default tier: about half a second's worth, which finds a wrong constant, sign or case."""
    if subject in WIDE:
        return 4
    return min(60, max(4, round(300 * chances()[subject])))


def test_what_is_said_to_have_a_definition_has_one() -> None:
    """Known without python-flint: what a record says is uncertified is what the table of definitions leaves open."""
    written = {id for id, definition in definitions().items() if not definition.floor}
    written |= set(PRICES)
    guarantees = [bound for bound in all_bounds().values() if bound.guarantee]
    assert {bound.id for bound in guarantees if bound.certifiable} == {b.id for b in guarantees} & written


@pytest.mark.few(53)
@pytest.mark.parametrize("subject", [subject for subject in SUBJECTS if subject not in SLOW])
def test_a_few_cases_of_every_subject(subject: str) -> None:
    tally = campaign(few(subject), SEED, only=(subject,))
    assert not tally.failures, report(tally)
    assert not tally.loose, report(tally)


def test_every_bound_is_a_subject_or_has_no_definition() -> None:
    for id, bound in all_bounds().items():
        if id not in chances() and (bound.guarantee or bound.kind == "lower") and not bound.price:
            # Compositions and what is integrated have tests of their own: test_compositions.py, test_released_renyi.py.
            composed = may_stay_open(id)
            assert bound.uncertified or bound.kind == "lower" or composed
            assert composed or id not in definitions()


_SHORT = {"noise": "gaussian", "scale": 1.0, "step_size": 1.0, "smoothness": 1.0}
_KINK = {"records": 2, "index": 1, "batch_size": 1, "sensitivity": 100.0, "noise": "laplace"}

KNOWN: tuple[tuple[str, dict[str, Any]], ...] = (
    # 1 - 2 eta beta rho/(beta + rho) cancels: what holds for the decimals was a little below what does for the doubles.
    (
        "contraction.paper_product",
        {"records": 2, "index": 1, "batch_size": 1, "sensitivity": 1.0, "scale": 1.0, "smoothness": 1.3,
         "step_size": 0.76923, "strong_convexity": 1.3, "diameter": 1.0, "noise": "gaussian", "epsilon": 1.0,
         "loss_class": "convex-smooth"},
    ),
    (
        "contraction.paper_product",
        {"records": 2, "index": 1, "batch_size": 1, "sensitivity": 1.0, "scale": 1.0, "smoothness": 1.0,
         "step_size": 0.9999999999999998, "strong_convexity": 1.0, "diameter": 1.0, "noise": "gaussian",
         "epsilon": 0.0, "loss_class": "convex-smooth"},
    ),
    # c D, or eta times the scale, rounds to a short number that it is not.
    ("contraction.product", _KINK | {"displacement": 3.04, "diameter": 1.3157894736842106, "step_size": 2.0,
                                     "scale": 2.0, "epsilon": 1.0}),
    ("contraction.product", _KINK | {"displacement": 0.7, "diameter": 10.0, "step_size": 1.0, "scale": 1.0,
                                     "epsilon": 7.0}),
    ("contraction.product", _KINK | {"displacement": 0.1, "diameter": 10.0, "step_size": 1.0, "scale": 1.0,
                                     "epsilon": 1.0}),
    ("contraction.product", _KINK | {"displacement": 1.0, "diameter": 7.0, "step_size": 0.7, "scale": 10.0,
                                     "epsilon": 1.0}),
    ("contraction.product", _KINK | {"displacement": 1.0, "diameter": 1.0, "step_size": 3.04,
                                     "scale": 1.3157894736842104, "epsilon": 0.25}),
    # A short last batch of its own, or over the nominal size.
    *(
        ("shuffle.mixture", {**_SHORT, "last_batch": last, "records": n, "batch_size": b, "sensitivity": own * b,
                             "epsilon": epsilon})
        for last in ("own", "nominal")
        for n, b, own, epsilon in ((30, 4, 25.6, 300.0), (48, 13, 0.0273, 1.0), (10**12 + 1, 10, 3.0, 0.1),
                                   (10**12 + 1, 10, 3.0, 0.0))
    ),
)  # fmt: skip
"""Cases at which rounding, or a short batch, decides."""


@pytest.mark.parametrize(("subject", "values"), KNOWN)
def test_where_rounding_decides(subject: str, values: dict[str, Any]) -> None:
    assert judged(Case(subject, values)).outcome == PROVED


# --- the machinery


def wrong(definition: Definition, share: float) -> Definition:
    """A definition whose formula is larger by a share: the bound is then too small."""
    if definition.gives is Profile:
        return definition._replace(formula=lambda v: definition.formula(v) + arb(share))
    return definition._replace(formula=lambda v: definition.formula(v) * (1 + arb(share)))


@pytest.mark.parametrize(
    "subject",
    ["iteration.pnsgd", "iteration.stop", "iteration.skip_rdp", "contraction.product", "shuffle.hybrid",
     "noisy_gd.contraction", "multi_epoch.cyclic_contraction", "released.optimal", "stepwise.product"],
)  # fmt: skip
def test_a_bound_that_is_too_small_is_caught(subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By as little as a millionth."""
    table = dict(definitions())
    table[subject] = wrong(table[subject], 1e-6)
    monkeypatch.setattr(compare, "definitions", lambda: table)
    verdicts = [judged(draw(SEED, number, (subject,))) for number in range(30)]
    assert any(v.outcome == BELOW for v in verdicts)


def test_a_bound_that_is_too_large_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = dict(definitions())
    table["iteration.pnsgd"] = wrong(table["iteration.pnsgd"], -1e-9)
    monkeypatch.setattr(compare, "definitions", lambda: table)
    assert judged(draw(SEED, 0, ("iteration.pnsgd",))).outcome == ABOVE


def test_a_lower_bound_that_is_too_large_is_caught() -> None:
    definition = definitions()["linear.pass"]
    values = {"records": 4, "index": 1, "batch_size": 1, "sensitivity": 2.0, "noise_std": 1.0}
    assert verdict(definition, values, 1.0, False).outcome == PROVED
    assert verdict(definition, values, math.nextafter(1.0, 2.0), False).outcome == BELOW
    assert verdict(definition, values, 0.5, False).outcome == ABOVE


def test_a_failure_is_shrunk_to_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    table = dict(definitions())
    table["iteration.pnsgd"] = wrong(table["iteration.pnsgd"], 1e-6)
    monkeypatch.setattr(compare, "definitions", lambda: table)
    case = next(c for c in (draw(5, k, ("iteration.pnsgd",)) for k in range(99)) if judged(c).outcome == BELOW)
    plain = shrunk(case, lambda tried: judged(tried).outcome == BELOW)
    assert judged(plain).outcome == BELOW
    shown = line(plain)
    assert "\n" not in shown
    assert shown == (
        "tests.formulas.evaluated(dpcalc.theorems.one_pass.iteration.pnsgd, records=1, index=1, batch_size=1, "
        "last_batch='own', sensitivity=1.0, noise_std=1.0)"
    )
    tally = campaign(40, 5, only=("iteration.pnsgd",))
    assert tally.failures
    assert shown in report(tally)


def test_a_case_is_what_its_seed_and_number_say() -> None:
    for number in range(40):
        first, again = draw(3, number), draw(3, number)
        assert line(first) == line(again)
    assert len({line(draw(3, number)) for number in range(40)}) > 35
    assert line(draw(3, 0)) != line(draw(4, 0))


def test_the_tally_does_not_depend_on_how_it_is_split() -> None:
    whole, first, rest = campaign(300, 11), campaign(100, 11), campaign(200, 11, first=100)
    for subject, counted in whole.outcomes.items():
        assert counted == first.outcomes.get(subject, Counter()) + rest.outcomes.get(subject, Counter())


def test_both_readings_count() -> None:
    """0.1 is more than a tenth: a value between the two is above one reading and below the other."""
    definition = definitions()["iteration.local"]
    values = {"records": 1, "index": 1, "batch_size": 1, "sensitivity": 0.1, "noise_std": 1.0}
    with precision(200):
        between = RunInputs(values, True).sensitivity + (RunInputs(values, False).sensitivity - arb("0.1")) / 2
    below = math.nextafter(0.1, 0.0)
    assert between < RunInputs(values, False).sensitivity
    assert verdict(definition, values, 0.1, True).outcome == PROVED
    assert verdict(definition, values, 0.1, False).outcome == PROVED
    assert {verdict(definition, values, below, typed).outcome for typed in (True, False)} == {BELOW}
    values["sensitivity"] = 0.3  # a little less than three tenths
    assert verdict(definition, values, 0.3, True).outcome == BELOW
    assert verdict(definition, values, 0.3, False).outcome == PROVED


def test_enclosures_print_outwards() -> None:
    for seed in range(200):
        r = random.Random(seed)
        a, b = r.uniform(-9, 9), r.uniform(-9, 9)
        with precision(192):
            ball = (arb(a) * arb(b)).exp() - 3
        low, high = enclosed(lambda: ball).ends(r.randint(3, 25))  # noqa: B023
        with precision(400):
            assert arb(low) <= ball
            assert arb(high) >= ball


# --- the sums, against term by term


@pytest.mark.parametrize(
    ("epsilon", "ratio", "count"),
    [(0.5, 1.0, 3000), (0.0, 2.0, 2500), (1.0, 40.0, 4000), (0.01, 30.0, 5000), (20.0, 1.0, 1000), (3.0, 90.0, 6000)],
)
def test_sums_of_hockey_sticks(epsilon: float, ratio: float, count: int) -> None:
    with precision(192):
        e, r = arb(epsilon), arb(ratio)
        total = hockey_sticks(e, r, count)
        direct = sum((log_delta(e, r / arb(k).sqrt()).exp() for k in range(1, count + 1)), arb(0))
        assert total.overlaps(direct)
        assert total.rel_accuracy_bits() > 60
        tail = sum((log_delta(e, r / arb(k).sqrt()).exp() for k in range(7, count + 1)), arb(0))
        assert hockey_sticks(e, r, count, 7).overlaps(tail)


@pytest.mark.parametrize(("x", "count"), [(0.3, 1000), (25.0, 700), (100.0, 2000), (1e-9, 500)])
def test_sums_of_exponentials(x: float, count: int) -> None:
    with precision(192):
        total = expm1_reciprocals(arb(x), count)
        direct = sum(((arb(x) / k).expm1() for k in range(1, count + 1)), arb(0))
        assert total.overlaps(direct)
        assert total.rel_accuracy_bits() > 100


def test_what_turns_on_rounding_is_not_held_against_a_bound() -> None:
    """At epsilon = 2 epsilon_0 two passes tell nothing, and just below it some 1e-17."""
    values = {"epochs": 2, "epoch_epsilon": 0.25, "epoch_delta": 0.0, "epsilon": 0.5}
    assert judged(Case("released.optimal", values)).outcome == PROVED
    assert judged(Case("released.optimal", {**values, "epsilon": 0.45})).outcome == PROVED


def test_what_is_out_of_reach_is_said_so() -> None:
    values = {"records": 10**9, "index": 1, "batch_size": 1, "sensitivity": 1.0, "noise_std": 1.0, "order": 9.0}
    assert judged(Case("iteration.stop_harmonic", {**values, "step_size": 1.0, "smoothness": 1.0})).outcome == UNREACHED


def test_noise_without_measure_is_counted_by_the_record_alone() -> None:
    """Found at random: past a ratio of 1e-90 the mixture gives way to one message, which is purely private."""
    proved, _ = front.answered("shuffled", {
        "records": 9, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 1.0, "strong_convexity": 0.0,
        "noise": "laplace", "delta": 7e-190, "epsilon": 1.0,
    })  # fmt: skip
    assert proved
