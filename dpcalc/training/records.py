"""The records that a model is trained and tested on, within the bounds that are accounted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.examples import to_give
from dpcalc.model.loss import SIGNED
from dpcalc.training import cells, data, synthetic
from dpcalc.training.cells import Labels
from dpcalc.training.data import Prepared, Ranges, Table
from dpcalc.training.draft import Draft
from dpcalc.training.setup import Setup


class Records(NamedTuple):
    """The records of a run.

    Attributes:
        train: what is trained on.
        test: what is set aside, if anything is.
        names: of the columns, the target last.
        ranges: the map of the columns, if one is given.
        labels: the rule by which the target's cells become +1 and -1.
    """

    train: Prepared
    test: Prepared | None
    names: tuple[str, ...]
    ranges: Ranges | None
    labels: Labels

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of training records and of columns."""
        rows, columns = self.train.features.shape
        return rows, columns

    @property
    def test_count(self) -> int:
        """The number of records set aside."""
        return len(self.test.labels) if self.test else 0


def read_records(draft: Draft, setup: Setup) -> Records:
    """Return the records within their bounds, split at random.

    Raises:
        SpecError: the data cannot be read, or a number that follows from them is given.
        MissingParameter: synthetic data need a number that is not given.
    """
    splitting = np.random.default_rng(None if setup.seed is None else (setup.seed, 1))
    labels, ranges = labels_of(setup), None
    if setup.synthetic is not None:
        table = _synthetic(setup.synthetic, draft, setup.seed)
    else:
        refused = [name for name in ("records", "dimension") if name in draft]
        if refused:
            raise SpecError(f"{', '.join(refused)} follow from the data", f"leave out --{refused[0]}")
        table, ranges = _table(setup, labels)
    ready = data.prepared(
        table, feature_bound=float(draft["feature_bound"]), label_bound=draft.get("label_bound"),
        signed=draft["loss"] in SIGNED, ranges=ranges, intercept=setup.intercept, norm=draft.norm,
    )  # fmt: skip
    train, test = data.split(ready, setup.test_fraction, splitting)
    return Records(train, test, table.names, ranges, labels)


def labels_of(setup: Setup) -> Labels:
    """Return the rule by which the target's cells become +1 and -1."""
    if setup.example and setup.labels is None and setup.positive is None:
        return data.EXAMPLES[setup.example][1]
    return cells.declared(setup.labels, setup.positive)


def _synthetic(kind: str, draft: Draft, seed: int | None) -> Table:
    missing = [name for name in ("records", "dimension") if name not in draft]
    if missing:
        raise MissingParameter(f"synthetic data need {', '.join(f'--{name}' for name in missing)}", to_give(missing))
    return synthetic.generate(
        kind, records=int(draft["records"]), dimension=int(draft["dimension"]), radius=draft.radius,
        feature_bound=float(draft["feature_bound"]), generator=np.random.default_rng((seed or 0, 2)),
    )  # fmt: skip


def _table(setup: Setup, labels: Labels) -> tuple[Table, Ranges | None]:
    """Return the table of a file, of a shipped example or of arrays, and its map if it has one."""
    if not isinstance(setup.data, str):
        return data.of_arrays(*setup.data, labels=labels), None
    path, target, ranges = setup.data, setup.target, setup.ranges
    if setup.example:
        path, target = data.example_file(setup.example), target or data.EXAMPLES[setup.example][0]
        ranges = ranges or data.example_file(setup.example, ".ranges.csv")
    table = data.read(path, target=target, labels=labels, ignore=setup.ignore)
    return table, data.read_ranges(ranges, table) if ranges else None
