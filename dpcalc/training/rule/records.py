"""The records that a model is trained and tested on, within the accounted bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.loss import SIGNED
from dpcalc.model.parameter import to_give
from dpcalc.model.quantities import LossName
from dpcalc.training.data import bounds as bounding
from dpcalc.training.data import cells, synthetic, tables
from dpcalc.training.data import ranges as ranges_of
from dpcalc.training.data.bounds import Prepared
from dpcalc.training.data.cells import Classes, Labels
from dpcalc.training.data.progress import Progress
from dpcalc.training.data.ranges import Ranges
from dpcalc.training.data.schema import is_schema, read_schema
from dpcalc.training.data.tables import Table
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.setup import Setup


class Records(NamedTuple):
    """The records of a run.

    Attributes:
        train: the training records.
        test: the records set aside for testing, if any.
        names: of the columns, the target last.
        ranges: the map of the columns, if one is given.
        labels: the rule by which the target's cells become +1 and -1, or the places of classes.
        constant: the value of the intercept's column, 0 where there is none.
        bound: longer rows, without that column, are scaled down to this length.
        centred: whether rows are still to be centred; until then they are within the feature bound, and not scaled down
            to ``bound``.
    """

    train: Prepared
    test: Prepared | None
    names: tuple[str, ...]
    ranges: Ranges | None
    labels: Labels | Classes
    constant: float
    bound: float
    centred: bool = False

    def copied(self) -> Records:
        """Return records whose features may be changed in place."""
        parts = (part and part._replace(features=part.features.copy()) for part in (self.train, self.test))
        train, test = parts
        assert train is not None
        return self._replace(train=train, test=test)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of training records and of columns."""
        return self.train.shape

    @property
    def unmapped(self) -> bool:
        """Whether no ranges of the columns are given."""
        return self.ranges is None or self.ranges.features is None

    @property
    def test_count(self) -> int:
        """The number of records set aside."""
        return self.test.shape[0] if self.test else 0

    def target_width(self, label_bound: float) -> float:
        """Return the width of the target's range, in its own units; twice the label bound where it is not mapped."""
        interval = self.ranges.target if self.ranges is not None else None
        return 2.0 * label_bound if interval is None else interval[1] - interval[0]

    @property
    def one_label(self) -> float | None:
        """The label of all training records, if it is the same."""
        labels = self.train.labels
        return float(labels[0]) if labels.min() == labels.max() else None

    @property
    def counts(self) -> Mapping[str, int]:
        """The counts of `dpcalc.training.data.bounds.Prepared`, over training and test records."""
        return self.train.counts


def read_records(
    draft: Draft, setup: Setup, *, share: float | None = None, progress: Progress | None = None,
    centres: Callable[[int, int], bool] = lambda rows, columns: False,
) -> Records:  # fmt: skip
    """Return the records within their bounds, split at random.

    Args:
        draft: the loss, its bounds and the kind of noise.
        setup: what is read; whether there is an intercept.
        share: the value of the intercept's column over the feature bound; None: as large as the bound of the features.
        progress: called with (records read, all records) while a large table is read.
        centres: (training records, columns) -> whether rows are to be centred.

    Raises:
        SpecError: the data cannot be read, or a given parameter follows from them.
        MissingParameter: synthetic data need a parameter that is not given.
    """
    splitting = np.random.default_rng(None if setup.seed is None else (setup.seed, 1))
    labels, ranges = setup.label_rule, None
    if draft["loss"] == LossName.SOFTMAX:
        labels = cells.as_classes(labels, draft.get("classes"))
    if setup.synthetic is not None:
        table = _synthetic(setup.synthetic, draft, setup.seed)
    else:
        refused = [name for name in ("records", "dimension") if name in draft]
        if refused:
            raise SpecError(f"{', '.join(refused)} follow from the data", f"leave out --{refused[0]}")
        table, ranges = _table(setup, labels, progress)
    ranges = _with_target(ranges, setup)
    if ranges is not None and draft["loss"] == LossName.SOFTMAX:
        ranges = ranges._replace(target=None)  # classes are not numbers to map
    bound = float(draft["feature_bound"])
    share = share or bounding.intercept_of(1.0, draft.norm)
    rows, columns = table.cells.shape[0], bounding.width_of(table, ranges) - (not setup.intercept)
    centred = centres(rows - bounding.aside_count(rows, setup.test_fraction), columns)
    kept: dict[str, Any] = {
        "feature_bound": bound, "label_bound": draft.get("label_bound"), "signed": draft["loss"] in SIGNED,
        "ranges": ranges, "intercept": bool(setup.intercept), "share": share, "norm": draft.norm,
        "uncentred": centred,
    }  # fmt: skip
    train, test = bounding.split(bounding.prepared(table, **kept), setup.test_fraction, splitting)
    constant = bound * share if setup.intercept else 0.0
    rest = bounding.rest_of(bound, constant, draft.norm)
    return Records(train, test, table.names, ranges, labels, constant, rest, centred)


def _synthetic(kind: str, draft: Draft, seed: int | None) -> Table:
    missing = [name for name in ("records", "dimension") if name not in draft]
    if missing:
        raise MissingParameter(f"synthetic data need {', '.join(f'--{name}' for name in missing)}", to_give(missing))
    return synthetic.generate(
        kind, records=int(draft["records"]), dimension=int(draft["dimension"]), radius=draft.radius,
        feature_bound=float(draft["feature_bound"]), generator=np.random.default_rng((seed or 0, 2)),
    )  # fmt: skip


def _table(setup: Setup, labels: Labels | Classes, progress: Progress | None) -> tuple[Table, Ranges | None]:
    """Return the table of a file, a shipped example or arrays, and its map if it has one."""
    path, target, ranges = setup.data, setup.target, setup.ranges
    if setup.example:
        path, target = tables.example_file(setup.example), target or tables.EXAMPLES[setup.example][0]
        ranges = ranges or tables.example_file(setup.example, ".ranges.csv")
    declared = read_schema(ranges) if ranges is not None and is_schema(ranges) else None
    words = {} if declared is None else declared.words
    if isinstance(path, str):
        table = tables.read(path, target=target, labels=labels, ignore=setup.ignore, words=words, progress=progress)
    else:
        table = tables.of_arrays(*path, labels=labels, words=words)
    if declared is not None:
        return table, declared.ranges(table.names)
    return table, ranges_of.read_ranges(ranges, table) if ranges else None


def _with_target(ranges: Ranges | None, setup: Setup) -> Ranges | None:
    """Return the map with the target's interval of the setup.

    Raises:
        SpecError: the map has another one.
    """
    interval = setup.target_interval
    if interval is None:
        return ranges
    if ranges is not None and ranges.target not in (None, interval):
        raise SpecError("the target has one range in --ranges and another in --target-range", "give one of them")
    return Ranges(None, None, interval) if ranges is None else ranges._replace(target=interval)
