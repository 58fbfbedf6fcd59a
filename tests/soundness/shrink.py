"""From a case that fails to the plainest one that still does, and to a line that reproduces it."""

from collections.abc import Callable, Iterator
from typing import Any

from dpcalc.model.quantities import LastBatch
from dpcalc.theorems.record import all_bounds
from tests.formulas import run_of
from tests.soundness.conversions import CONVERSIONS
from tests.soundness.generate import Case

Fails = Callable[[Case], bool]


def shrunk(case: Case, fails: Fails, most: int = 400) -> Case:
    """Return a case that fails and of which no single value can be made plainer, or that far in ``most`` trials."""
    trials = 0
    progress = True
    while progress and trials < most:
        progress = False
        for name in sorted(case.values):
            for plainer in _plainer(case.values[name]):
                trials += 1
                tried = case._replace(values={**case.values, name: plainer})
                if _fails(tried, fails):
                    case, progress = tried, True
                    break
                if trials >= most:
                    return case
    return case


def _fails(case: Case, fails: Fails) -> bool:
    """Return whether a case is one that may be asked and fails."""
    if case.subject not in CONVERSIONS and not case.subject.startswith("ask."):
        bound = all_bounds()[case.subject]
        if any(isinstance(v, int) and not isinstance(v, bool) and v < 1 for v in case.values.values()):
            return False
        try:
            if bound.obstacle(run_of(case.values)) is not None:
                return False
        except KeyError:
            return False
    try:
        return fails(case)
    except (ArithmeticError, ValueError, AssertionError, KeyError):
        return False


def _plainer(value: Any) -> Iterator[Any]:
    """Yield simpler values, the simplest first."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield from (x for x in (1, 2, 10, value // 2, value - 1) if 0 < x < value)
    elif isinstance(value, float) and value not in (0.0, 1.0):
        yield from (0.0, 1.0) if abs(value) < 1.0 else (1.0,)
        for digits in (0, 1, 2, 4, 8):
            rounded = float(f"{value:.{digits}e}")
            if rounded != value and len(repr(rounded)) < len(repr(value)):
                yield rounded
    elif value in tuple(LastBatch) and value != LastBatch.OWN:
        yield LastBatch.OWN.value


def line(case: Case) -> str:
    """Return the call that gives the value of a case, on one line."""
    inside = ", ".join(f"{name}={value!r}" for name, value in case.values.items())
    if case.subject.startswith("ask."):
        return f"tests.soundness.front.answered({case.subject.removeprefix('ask.')!r}, {case.values!r})"
    if case.subject in CONVERSIONS:
        function = CONVERSIONS[case.subject].function
        return f"{function.__module__}.{function.__name__}({inside})"
    bound = all_bounds()[case.subject]
    taken = {*bound.parameters, "order", "epsilon", "log_delta"}
    inside = ", ".join(f"{name}={_literal(value)}" for name, value in case.values.items() if name in taken)
    return f"tests.formulas.evaluated({bound.function.__module__}.{bound.function.__name__}, {inside})"


def _literal(value: Any) -> str:
    """Return a value as it is written in Python; a schedule by its columns."""
    if not hasattr(value, "step_size"):
        return repr(value)
    columns = ("step_size", "noise", "contraction", "shift", "spend", "displacement", "probability")
    fields = {name: getattr(value, name) for name in columns}
    return "Chain(" + ", ".join(f"{k}={None if v is None else v.tolist()}" for k, v in fields.items()) + ", path='')"
