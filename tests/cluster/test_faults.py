"""Checks on clusters that lose, spoil, kill and delay: the same bytes, an error of one case, or no verdict."""

import asyncio
import json
import random
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

import pytest

import dpcalc
from dpcalc.cluster.calls import OtherVersions, Piece, spread, through, versions
from dpcalc.cluster.dask import ATTEMPTS, Cluster, answered, entered, sent
from dpcalc.errors import SpecError, WorkerDied, WorkerLost
from tests.cluster.fakes import Client, Faulty, KilledWorker, joined
from tests.recipes.conftest import Write, lines_of
from tests.recipes.conftest import write as write  # noqa: PLC0414 (a fixture)

CASES = """\
sweep:
  command: rdp
  matrix: {noise_std: [1, 2, 3, 4, 5], index: "1:8:1"}
  accept: one-index
  assert: epsilon <= 0.5
last: {algorithm: pnsgd, noise_std: 2, assert: epsilon <= 5}
"""


@pytest.fixture
def recipe(write: Write) -> str:
    return write(CASES)


def _lines(path: str, executor: Executor | None = None) -> list[str]:
    how: dict[str, Any] = {} if executor is None else {"executor": joined(executor), "attempts": ATTEMPTS}
    return lines_of([path], **how)


def _places(document: str) -> list[int]:
    places: list[int] = json.loads(document)["places"]
    return places


def _once(fault: Callable[[str], Any]) -> Callable[[str, str], Any]:
    """Return a fault of the first time that a document is sent."""
    seen = set[str]()

    def changed(document: str, text: str) -> Any:
        if document in seen:
            return text
        seen.add(document)
        return fault(text)

    return changed


def _raise(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_answers_changes_no_byte(recipe: str, seed: int) -> None:
    assert _lines(recipe, Faulty(late=random.Random(seed))) == _lines(recipe)


@pytest.mark.parametrize(
    "fault",
    [
        lambda text: None, lambda text: text[:-1], lambda text: text.replace('"epsilon": 0', '"epsilon": 1'),
        lambda text: _raise(CancelledError()), lambda text: _raise(OSError("away")),
        lambda text: _raise(KilledWorker("died")), lambda text: text.replace('"numpy": "', '"numpy": "9', 1),
    ],
)  # fmt: skip
def test_what_goes_wrong_once_changes_no_byte(recipe: str, fault: Callable[[str], Any]) -> None:
    assert _lines(recipe, Faulty(_once(fault))) == _lines(recipe)


@pytest.mark.parametrize(
    "fault",
    [
        lambda text: None, lambda text: text[:-1], lambda text: text.replace('"passed": true', '"passed": false'),
        lambda text: _raise(CancelledError()), lambda text: _raise(OSError("away")),
        lambda text: text.replace('"numpy": "', '"numpy": "9', 1),
    ],
)  # fmt: skip
def test_what_goes_wrong_always_is_an_error_and_no_verdict(recipe: str, fault: Callable[[str], Any]) -> None:
    executor = Faulty(lambda document, text: fault(text) if 3 in _places(document) else text)
    with pytest.raises(WorkerLost) as caught:
        _lines(recipe, executor)
    assert caught.value.exit_code == 4
    assert sum(3 in _places(document) for document in executor.sent) == ATTEMPTS


def test_the_answer_to_another_chunk_is_refused(recipe: str) -> None:
    answers: list[str] = []

    def another(_: str, text: str) -> str:
        answers.append(text)
        return answers[0]

    with pytest.raises(WorkerLost, match="not to what was asked"):
        _lines(recipe, Faulty(another))


@pytest.mark.parametrize("fatal", [0, 17, 40])
def test_a_case_that_ends_its_worker_is_found_and_fails_alone(recipe: str, fatal: int) -> None:
    def killed(document: str, text: str) -> str:
        return _raise(KilledWorker("gone")) if fatal in _places(document) else text

    executor = Faulty(killed)
    whole, lines = _lines(recipe), _lines(recipe, executor)
    assert [place for place in range(len(whole)) if lines[place] != whole[place]] == [fatal]
    case = json.loads(lines[fatal])
    assert case["check"]["name"] == json.loads(whole[fatal])["check"]["name"]
    assert (case["check"]["status"], case["check"]["exit_code"]) == ("error", 3)
    assert f"{ATTEMPTS} times" in lines[fatal]
    assert sum(fatal in _places(document) for document in executor.sent) <= ATTEMPTS + 5  # one for each halving
    assert sum(_places(document) == [fatal] for document in executor.sent) == ATTEMPTS


def test_every_second_worker_dies(recipe: str) -> None:
    chance = random.Random(5)
    dying = Faulty(lambda _, text: _raise(KilledWorker("gone")) if chance.random() < 0.3 else text)
    assert _lines(recipe, dying) == _lines(recipe)


def test_a_query_that_ends_its_worker_is_named() -> None:
    run = {"records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.5, "delta": 1e-5, "index": 1}
    runs = [{**run, "noise_std": noise} for noise in (1, 2, 3, 4, 5)]
    here = dpcalc.sweep(runs, command="rdp").to_dict()
    assert dpcalc.sweep(runs, command="rdp", executor=joined(Faulty())).to_dict() == here

    def killed(document: str, text: str) -> str:
        return _raise(KilledWorker("gone")) if '"noise_std": 4' in document else text

    with pytest.raises(WorkerLost, match="run 4 of the sweep"):
        dpcalc.sweep(runs, command="rdp", executor=joined(Faulty(killed)))


def test_workers_are_looked_at_before_anything_is_sent() -> None:
    old = json.dumps({**json.loads(versions()), "scipy": "0.1"})
    for said in (lambda: old, lambda: "garbage", lambda: None):
        executor = Faulty()
        with pytest.raises(OtherVersions, match="the worker tls://"):
            joined(executor, said=said)
        assert not executor.sent
    with pytest.raises(SpecError, match="without TLS"):
        joined(Faulty(), workers={"tls://a:1": 1, "tcp://10.0.0.1:1": 1})
    Cluster(Client(workers={"tcp://10.0.0.1:1": 1}), insecure=True)


def test_a_worker_without_tls_that_joins_late_is_refused() -> None:
    client = Client()
    there = Cluster(client)
    client.workers = {**client.workers, "tcp://10.0.0.1:1": 1}
    with pytest.raises(SpecError, match="without TLS"):
        there.ahead()


def _never(text: str) -> str:
    raise AssertionError(text)


def test_a_scheduler_that_ends_is_named_before_patience_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcalc.cluster.calls._LOOK", 0.01)
    client = Client()
    there = Cluster(client, send=lambda *_: Future())
    looks = iter(("running", "connecting", "connecting"))

    def ahead() -> int:
        client.status = next(looks, "closed")
        return there.ahead()

    piece = Piece()
    piece.document = "{}"
    with pytest.raises(WorkerLost, match="the scheduler ended") as caught:
        list(spread(iter([piece]), through(there, _never), ahead=ahead, patience=600.0))
    assert "--checkpoint" in (caught.value.hint or "")


class Gathering:
    """A client whose answer is held by some workers."""

    def __init__(self, *holders: str) -> None:
        self.holders, self.loop, self.scheduler, self.key = holders, self, self, "a"

    def submit(self, *_: Any, **__: Any) -> Any:
        return self

    def add_callback(self, run: Callable[[], Any]) -> None:
        asyncio.run(run())

    async def gather(self, _: Any, **__: Any) -> str:
        return "an answer"

    async def who_has(self, keys: list[str]) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(keys, self.holders)


def test_an_answer_counts_only_of_a_worker_that_may_be_trusted() -> None:
    for trusted in ("tls://10.0.0.1:1", "tcp://127.0.0.1:1"):
        assert sent(Gathering(trusted), "name", "{}").result(0) == "an answer"
    with pytest.raises(SpecError, match="without TLS"):
        sent(Gathering("tls://10.0.0.1:1", "tcp://10.0.0.2:1"), "name", "{}").result(0)
    with pytest.raises(WorkerLost, match="is gone"):
        sent(Gathering(), "name", "{}").result(0)
    assert sent(Gathering("tcp://10.0.0.2:1"), "name", "{}", insecure=True).result(0) == "an answer"


class Scheduler(Client):
    """A client that says where its scheduler listens."""

    def __init__(self, address: str, **more: Any) -> None:
        super().__init__(**more)
        self.address = address

    def scheduler_info(self) -> dict[str, str]:
        return {"address": self.address}

    def wait_for_workers(self, *_: Any, **__: Any) -> None:
        pass


def test_a_scheduler_that_listens_to_the_network_without_tls_is_refused() -> None:
    with pytest.raises(SpecError, match=r"the scheduler at tcp://10\.0\.0\.1:8786 is reached without TLS"):
        entered(Scheduler("tcp://10.0.0.1:8786"), "tcp://127.0.0.1:8786", insecure=False)
    entered(Scheduler("tcp://10.0.0.1:8786"), "tcp://127.0.0.1:8786", insecure=True)
    for trusted in ("tcp://127.0.0.1:8786", "tls://10.0.0.1:8786"):
        entered(Scheduler(trusted), trusted, insecure=False)


def test_a_worker_that_cannot_import_the_package_is_lost() -> None:
    def said() -> Any:
        raise ModuleNotFoundError("No module named 'dpcalc'")

    with pytest.raises(WorkerLost, match="ModuleNotFoundError: No module"):
        entered(Scheduler("tls://10.0.0.1:1", said=said), "tls://10.0.0.1:1", insecure=False)


def test_more_is_sent_where_there_are_more_workers() -> None:
    assert joined(Faulty(), workers={"tls://a:1": 32, "tls://b:1": 32}).ahead() == 128
    assert joined(Faulty()).ahead() == 8


def test_a_cluster_is_sent_a_text_and_a_name() -> None:
    there = joined(Faulty())
    for wrong in ((versions,), (versions, 1), (versions, "a", "b"), (lambda text: text, "a")):
        with pytest.raises(SpecError):
            there.submit(*wrong)


def test_a_call_that_is_dropped_is_dropped_there_too() -> None:
    sent: Future[Any] = Future()
    answer = answered(sent, "dpcalc.recipes.running.checking:run_chunk", "{}")
    assert answer.cancel()
    assert sent.cancelled()


def test_what_died_is_what_was_lost() -> None:
    assert issubclass(WorkerDied, WorkerLost)
