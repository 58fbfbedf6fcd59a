"""Files: a reader returns something or raises DpcalcError, whatever the bytes."""

import io
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpcalc.errors import DpcalcError
from dpcalc.model.schedule_file import read_schedule
from tests.fuzz.mutate import mutated

Target = Callable[[random.Random, Path], None]
MAX_MESSAGE = 4000


def files(seeds: Mapping[str, Sequence[bytes]], read: Callable[[str], Any]) -> Target:
    """The target that feeds ``read`` the path of a mutated seed; ``seeds`` has those of each ending (".csv": ...)."""

    def target(r: random.Random, folder: Path) -> None:
        ending = r.choice(sorted(seeds))
        path = folder / f"input{ending}"
        path.write_bytes(mutated(r, seeds[ending]))
        refusable(lambda: read(str(path)))

    return target


def refusable(call: Callable[[], Any]) -> Any:
    """What the call returns, or None where it refuses as it should: one bounded line, and a hint."""
    try:
        return call()
    except DpcalcError as error:
        refusal = error
    assert refusal.exit_code in (2, 3), repr(refusal)
    assert refusal.message
    for text in (refusal.message, refusal.hint or ""):
        assert "\n" not in text, repr(text)
        assert len(text) < MAX_MESSAGE, f"a message of {len(text)} characters"
    return None


# --- schedules ------------------------------------------------------------------------------------------------------

COLUMNS = ("step_size", "noise_std", "laplace_scale", "contraction", "displacement", "probability", "shift", "spend")


def saved(save: Any, *arrays: Any, **named: Any) -> bytes:
    """Return what `numpy.save` or one of its like writes."""
    stream = io.BytesIO()
    save(stream, *arrays, **named)
    return stream.getvalue()


def _fields() -> Any:
    array = np.zeros(3, dtype=[("step_size", float), ("noise_std", np.int64)])
    array["step_size"], array["noise_std"] = [0.1, 0.2, 0.3], [1, 2, 3]
    return array


CSV = (
    b"step_size,noise_std\n0.1,1\n0.2,2\n0.3,3\n",
    b"\xef\xbb\xbf# comment\r\neta, sigma, repeat\r\n0.1,1,3\r\n\r\n1/2,2^-3,1e2\n",
    b"shift\n0\n0\n1e-5\n",
)
YAML = (
    b"steps: 3\nstep_size: 0.1\nnoise_std: [1, 2, 3]\n",
    b"shift: &a [1, 2^-1, 1/4]\nspend: *a\nnoise_std:\n  - 1\n  - 2\n  - 3\n",
    b'{"step_size": [0.5, 0.25], "probability": [0.5, 0.5]}\n',
)
NPY = (saved(np.save, _fields()), saved(np.save, np.arange(4.0)), saved(np.save, np.float32(1.0)))
NPZ = (
    saved(np.savez, step_size=np.array([0.1, 0.2]), shift=np.array([1, 2])),
    saved(np.savez_compressed, noise_std=np.ones(1000)),
)
SCHEDULES = {".csv": CSV, ".yaml": YAML, ".yml": YAML, ".npy": NPY, ".npz": NPZ}


def _schedule(path: str) -> None:
    table = read_schedule(path, columns=COLUMNS, required=())
    assert len({len(column) for column in table.values()}) == 1
    assert all(np.isfinite(column).all() for column in table.values())


schedules = files(SCHEDULES, _schedule)
