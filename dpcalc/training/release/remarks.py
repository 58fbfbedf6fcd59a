"""What the records give reason to say of a run, to whoever holds them: no guarantee covers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpcalc.training.data.bounds import Prepared
from dpcalc.training.data.cells import Classes
from dpcalc.training.data.stored import OnDisk
from dpcalc.training.rule.defaults import CLASSIFYING
from dpcalc.training.rule.records import Records

_MORE = "more records, fewer columns, a larger epsilon or narrower public ranges help"
_UNREAD = "--ranges declares the levels of words, and --ignore leaves a column out"
_WORDS = {"train": "training", "test": "test"}


def on_records(records: Records, loss: str, total: int, *, read: bool) -> Iterator[str]:
    """Yield what is odd about the records themselves.

    Args:
        records: of the run.
        loss: its name.
        total: how many records were counted, those set aside included.
        read: whether they were read from a table, and not drawn.
    """
    label, counts, ranges = records.one_label, records.counts, records.ranges
    words = loss in CLASSIFYING and not records.labels.takes_words and counts["unreadable"] >= total
    cut = read and counts["labels_clipped"] == total
    if cut:
        yield "every target was cut to its bound: --target-range LOW,HIGH maps public ends to it first"
    elif label is not None:
        cure = "; if its cells are words, --labels NO,YES says what they are" if words else ""
        if loss in CLASSIFYING and records.labels.takes_words and label <= 0.0:
            cure = ", and a cell that is none of the labels, letter by letter, counts as that one"
        yield f"the target is {_name(records, label)} for every training record: there is nothing to learn{cure}"
    if not read:
        return
    if counts["unreadable"] >= total and not (words and label is not None and counts["unreadable"] == total):
        yield f"as many cells are no finite number as a whole column has: {_UNREAD}"
    if (ranges is None or ranges.features is None) and counts["rows_clipped"] == total:
        yield "every row was shortened, so that only directions are left: --ranges maps columns to [-1, 1] first"


def _name(records: Records, label: float) -> str:
    rule = records.labels
    if isinstance(rule, Classes):
        return rule.names[int(label)]
    if rule.positive is None:
        return f"{label:g}"
    return rule.positive if label > 0.0 else rule.negative or f"not {rule.positive}"


def on_model(records: Records, metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield that a model is no better than a constant answer, if so: on test records, where there are some.

    Args:
        records: of the run.
        metrics: part -> name -> value.
    """
    if records.one_label is not None:
        return
    part, some = ("test", records.test) if records.test else ("train", records.train)
    values = metrics.get(part, {})
    accuracy = values.get("accuracy")
    if accuracy is not None:
        share = None if some is None else commonest(some)
        if share is not None and accuracy <= share:
            yield (
                f"the model is no better on the {_WORDS[part]} records than always answering the commonest class, "
                f"which is right for {share:.4g} of them: {_MORE}"
            )
    elif values.get("r2", 1.0) <= 0.0:
        yield f"the model is no better on the {_WORDS[part]} records than always answering their mean: {_MORE}"


def commonest(records: Prepared | OnDisk) -> float | None:
    """Return the share of the commonest label; None where they were too many to be counted."""
    if isinstance(records, OnDisk):
        count = records.survey().commonest
        return None if count is None else count / len(records)
    _, counts = np.unique(records.labels, return_counts=True)
    return float(counts.max() / counts.sum())
