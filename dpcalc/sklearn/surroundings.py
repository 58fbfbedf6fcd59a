"""What surrounds a fit, as far as it can be noticed: searches, steps of a pipeline, earlier fits of this process."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from dpcalc.errors import PrivacyWarning

SELECTION = (
    "it was fitted inside {where}, which fits several models to the same records and scores them without noise: choose "
    "within the budget by dpcalc train --tune, or score by dpcalc evaluate --private"
)
STEPS = "the steps before it in a pipeline learn from the records without noise ({names})"
AGAIN = (
    "another model was fitted in this process to rows of as many columns: if they share records, both together are "
    "less private than each; give all of them one accountant (dpcalc.sklearn.Accountant), which adds them up"
)
OUTSIDE = (
    "some values lie outside the public ranges and were brought within them. This warning depends on the records, and "
    "no guarantee covers it: do not publish it, and do not choose ranges by it"
)

_fitted: set[int] = set()
"""The numbers of columns of what was fitted without an accountant: they are public, unlike what the rows hold."""
_lock = threading.Lock()


class OutsideRangesWarning(PrivacyWarning):
    """Values outside the public ranges were brought within them; the warning itself tells so of the records."""


def why_not_covered() -> str | None:
    """Return why the caller's fit is not covered by its guarantee, by the calls around it; None where it may be."""
    reasons = [*_of_selection(), *_of_pipelines()]
    return "; ".join(reasons) or None


def warn_if_again(columns: int) -> None:
    """Warn where this is not the first fit without an accountant to rows of so many columns in this process."""
    with _lock:
        again = columns in _fitted
        _fitted.add(columns)
    if again:
        warn(AGAIN)


def warn(message: str, category: type[PrivacyWarning] = PrivacyWarning) -> None:
    """Warn at the line outside dpcalc and scikit-learn that led here."""
    level = 1 + next((place for place, frame in enumerate(_frames()) if not _inside(frame)), 1)
    warnings.warn(message, category, stacklevel=level)


def _frames() -> Iterator[FrameType]:
    """Yield the frames of the caller, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _inside(frame: FrameType) -> bool:
    return _module(frame).split(".")[0] in ("dpcalc", "sklearn", "joblib")


def _of_selection() -> Iterator[str]:
    for frame in _frames():
        if _module(frame).startswith("sklearn.model_selection."):
            yield SELECTION.format(where=type(frame.f_locals["self"]).__name__ if "self" in frame.f_locals else
                                   "a cross-validation")  # fmt: skip
            return


def _of_pipelines() -> Iterator[str]:
    for frame in _frames():
        if _module(frame) == "sklearn.pipeline" and frame.f_code.co_name == "fit":
            names = [name for name, step in getattr(frame.f_locals.get("self"), "steps", ())[:-1] if _learns(step)]
            if names:
                yield STEPS.format(names=", ".join(names))


def _learns(step: Any) -> bool:
    """Return whether a step takes something from the records that it is fitted to, as far as it says."""
    from sklearn.utils import get_tags

    if step is None or isinstance(step, str) or getattr(step, "private_", False) is True:
        return False
    if type(step).__name__ == "FrozenEstimator":
        return False
    return bool(get_tags(step).requires_fit)
