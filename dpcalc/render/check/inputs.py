"""The questions of the cases of two reports: which inputs, promises and gates differ, and which ask for less."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dpcalc.checked import Change, Difference
from dpcalc.errors import SpecError
from dpcalc.files import Fields
from dpcalc.model.algorithm import Source
from dpcalc.model.numbers import parse_number
from dpcalc.model.quantities import Quantity
from dpcalc.render.check.verdicts import AT_LEAST, AT_MOST, parts_of
from dpcalc.render.layout import cut

MAX_TEXT = 200
MOVED = 1e-9
"""The relative change above which a number has moved; the libraries of two machines may differ by less."""

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


class Promise(NamedTuple):
    """A gate; ``limit`` is what the right side of one that names other cases comes to."""

    text: str
    limit: float | None = None

    @property
    def in_full(self) -> str:
        """The text with the limit."""
        return self.text if self.limit is None else f"{self.text} ({self.limit!r})"


class Snapshot(NamedTuple):
    """The parts of a report that are compared.

    Attributes:
        verdicts: the status of every case.
        gates: the gates of every judged case.
        inputs: the inputs of every case with an answer.
        numbers: the best results.
    """

    verdicts: Mapping[Where, str]
    gates: Mapping[Where, list[Promise]]
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

_YES, _NO = "yes", "no"
_STRONGER = {
    ("adjacency", "null_record", "replace_one"), ("permutation", "secret", "public"), ("chained", _NO, _YES),
}  # fmt: skip


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
    ledger = case.get("ledger", {})
    if ledger:  # the entries are for add-remove, and each counts twice for replacement
        inputs["chained"] = _YES if ledger.get("chained") else _NO, "argument"
    for line in ledger.get("entries", ()):
        entry = {key: line[key] for key in ("times", "algorithm", "part", "tuning", "given") if key in line}
        inputs[f"entry {_text(line['name'])}"] = json.dumps(entry, sort_keys=True), "argument"
    best = [result for result in case["results"] if result["best"]]
    adjacency = sorted({_text(result["adjacency"]) for result in best})
    inputs["adjacency"] = " ".join(adjacency), "argument"
    orders = [float(result["order"]) for result in best if result["quantity"] == Quantity.RDP]
    inputs["order"] = " ".join(map(repr, orders)), "argument"
    inputs["quantity"] = " ".join(sorted({_text(result["quantity"]) for result in best})), "argument"
    inputs["accept"] = " ".join(sorted(map(_text, case["check"].get("accepted", ())))), "argument"
    inputs["certified"] = _YES if best and all(result.get("certified") for result in best) else _NO, "derived"
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


def loosened(old: list[Promise], new: list[Promise]) -> bool:
    """Return whether an earlier gate is not implied by a present one."""
    return any(not any(_implies(now, was) for now in new) for was in old)


def _implies(now: Promise, was: Promise) -> bool:
    if now == was:
        return True
    (name, sign, limit), (name_before, sign_before, before) = _comparison(now), _comparison(was)
    if name != name_before or sign[:1] != sign_before[:1] or limit is None or before is None:
        return False
    if abs(limit - before) <= (0.0 if now.limit is None else MOVED * abs(before)):
        return sign == sign_before or "=" not in sign
    return limit < before if sign in AT_MOST else limit > before


def _comparison(gate: Promise) -> tuple[str, str, float | None]:
    """Return the quantity, the sign and the limit of a gate; None if it sets no limit."""
    name, right = parts_of(gate.text)
    sign, _, typed = right.partition(" ")
    if sign not in (*AT_MOST, *AT_LEAST) or gate.limit is not None:
        return name, sign, gate.limit
    try:
        return name, sign, parse_number(typed)
    except SpecError:
        return name, sign, None
