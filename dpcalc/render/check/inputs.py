"""The questions of the cases of two reports: which inputs, promises and gates differ, and which ask for less."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dpcalc.checked import Change, Difference
from dpcalc.files import Fields
from dpcalc.model.algorithm import Source
from dpcalc.model.quantities import Quantity
from dpcalc.render.layout import cut

MAX_TEXT = 200
Where = tuple[str, str]
"""File and name of a case."""

Inputs = Mapping[str, tuple[Any, str]]
"""The inputs of a case by name: value and source."""

Key = tuple[str, str, str, float | None]
"""File and name of a case, quantity and order of a number in it."""


class Number(NamedTuple):
    """A best result."""

    quantity: str
    value: float | None
    log_delta: float | None

    @property
    def size(self) -> float | None:
        """The number to compare: for a delta its logarithm; None if there is none."""
        return self.log_delta if self.quantity == Quantity.DELTA else self.value


class Snapshot(NamedTuple):
    """The parts of a report that are compared.

    Attributes:
        verdicts: the status of every case.
        gates: the texts of the gates of every judged case.
        inputs: the inputs of every case with an answer.
        numbers: the best results.
    """

    verdicts: Mapping[Where, str]
    gates: Mapping[Where, list[str]]
    inputs: Mapping[Where, Inputs]
    numbers: Mapping[Key, Number]


_DESCRIBES = (
    "records", "dimension", "noise_std", "laplace_scale", "langevin_std", "schedule_factor", "step_size", "batch_size",
    "epochs", "steps", "start", "requests", "clean_steps", "c1", "c2", "decay_exponent", "regularisation", "schedule",
    "noise_multiplier", "clip", "sample_rate", "max_batch_size", "mechanism", "bands", "momentum", "decay", "cool_down",
    "scaling",
)  # fmt: skip
"""Inputs that describe the run: with other values, the same question is about another run."""

_WEAKER_UP = ("delta", "epsilon", "strong_convexity", "separation")
_WEAKER_DOWN = (
    "lipschitz", "smoothness", "diameter", "radius", "feature_bound", "label_bound", "displacement", "holder_constant",
    "gradient_at_zero", "loss_at_zero", "shift", "contraction", "start_distance", "gradient_norm",
    "epoch_epsilon", "epoch_delta", "group_size", "uses", "participations",
)  # fmt: skip
"""Budgets and promises on the loss that ask for less, or promise more, when they increase, or when they decrease."""

_STRONGER = {("adjacency", "null_record", "replace_one"), ("permutation", "secret", "public")}
_YES = "yes"
_GATE = re.compile(r"([\w-]+)\s*(<=|<|>=|>)\s*([0-9.eE+-]+)")


def inputs_of(case: Fields) -> Inputs:
    """Return the inputs of a case of an envelope, without derived ones.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: it is not such a case.
    """
    inputs: dict[str, tuple[Any, str]] = {
        "algorithm": (_text(case["algorithm"]), "argument"),
        "command": (_text(case["check"]["command"]), "argument"),
    }
    for name, given in case["inputs"].items():
        value, source = given["value"], _text(given["source"])
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise TypeError(value)
        if source != Source.DERIVED:
            inputs[name] = value, source
    for line in case.get("ledger", {}).get("entries", ()):
        entry = {key: line[key] for key in ("times", "algorithm", "part", "tuning", "given") if key in line}
        inputs[f"entry {_text(line['name'])}"] = json.dumps(entry, sort_keys=True), "argument"
    best = [result for result in case["results"] if result["best"]]
    adjacency = sorted({_text(result["adjacency"]) for result in best})
    inputs["adjacency"] = " ".join(adjacency), "argument"
    orders = [float(result["order"]) for result in best if result["quantity"] == Quantity.RDP]
    inputs["order"] = " ".join(map(repr, orders)), "argument"
    inputs["quantity"] = " ".join(sorted({_text(result["quantity"]) for result in best})), "argument"
    inputs["accept"] = " ".join(sorted(map(_text, case["check"].get("accepted", ())))), "argument"
    inputs["certified"] = _YES if best and all(result.get("certified") for result in best) else "no", "derived"
    return inputs


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def input_changes(where: Where, old: Inputs, new: Inputs) -> Iterator[Change]:
    """Yield the inputs of a case that differ from before."""
    for name in dict.fromkeys((*old, *new)):
        (was, before), (now, source) = old.get(name, ("", "")), new.get(name, ("", ""))
        if was == now or before == source == Source.WORST_CASE:
            continue
        weaker = _is_weaker(name, was, now, source)
        what = Difference.OTHER_RUN if name in _DESCRIBES else Difference.LESS if weaker else Difference.MORE
        before_text, text = (cut(value if isinstance(value, str) else repr(value), MAX_TEXT) for value in (was, now))
        yield Change(*where, name, before_text, text, what, weaker)


def comparable(changes: Iterable[Change]) -> bool:
    """Return whether a case has the same question as before, perhaps about another run."""
    return all(change.quantity in (*_DESCRIBES, "certified", "accept") for change in changes)


def _is_weaker(name: str, was: Any, now: Any, source: str) -> bool:
    """Return whether an input asks for less; True in doubt."""
    if name in _DESCRIBES or (name, was, now) in _STRONGER:
        return False
    if (judge := _IS_WEAKER.get(name)) and (weaker := judge(was, now, source)) is not None:
        return weaker
    if name in (*_WEAKER_UP, *_WEAKER_DOWN) and not isinstance(was, str) and not isinstance(now, str):
        return bool(now > was if name in _WEAKER_UP else now < was)
    return True


_IS_WEAKER: dict[str, Callable[[Any, Any, str], bool | None]] = {
    "index": lambda was, now, source: False if source == Source.WORST_CASE else None,
    "certified": lambda was, now, source: now != _YES,
    "accept": lambda was, now, source: not set(now.split()) <= set(was.split()),
}
"""For inputs that are not numbers: whether they ask for less, from the old and the new value and its source."""


def loosened(old: list[str], new: list[str]) -> bool:
    """Return whether an earlier gate is not implied by a present one."""
    return any(not any(_implies(now, was) for now in new) for was in old)


def _implies(now: str, was: str) -> bool:
    if now == was:
        return True
    first, second = _GATE.fullmatch(now.strip()), _GATE.fullmatch(was.strip())
    if not first or not second or first[1] != second[1] or first[2][0] != second[2][0]:
        return False
    try:
        limit, before = float(first[3]), float(second[3])
    except ValueError:
        return False
    if limit == before:
        return first[2] == second[2] or "=" not in first[2]
    return limit < before if first[2][0] == "<" else limit > before
