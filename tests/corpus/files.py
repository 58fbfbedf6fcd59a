"""Files that questions read: schedules, tables of records, ranges. Written with the standard library alone."""

import io
import random
import struct
import zipfile
from collections.abc import Mapping, Sequence

Columns = Mapping[str, Sequence[float]]


def csv(columns: Columns) -> bytes:
    """Return a table with a header."""
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows), ""]).encode()


def yaml(columns: Columns) -> bytes:
    """Return a mapping from columns to lists."""
    return "".join(f"{name}: [{', '.join(map(repr, values))}]\n" for name, values in columns.items()).encode()


def npz(columns: Columns) -> bytes:
    """Return an archive of arrays, dated like those of NumPy."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, values in columns.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), _npy("<f8", len(values), _doubles(values)))
    return stream.getvalue()


def npy(columns: Columns) -> bytes:
    """Return an array of records with named fields."""
    fields = ", ".join(f"('{name}', '<f8')" for name in columns)
    rows = list(zip(*columns.values(), strict=True))
    return _npy(f"[{fields}]", len(rows), b"".join(map(_doubles, rows)))


def _doubles(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


def _npy(kind: str, length: int, data: bytes) -> bytes:
    kind = kind if kind.startswith("[") else repr(kind)
    head = f"{{'descr': {kind}, 'fortran_order': False, 'shape': ({length},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


WRITERS = {".csv": csv, ".yaml": yaml, ".npz": npz, ".npy": npy}


def schedule(r: random.Random, columns: Sequence[str]) -> tuple[str, bytes]:
    """Return the name and the content of a schedule of a few steps."""
    steps = r.choice((1, 3, 8, 40))
    drawn = {name: [_value(r, name) for _ in range(steps)] for name in columns}
    if "probability" in drawn:
        total = sum(drawn["probability"])
        drawn["probability"] = [value / total for value in drawn["probability"]]
    ending = r.choice(sorted(WRITERS))
    return f"steps{ending}", WRITERS[ending](drawn)


def _value(r: random.Random, name: str) -> float:
    return {
        "step_size": r.choice((0.1, 0.25, 0.5)), "noise_std": r.choice((1.0, 2.0, 4.0)),
        "laplace_scale": r.choice((1.0, 2.0, 4.0)), "contraction": r.choice((0.5, 0.9, 1.0)),
        "displacement": r.choice((0.5, 0.9, 1.0)), "probability": r.choice((1.0, 2.0, 3.0)),
        "shift": r.choice((0.0, 0.1, 0.5)), "spend": r.choice((0.0, 0.1, 0.25)),
    }[name]  # fmt: skip


def table(r: random.Random, rows: int, label: Sequence[str]) -> bytes:
    """Return a table of two features and a target."""
    lines = ["age,dose,ill"]
    for _ in range(rows):
        lines.append(f"{r.randrange(20, 90)},{r.randrange(0, 40) / 8},{r.choice(label)}")
    return "\n".join([*lines, ""]).encode()


RANGES = b"column,low,high\nage,0,100\ndose,0,5\n"
