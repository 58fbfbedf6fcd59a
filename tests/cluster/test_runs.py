"""Runs on other machines: the same numbers as here, and no outcome that was lost, spoiled or made up."""

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpcalc.errors import SpecError, WorkerLost
from dpcalc.training.audit import estimate as audit
from dpcalc.training.run import ensemble
from dpcalc.training.run import remote as elsewhere
from dpcalc.training.run import remote as travel
from dpcalc.training.run.domain import Ball
from dpcalc.training.run.remote import There
from tests.cluster.fakes import Faulty, KilledWorker, joined
from tests.soundness.campaign import campaign
from tests.training.test_audit import RUNS, pairs_of

SETUP = audit.Setup(2000, 3, 1, 0.9)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "_NUMBERS", 1)
    monkeypatch.setattr(ensemble, "_ENTRIES", 1 << 8)


def there(fault: Callable[[str, str], Any] = lambda _, text: text, **more: Any) -> There:
    return There(joined(Faulty(fault, **more)), 5)


@pytest.mark.parametrize(("algorithm", "given"), [RUNS[3], RUNS[6]])
def test_an_audit_elsewhere_is_the_audit_here(algorithm: str, given: dict[str, Any]) -> None:
    pairs = pairs_of(algorithm, **given)
    here = audit.audit(pairs, 1e-3, SETUP)
    seen: list[int] = []
    found = audit.audit(pairs, 1e-3, SETUP, lambda done, _: seen.append(done), there(late=random.Random(0)))
    assert audit.to_json(found, None, None) == audit.to_json(here, None, None)
    assert seen == sorted(seen)


def test_replicas_elsewhere_have_the_bits_of_replicas_here() -> None:
    pair = pairs_of("shuffled-epochs", records=5, epochs=2, batch_size=2)[0]
    here = ensemble.train(pair.plan, pair.first, 1000, 7, workers=1)
    assert np.array_equal(ensemble.train(pair.plan, pair.first, 1000, 7, there=there()), here)
    with pytest.raises(SpecError):
        ensemble.train(pair.plan, pair.first, 1000, 7, there=there(), statistic=np.mean)


def _outcomes(change: Callable[[Any], Any]) -> Callable[[str, str], str]:
    """Return a fault of a worker that forges: everything fits but the outcomes."""

    def forged(_: str, text: str) -> str:
        from dpcalc.cluster.calls import _hash

        head, _, answer = text.partition("\n")
        said = json.loads(answer)
        changed = json.dumps({**said, "outcomes": travel.written(change(travel.read(said["outcomes"])))})
        return json.dumps({**json.loads(head), "sha256": _hash(changed)}) + "\n" + changed

    return forged


@pytest.mark.parametrize(
    "change",
    [
        lambda found: (), lambda found: found[:-1], lambda found: (*found, found[0]), lambda found: (1.0,),
        lambda found: (found[0][:-1], *found[1:]), lambda found: tuple(one.astype(np.int64) for one in found),
        lambda found: {}, lambda found: "text",
    ],
)  # fmt: skip
def test_outcomes_of_another_shape_are_refused(change: Callable[[Any], Any]) -> None:
    pair = pairs_of("pnsgd", records=6, index=4)[0]
    with pytest.raises(WorkerLost):
        ensemble.train(pair.plan, pair.first, 600, 7, there=there(_outcomes(change)))


@pytest.mark.parametrize("change", [lambda x: x + 0.5, lambda x: -x - 1, lambda x: x + 1e6, lambda x: x * np.nan])
def test_counts_that_are_none_are_refused(change: Callable[[Any], Any]) -> None:
    def forged(found: Any) -> Any:
        return tuple(change(one) if one.shape[0] == 1 else one for one in found)

    with pytest.raises(WorkerLost):
        audit.audit(pairs_of("pnsgd", records=6, index=4), 1e-3, SETUP, None, there(_outcomes(forged)))


def test_workers_that_die_cost_no_run_and_a_block_that_kills_them_is_named() -> None:
    pair = pairs_of("pnsgd", records=6, index=4)[0]
    here = ensemble.train(pair.plan, pair.first, 1000, 7, workers=1)
    chance = random.Random(2)

    def dying(_: str, text: str) -> str:
        if chance.random() < 0.3:
            raise KilledWorker("gone")
        return text

    assert np.array_equal(ensemble.train(pair.plan, pair.first, 1000, 7, there=there(dying)), here)

    def fatal(document: str, text: str) -> str:
        asked = json.loads(document)
        if asked["first"] <= 2 < asked["first"] + asked["count"]:
            raise KilledWorker("gone")
        return text

    with pytest.raises(WorkerLost, match="block 2 of the runs"):
        ensemble.train(pair.plan, pair.first, 1000, 7, there=there(fatal))


def test_too_much_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "MOST_BYTES", 100)
    pair = pairs_of("pnsgd", records=6, index=4)[0]
    with pytest.raises(SpecError, match="would be sent"):
        ensemble.train(pair.plan, pair.first, 600, 7, there=there())


def test_what_travels_comes_back_bit_for_bit() -> None:
    for algorithm, given in RUNS:
        for pair in pairs_of(algorithm, **given):
            text = travel.written(pair)
            assert travel.written(travel.read(text)) == text
            assert type(travel.read(text).plan.order) is type(pair.plan.order)
    value = {"a": (1, 2.5, None, True, np.array([[0.1, -0.0, np.inf]])), "b": Ball(2.0), "c": Ball()}
    assert travel.written(travel.read(travel.written(value))) == travel.written(value)


@pytest.mark.parametrize("value", [object(), random.Random(0), np.array(["a"]), np.array([object()]), {1}])
def test_what_cannot_travel_is_refused(value: Any) -> None:
    with pytest.raises(SpecError, match="does not travel"):
        travel.written(value)


@pytest.mark.parametrize(
    "text",
    [
        '{"class": "os:system", "fields": "true"}',
        '{"class": "dpcalc.errors:debugging", "fields": {}}',
        '{"class": "dpcalc.training.run.remote:Executor", "fields": {}}',
        '{"array": "", "kind": "|O8", "shape": [0]}',
    ],
)
def test_nothing_but_records_of_this_package_is_made(text: str) -> None:
    with pytest.raises(SpecError):
        travel.read(text)


def test_a_soundness_campaign_elsewhere_is_the_one_here() -> None:
    here = campaign(40, 1, only=("released.advanced",))
    found = campaign(40, 1, only=("released.advanced",), there=there())
    assert (found.outcomes, found.largest) == (here.outcomes, here.largest)
