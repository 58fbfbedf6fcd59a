"""Data files, ranges, and model files."""

import math
import random
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from dpcalc.training.data import bounds as bounding
from dpcalc.training.data import cells
from dpcalc.training.data import ranges as ranges_of
from dpcalc.training.data import tables as reading
from dpcalc.training.release import metrics, model, prediction
from dpcalc.training.rule.setup import MODEL_ENDINGS
from tests.fuzz.files import refusable, saved
from tests.fuzz.mutate import mutated

CSV = (
    b"age,dose,ill\n41,0.5,1\n29,1.5,0\n73,2,1\n",
    b'\xef\xbb\xbf"age, years",dose,ill\r\n41,0.5,yes\r\n29,1e1,"no"\r\n\r\n73,-2,yes\r\n',
    b"x,y\n1,2\n3,4\n",
)
_ROWS = np.array([[41.0, 0.5, 1.0], [29.0, 1.5, 0.0], [73.0, 2.0, 1.0]])
_FIELDS = np.array([(41, 0.5, b"yes"), (29, 1.5, b"no")], dtype=[("age", np.int64), ("dose", float), ("ill", "S3")])
NPY = (saved(np.save, _ROWS), saved(np.save, _ROWS.astype(np.int8)), saved(np.save, _FIELDS))
NPZ = (
    saved(np.savez, X=_ROWS[:, :2], y=_ROWS[:, 2]),
    saved(np.savez_compressed, X=np.ones((300, 2), dtype=np.float32), y=np.arange(300) % 2),
    saved(np.savez, X=_ROWS, y=np.array(["yes", "no", "yes"])),
)
RANGES = (b"column,low,high\nage,0,100\ndose,0,2^2\nill,0,1\n", b"column,low,high\nage,1/3,1e9\n\ndose,-1,1\n")
TABLES = {".csv": CSV, ".npy": NPY, ".npz": NPZ}


def tables(r: random.Random, folder: Path) -> None:
    """What is read is a number or none, and what is prepared lies within its bounds."""
    ending = r.choice(sorted(TABLES))
    path, limits = folder / f"table{ending}", folder / "ranges.csv"
    path.write_bytes(mutated(r, TABLES[ending]))
    limits.write_bytes(mutated(r, RANGES))
    target = r.choice((None, None, "ill", "1", "age"))
    labels = cells.Labels(r.choice((None, None, None, "yes", "1", "nan", "")))
    ignore = r.choice(((), (), ("dose",), ("2", "3"), ("age", "dose")))
    table = refusable(lambda: reading.read(str(path), target=target, labels=labels, ignore=ignore))
    if table is None:
        return
    assert not np.isinf(table.cells).any()
    assert table.cells.shape == (len(table.cells), len(table.names))
    # Read some rows at a time, and by name, a table is the same.
    rules = (*(cells.NUMBERS for _ in table.names[1:]), labels)
    pieces = list(reading.rows_of(str(path), table.names, rules))
    assert np.array_equal(np.concatenate(pieces), table.cells, equal_nan=True)
    ranges = refusable(lambda: ranges_of.read_ranges(str(limits), table)) if r.random() < 0.5 else None
    bound, norm, intercept, signed = r.choice((1.0, 1e-9, 1e150)), r.choice((1, 2)), r.random() < 0.5, r.random() < 0.5
    found = refusable(
        lambda: bounding.prepared(
            table, feature_bound=bound, label_bound=None if signed else 2.0, signed=signed, ranges=ranges,
            intercept=intercept, norm=norm,
        )
    )  # fmt: skip
    if found is None:
        return
    assert all(math.fsum(map(abs, row)) <= bound if norm == 1 else math.hypot(*row) <= bound for row in found.features)
    assert (np.abs(found.labels) <= (1.0 if signed else 2.0)).all()
    refusable(lambda: bounding.split(found, 0.25, np.random.default_rng(0)))


# --- models ---------------------------------------------------------------------------------------------------------

_MODEL = model.Model(
    np.array([0.25, -1.0]), 0.5, ("age", "dose"), "ill", "yes", np.array([0.0, 0.0]), np.array([100.0, 4.0]), None, 1.0,
    2, {"loss": "logistic"}, {"epsilon": 1.0},
)  # fmt: skip


@cache
def models_written() -> dict[str, tuple[bytes, ...]]:
    """Return models as `model.save` writes them, by ending."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for ending in MODEL_ENDINGS:
            path = Path(folder, f"model{ending}")
            written = []
            for one in (_MODEL, _MODEL._replace(low=None, high=None, target_range=(-1.0, 1.0), norm=1)):
                model.save(one, str(path))
                written.append(path.read_bytes())
            found[ending] = tuple(written)
    return found


def models(r: random.Random, folder: Path) -> None:
    """A model that is read can be used and saved again."""
    ending = r.choice(MODEL_ENDINGS)
    path = folder / f"model{ending}"
    path.write_bytes(mutated(r, models_written()[ending]))
    found = refusable(lambda: model.load(str(path)))
    if found is None:
        return
    with np.errstate(all="ignore"):
        assert found.scores(np.ones((3, len(found.columns)))).shape == (3,)
    refusable(lambda: model.save(found, str(path)))
    predicting = refusable(lambda: prediction.predictor(found))
    if predicting is None:
        return
    kind = r.choice(sorted(TABLES))
    table = folder / f"table{kind}"
    table.write_bytes(mutated(r, TABLES[kind]))
    with np.errstate(all="ignore"):
        refusable(lambda: prediction.write_csv(predicting, str(table), _whole_lines))
        refusable(lambda: metrics.measured(predicting, str(table)))
        refusable(lambda: metrics.released(predicting, str(table), 0.5))


def _whole_lines(text: str) -> None:
    assert text.endswith("\n")
