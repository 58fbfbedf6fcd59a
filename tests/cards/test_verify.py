"""A card verifies; a card of which anything at all was altered does not."""

import copy
import functools
import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import dpcalc
from dpcalc.cards import card as making
from dpcalc.cards import verify as verifying
from dpcalc.cards.asked import hash_of, seal_of
from dpcalc.cards.card import card_of, card_text
from dpcalc.cards.document import KEYWORDS, card_of_text, objection
from dpcalc.cards.markdown import card_markdown
from dpcalc.cards.verify import Verification, verify
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.numerics.floats import up
from dpcalc.references import read
from dpcalc.report import Report

SCHEMA = json.loads(read("card-1.schema.json"))
PASS: dict[str, Any] = {"records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.5}
STREAM = {"records": 100, "lipschitz": 10, "smoothness": 1, "step_size": 0.01, "diameter": 1}
SAMPLED = {"records": 1000, "batch_size": 100, "epochs": 1, "noise_multiplier": 2, "clip": 1, "sampling": "poisson"}
TUNED = {"epsilon": 0.1, "delta": 1e-7, "times": 3, "tuning": {"distribution": "geometric", "mean": 10}}
RUN = {"algorithm": "pnsgd", **PASS, "noise_std": 3}

REPORTS: dict[str, Callable[[], Report]] = {
    "epsilon": lambda: dpcalc.rdp(**PASS, noise_std=1, delta=1e-5),
    "delta": lambda: dpcalc.rdp(**PASS, noise_std=1, epsilon=1),
    "tiny delta": lambda: dpcalc.rdp(**PASS, noise_std=1, delta="1e-5000"),
    "mu": lambda: dpcalc.rdp(**PASS, noise_std=1),
    "orders": lambda: dpcalc.rdp(**PASS, noise_std=1, order=[2, 4.5]),
    "noise": lambda: dpcalc.rdp(**PASS, epsilon=1, delta=1e-5),
    "index": lambda: dpcalc.rdp(**PASS, noise_std=5, epsilon=1, delta=1e-5, solve="index"),
    "numpy": lambda: dpcalc.rdp(**PASS, noise_std=np.float64(2.0), delta=1e-5),
    "group": lambda: dpcalc.rdp(**PASS, noise_std=2, delta=1e-5, group_size=3),
    "sweep": lambda: dpcalc.rdp(**PASS, noise_std=[1, 2], delta=1e-5),
    "asked": lambda: dpcalc.rdp(**PASS, noise_std=1, delta=1e-5, fpr=[0.02], prior=0.25, baseline=0.001),
    "certified": lambda: dpcalc.rdp(**PASS, noise_std=1, delta=1e-5, certify=True),
    "compare": lambda: dpcalc.compare(algorithm="noisy-gd", **PASS, steps=5, noise_std=1, delta=1e-3),
    "hockey-stick": lambda: dpcalc.hockey_stick(**PASS, index=50, noise_std=2, epsilon=1),
    "shuffle": lambda: dpcalc.shuffle(**{**PASS, "records": 20}, noise_std=2, delta=1e-6),
    "online": lambda: dpcalc.online(**STREAM, c1=100, c2=100, decay_exponent=1.5, epsilon=1),
    "multi-epoch": lambda: dpcalc.multi_epoch(**PASS, epochs=2, noise_std=2, delta=1e-6),
    "dp-sgd": lambda: dpcalc.dp_sgd(algorithm="dp-sgd-gradient", records=20, lipschitz=1, noise_std=2, delta=1e-6),
    "shifted": lambda: dpcalc.shifted(steps=10, shift=0.1, contraction=0.9, step_size=0.1, noise_std=2, delta=1e-6),
    "unlearn": lambda: dpcalc.unlearn(
        clean_steps=9, start_distance=0.1, contraction=0.9, step_size=0.1, noise_std=2, delta=1e-6
    ),
    "one way": lambda: dpcalc.compare(algorithm="dp-sgd", **SAMPLED, adjacency="add", delta=1e-5),
    "convert": lambda: dpcalc.convert(mu=1, delta=1e-5),
    "enough": lambda: dpcalc.convert(epsilon=1, delta=1e-5, to="mu"),
    "curve": lambda: dpcalc.convert(rdp={2: 0.5, 8: 1.5}, delta=1e-5),
    "risk": lambda: dpcalc.risk(mu=1, fpr=0.01),
    "point": lambda: dpcalc.risk(epsilon=1, delta=1e-5),
    "ledger": lambda: dpcalc.ledger({"census": {"mu": 0.2}, "best": TUNED, "run": RUN}, delta=1e-5),
    "parts": lambda: dpcalc.ledger(
        {"a": {"mu": 1, "part": "north"}, "b": {"mu": 2, "part": "south"}}, partition="kept", delta=1e-5, epsilon=20
    ),
    "training": lambda: dpcalc.train(synthetic="logistic", records=50, dimension=2, radius=1, epsilon=1, delta=1e-3),
}


SLOW = ("dp-sgd", "shuffle")


def mostly_in_campaigns(names: Iterable[str], *quick: str) -> list[Any]:
    return [pytest.param(name, marks=() if name in quick else pytest.mark.campaign) for name in names]


@functools.cache
def made(name: str) -> str:
    return card_text(card_of(REPORTS[name]()))


def card(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(made(name))
    return found


@pytest.mark.few(9)
@pytest.mark.parametrize("name", mostly_in_campaigns(REPORTS, *(name for name in REPORTS if name not in SLOW)))
def test_a_card_of_every_kind_of_answer_verifies(name: str) -> None:
    read_back = card_of_text("card", made(name).encode())
    jsonschema.Draft202012Validator(SCHEMA).validate(read_back)
    found = verify(read_back, certify=False)
    assert found.mismatches == ()
    assert card_markdown(read_back).count("**") >= 2


@pytest.mark.parametrize("name", ["epsilon", "noise", "delta", "mu"])
def test_a_card_states_the_number_of_the_report(name: str) -> None:
    best = REPORTS[name]().cases[0].best
    assert best is not None
    [number] = card(name)["cases"][0]["guarantee"]["numbers"]
    assert (number["quantity"], number["value"]) == (best.quantity, best.value)


def test_the_methods_and_functions_make_the_same_card() -> None:
    report = REPORTS["epsilon"]()
    assert report.card() == dpcalc.card(report) == card("epsilon")
    assert dpcalc.verify(report.card(), certify=False).passed


def test_the_guarantee_is_proved_where_it_can_be() -> None:
    found = verify(card("epsilon"))
    assert found.passed
    assert "1 number proved in ball arithmetic" in found.checked


def test_nothing_is_stated_of_a_cost_or_of_nothing() -> None:
    cost = dpcalc.utility(
        loss="logistic", feature_bound=1, records=1000, dimension=2, radius=1, algorithm="stop", epsilon=1, delta=1e-6
    )
    with pytest.raises(SpecError, match="no guarantee that a card could state"):
        card_of(cost)
    with pytest.raises(SpecError, match="no case has a guarantee to put on a card"):
        card_of(Report("rdp", ()))


def test_many_cases_are_refused() -> None:
    report = REPORTS["convert"]()
    with pytest.raises(SpecError, match="at most 100"):
        card_of(report._replace(cases=report.cases * 101))


# --- alterations ------------------------------------------------------------------------------------------------------


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where every value of a document is, the document itself first."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from places(inner, (*at, key))


def variants(value: Any) -> Iterator[Any]:
    """Yield values that are another one, each as little as can be."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, float(value), str(value))
    elif isinstance(value, float):
        yield from (math.nextafter(value, math.inf), math.nextafter(value, -math.inf), None, repr(value))
        if value == 0.0:
            yield -value
        if value.is_integer():
            yield int(value)
    elif isinstance(value, str):
        yield from (value + " ", value.swapcase(), value[:-1], None, "\ud800", "10^-6")
    elif value is None:
        yield from (0, "", {}, False)
    elif isinstance(value, list):
        yield from (value[::-1], value[1:], [*value, *value[-1:]], [*value, None], None)
    else:
        yield from ({**value, "extra": None}, None, *({k: v for k, v in value.items() if k != lost} for lost in value))


def altered(document: dict[str, Any], at: tuple[Any, ...], value: Any) -> dict[str, Any]:
    found = copy.deepcopy(document)
    inside: Any = found
    for key in at[:-1]:
        inside = inside[key]
    inside[at[-1]] = value
    return found


def alterations(document: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield the document with one value after another replaced by another one."""
    for at in places(document):
        original = functools.reduce(lambda inside, key: inside[key], at, document)  # type: ignore[arg-type]
        for value in variants(original):
            if json.dumps(value) != json.dumps(original) and at:
                yield at, altered(document, at, value)


def outcome(document: Any) -> Verification | DpcalcError:
    try:
        return verify(card_of_text("card", json.dumps(document).encode()), certify=False)
    except DpcalcError as error:
        return error


def fails(document: Any) -> bool:
    found = outcome(document)
    return isinstance(found, DpcalcError) or not found.passed


@pytest.fixture
def remembering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute each question once."""
    known: dict[str, Any] = {}
    compute = verifying.answer

    def answer(query: Any) -> Any:
        if repr(query) not in known:
            known[repr(query)] = compute(query)
        return known[repr(query)]

    monkeypatch.setattr(verifying, "answer", answer)


ALTERED = ("epsilon", "certified", "orders", "ledger", "curve")


SEALED_ALONE = {("dpcalc",), ("model",), ("sha256",)}
"""What nothing in the card leads to, but for its seal."""


@pytest.mark.usefixtures("remembering")
@pytest.mark.parametrize("name", mostly_in_campaigns(ALTERED, "curve"))
def test_whatever_is_altered_fails(name: str) -> None:
    count = 0
    for at, document in alterations(card(name)):
        assert fails(document), at
        count += 1
    assert count > 200


@pytest.mark.usefixtures("remembering")
@pytest.mark.parametrize("name", mostly_in_campaigns(ALTERED, "epsilon"))
def test_whatever_is_altered_fails_though_the_hashes_are_renewed(name: str) -> None:
    """All but what was asked, of which another question is another card, and what stands in no relation to it."""
    count = 0
    for at, document in alterations(card(name)):
        if at in SEALED_ALONE or at[:1] != ("cases",) or at[2:3] in (("asked",), ("name",)) or len(at) < 3:
            continue
        assert fails({**document, "sha256": seal_of(document)}), at
        count += 1
    assert count > 200


def test_another_question_with_the_numbers_of_this_one_fails() -> None:
    document = card("epsilon")
    for name, value in (("noise_std", 1.5), ("records", 200), ("step_size", 0.25)):
        other = altered(document, ("cases", 0, "asked", "given", name), value)
        other["cases"][0]["configuration_sha256"] = hash_of(other["cases"][0]["asked"])
        assert fails({**other, "sha256": seal_of(other)})


def test_a_mismatch_says_what_differs() -> None:
    document = altered(card("epsilon"), ("cases", 0, "guarantee", "numbers", 0, "value"), 0.5)
    [number, seal] = verify(document, certify=False).mismatches
    assert number.place == "/cases/0/guarantee/numbers/0/value"
    assert (float(number.given), seal.place) == (0.5, "/sha256")
    assert float(number.recomputed) == card("epsilon")["cases"][0]["guarantee"]["numbers"][0]["value"]


def test_what_differs_by_rounding_alone_fails_and_is_told() -> None:
    value = card("epsilon")["cases"][0]["guarantee"]["numbers"][0]["value"]
    for other, told in ((math.nextafter(value, 2.0), True), (value * 1.001, False)):
        document = altered(card("epsilon"), ("cases", 0, "guarantee", "numbers", 0, "value"), other)
        found = verify({**document, "sha256": seal_of(document)}, certify=False)
        assert not found.passed
        assert any("only by rounding" in remark for remark in found.remarks) == told


def test_a_text_that_reads_the_same_as_json_verifies() -> None:
    document = card("epsilon")
    for text in (json.dumps(document, indent=7), json.dumps(document, sort_keys=True)):
        assert verify(card_of_text("card", text.encode()), certify=False).passed


# --- other versions ---------------------------------------------------------------------------------------------------


def stating(factor: float, monkeypatch: pytest.MonkeyPatch, version: str) -> dict[str, Any]:
    """Return a card of a dpcalc whose guarantee, and whose risk, is so many times that of this one."""
    from dpcalc.cards.asked import answer

    def other(query: Any) -> Any:
        case = answer(query)
        results = tuple(
            r._replace(value=factor * r.value, epsilon=factor * r.value) if r.best else r for r in case.results
        )
        risk = {**(case.risk or {})}
        risk["advantage"] = {**risk["advantage"], "value": min(1.0, factor * risk["advantage"]["value"])}
        advantage = risk["advantage"]["value"]
        guess = case.guess._replace(probability=up(0.5 + 0.5 * advantage, 2.0), advantage=advantage)
        return case._replace(results=results, risk=risk, guess=guess)

    report = REPORTS["epsilon"]()
    best = report.cases[0].best
    assert best is not None
    said = report.cases[0]._replace(results=(best._replace(value=factor * best.value),))
    with monkeypatch.context() as patched:
        patched.setattr(making, "answer", other)
        patched.setattr(making, "__version__", version)
        return card_of(report._replace(cases=(said,)))


@pytest.mark.parametrize(("factor", "version", "passes"), [
    (1.0, "0.0.9", True), (1.25, "0.0.9", True), (0.8, "0.0.9", False),
    (1.25, "99.0", True), (0.8, "99.0", False), (1.25, dpcalc.__version__, False),
])  # fmt: skip
def test_a_card_of_another_version_may_be_weaker_and_no_stronger(
    factor: float, version: str, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = verify(stating(factor, monkeypatch, version), certify=False)
    assert found.passed == passes
    assert any(version in remark for remark in found.remarks) == (version != dpcalc.__version__)
    if passes and factor > 1.0:
        assert any("also holds" in remark for remark in found.remarks)


@pytest.mark.few(2)
@pytest.mark.parametrize(("epochs", "passes"), [(0, False), (2, True), (2.5, False), (-1, False), (10**6, False)])
def test_a_weaker_number_of_another_version_is_one_that_a_run_can_have(epochs: float, passes: bool) -> None:
    run = {"records": 1000, "batch_size": 100, "noise_multiplier": 4, "clip": 1, "sampling": "poisson"}
    document = dpcalc.dp_sgd(**run, epsilon=2, delta=1e-5, solve="epochs").card()
    case = document["cases"][0]
    [number] = case["guarantee"]["numbers"]
    found = number["value"]
    assert found > 2
    number["value"] = type(found)(epochs) if epochs == int(epochs) else epochs
    document["dpcalc"] = "0.0.9"
    mismatches = verify({**document, "sha256": seal_of(document)}, certify=False).mismatches
    assert ("/cases/0/guarantee/numbers/0/value" not in {each.place for each in mismatches}) == passes


# --- schedules and recipes --------------------------------------------------------------------------------------------


def test_a_schedule_is_known_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("step_size,noise_std\n" + "0.1,2\n" * 20)
    stated = dpcalc.rdp(lipschitz=1, smoothness=1, schedule=path, delta=1e-5).card()
    assert str(tmp_path) not in card_text(stated)
    with pytest.raises(SpecError, match="with a schedule"):
        verify(stated)
    moved = tmp_path / "moved.csv"
    moved.write_bytes(path.read_bytes())
    assert verify(stated, schedule=str(moved)).passed
    moved.write_text(path.read_text().replace("0.1,2\n", "0.1,2.0\n", 1))
    assert [each.place for each in verify(stated, schedule=str(moved)).mismatches] == [
        "/cases/0/asked/schedule/sha256", "/cases/0/asked/schedule/bytes", "/cases/0/configuration_sha256",
    ]  # fmt: skip
    with pytest.raises(SpecError, match="no run with a schedule"):
        verify(card("epsilon"), schedule=str(path))


RECIPE = """
dpcalc: recipe/1
cases:
  one: {RUN, algorithm: pnsgd, records: 100, matrix: {noise_std: [2, 3]}, assert: epsilon <= 9}
  two: {RUN, algorithm: noisy-gd, records: 100, steps: 3, noise_std: 2}
  all: {command: ledger, entries: {a: {mu: 1}, b: {case: two}}, delta: 1e-6}
  left: {RUN, algorithm: pnsgd, records: 100, noise_std: 2, skip: later}
"""


def test_the_cases_of_a_recipe_are_on_one_card(tmp_path: Path) -> None:
    path = tmp_path / "budget.yaml"
    path.write_text(RECIPE.replace("RUN", "lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6"))
    stated = dpcalc.check(path).card()
    names = [case["name"] for case in stated["cases"]]
    assert len(names) == 4
    assert names[-2:] == ["two", "all"]
    assert verify(stated, certify=False).passed
    assert str(tmp_path) not in card_text(stated)


def test_markdown_counts_cases_without_a_name() -> None:
    assert [line for line in card_markdown(card("sweep")).splitlines() if line.startswith("#")] == [
        "# Privacy card", "## Case 1", "## Case 2",
    ]  # fmt: skip


def test_markdown_shows_names_as_they_are() -> None:
    stated = altered(card("epsilon"), ("cases", 0, "name"), "<script>|*x*\n# [a](b)")
    assert "## &lt;script>\\|\\*x\\*\\\\n# \\[a\\](b)\n" in card_markdown(stated)


# --- the schema -------------------------------------------------------------------------------------------------------


def test_the_reader_knows_every_word_of_the_schema() -> None:
    def words(part: Any, *, named: bool = False) -> Iterator[str]:
        if isinstance(part, dict):
            for word, inner in part.items():
                yield from () if named else (word,)
                yield from words(inner, named=not named and word in ("properties", "$defs"))
        elif isinstance(part, list):
            for inner in part:
                yield from words(inner)

    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(words(SCHEMA)) <= KEYWORDS


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["epsilon", "ledger"])
def test_the_reader_objects_to_what_the_schema_objects_to(name: str) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    verdicts = set()
    for at, document in alterations(card(name)):
        valid = validator.is_valid(document)
        assert (objection(document, SCHEMA) == "") == valid, at
        verdicts.add(valid)
    assert verdicts == {True, False}
