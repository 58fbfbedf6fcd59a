"""What leaves a run is a function of its noisy sums: given those of a neighbour, it is the same in every bit."""

import json
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcalc.training.release import calibration, centring
from dpcalc.training.run import correlation, exact_sums, kernel
from dpcalc.training.run.exact_sums import ExactSums
from dpcalc.training.run.kernel import PlainSums, Singly
from tests.oracles import cases
from tests.training.test_neighbours import ranged, said

HOSTILE = (b"inf,nan,no", b"1e308,-1e400,yes", b",,", b"", b"9,9", b"-0,5e-324,2", b"\xff,\0,yes", b"1e-320,1,YES")
LINES = (
    "--labels no,yes -e 4 --class-weight 1,5",
    "--labels no,yes -e 0.3 --class-weight sqrt --class-shares 0.9,0.1 --loss hinge",
    "--labels no,yes,2 -e 9 --class-weight 1e-300,1,0.3 --release epoch",
    "--labels no,yes,2 -e 24 --class-weight 1e-300,1,0.3",  # with a bias of each class
    "--labels no,yes -e 4 --class-weight 1,5 --batch-size 20",
    "--labels no,yes -e 8 --class-weight balanced --class-shares 0.9,0.1 --batch-size 20 --release epoch",
    "--labels no,yes,2 -e 8 --class-weight 1,2,3 --batch-size 4 --epochs 10",
    "--labels no,yes -e 8 --class-weight 1,5 --batch-size 1 --epochs 2",
    "--labels no,yes -e 8 --class-weight 1,5 --algorithm correlated --batch-size 1 --epochs 2",
    "--labels no,yes -e 8 --class-weight 1,5 --algorithm correlated --batch-size 3 --epochs 6 --mechanism banded-sqrt "
    "--bands 3 --sampling poisson",
    "--labels no,yes,2 -e 8 --class-weight 1,5,2 --algorithm correlated --batch-size 1 --epochs 2 --sampling shuffle",
    "--target-range 0,10 -e 9",
)  # fmt: skip


class Tape:
    """The noisy sums of a run, which another run is given; and the sums of both without noise, with their bounds."""

    def __init__(self) -> None:
        self.kept: list[np.ndarray] = []
        self.sums: list[tuple[np.ndarray, float]] = []
        self.place: int | None = None

    def noisy(self, value: Any) -> Any:
        if self.place is None:
            self.kept.append(value.copy())
            return value
        self.place += 1
        return self.kept[self.place - 1].copy()

    def after(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given: self.noisy(function(*given))

    def summed(self, sums: Callable[..., np.ndarray], bound: Callable[[Any], float]) -> Callable[..., np.ndarray]:
        def kept(self_: Any, *given: Any) -> np.ndarray:
            total = sums(self_, *given)
            self.sums.append((total.copy(), bound(self_)))
            return total

        return kept


@pytest.fixture
def tape(monkeypatch: pytest.MonkeyPatch) -> Tape:
    tape = Tape()
    for module in (exact_sums, correlation):
        monkeypatch.setattr(module, "rounded_cells", tape.after(exact_sums.rounded_cells))
    monkeypatch.setattr(kernel, "plain_move", tape.after(kernel.plain_move))
    taken = Singly.taken
    monkeypatch.setattr(
        Singly, "taken", lambda self, *given: (tape.noisy if self.released is None else np.asarray)(taken(self, *given))
    )
    monkeypatch.setattr(ExactSums, "_sum", tape.summed(ExactSums._sum, lambda sums: sums.most))
    monkeypatch.setattr(PlainSums, "_of", tape.summed(PlainSums._of, lambda sums: float(sums.plan.clip)))
    assert centring.rounded_sum is calibration.rounded_sum is exact_sums.rounded_sum  # by way of rounded_cells
    return tape


@pytest.mark.few(6)
@pytest.mark.parametrize("more", LINES)
def test_what_leaves_is_made_of_noisy_sums(
    more: str, tape: Tape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a replaced record, of another class, moves a sum at the same iterate by at most twice its bound."""
    monkeypatch.chdir(tmp_path)
    write = ranged(tmp_path)
    line = f"train --data t.csv {more} --ranges ranges.csv -d 1e-3 --seed 3 -o m.json"
    for number in range(cases(8, 2)):
        r = random.Random(f"replay {number}")
        rows = [b"%g,%g,%s" % (r.uniform(-1, 1), r.uniform(0, 100), r.choice((b"no", b"yes", b"2"))) for _ in range(60)]
        rows[:4] = *r.sample(HOSTILE, 3), rows[5]
        seen, sums = [], []
        tape.kept.clear()
        for place, last in ((None, rows[-1]), (0, r.choice((b"1,100,no", b"-1,0,yes", *HOSTILE)))):
            tape.place, tape.sums = place, []
            write([*rows[:-1], last])
            seen.append((said(line, "json"), json.loads((tmp_path / "m.json").read_text())))
            sums.append(tape.sums)
        assert seen[0] == seen[1], last
        assert seen[0][0][0][0] == 0, seen
        assert tape.place == len(tape.kept) > 0
        for (one, bound), (other, _) in zip(*sums, strict=True):
            change = sum((Fraction(float(entry)) ** 2 for entry in other - one), Fraction(0))
            assert change <= 4 * Fraction(bound) ** 2
