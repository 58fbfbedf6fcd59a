"""A real run of Opacus: what was sampled and added is counted, and the account says as much.

It needs torch and opacus, which nothing else does: ``pip install torch opacus``.
"""

import contextlib
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpcalc.account.described import Described
from dpcalc.account.facts import Said
from dpcalc.account.forms import read_run
from dpcalc.account.stated import Missing
from dpcalc.account.way import _described, _typed
from dpcalc.cli.commands.account import SNIPPET
from dpcalc.errors import NotApplicable

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
pytestmark = pytest.mark.filterwarnings("ignore")  # Opacus warns of its own defaults
Z, CLIP, SIZE = 1.5, 2.0, 4000


class Counted:
    """What a run did: how often each record was drawn, batches that were drawn, and noises that were added."""

    def __init__(self) -> None:
        self.draws: Counter[int] = Counter()
        self.batches = self.noises = 0
        self.squares: list[float] = []  # of the noise of a coordinate of the sum


def trained(folder: Path, *, records: int, batch: int, epochs: int, drop_last: bool = False, held: int = 0,
            poisson: bool = True, **private: Any) -> tuple[str, Counted]:  # fmt: skip
    """Train with gradients that are zero, and return the file that the snippet wrote, and the counts."""
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    data = TensorDataset(torch.zeros(records, 1), torch.arange(records))
    model, counted = torch.nn.Linear(1, SIZE, bias=False), Counted()
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        data_loader=DataLoader(data, batch_size=batch, drop_last=drop_last), noise_multiplier=Z,
        max_grad_norm=CLIP, poisson_sampling=poisson, **private,
    )  # fmt: skip
    counting(optimizer, counted)
    for _ in range(epochs):
        with in_memory(BatchMemoryManager, loader, optimizer, held) as shown:
            for rows, numbers in shown:
                counted.draws.update(numbers.tolist())
                counted.batches += 1
                optimizer.zero_grad()
                model(rows).sum().backward()
                optimizer.step()
    place = folder / "run.json"
    exec(SNIPPET.replace("run.json", str(place)), {"engine": engine, "loader": loader, "optimizer": optimizer})
    return str(place), counted


def counting(optimizer: Any, counted: Counted) -> None:
    """Count the noises that an optimizer adds, and measure them: gradients are zero."""
    add = optimizer.add_noise

    def adding() -> None:
        add()
        counted.noises += 1
        counted.squares.append(float((optimizer.params[0].grad ** 2).mean()))

    optimizer.add_noise = adding


@contextlib.contextmanager
def in_memory(manager: Any, loader: Any, optimizer: Any, held: int) -> Iterator[Any]:
    if not held:
        yield loader
        return
    with manager(data_loader=loader, max_physical_batch_size=held, optimizer=optimizer) as shown:
        yield shown


def account_of(path: str, **flags: str) -> Described:
    said: dict[str, Said] = {name: _typed(name, text) for name, text in {"delta": "1e-5", **flags}.items()}
    return _described(read_run(path), said, None)


@pytest.mark.parametrize(
    ("records", "batch", "drop_last", "held"),
    [(570, 200, True, 0), (570, 200, False, 0), (930, 10, False, 0), (600, 60, False, 16), (49, 1, False, 0)],
)
def test_the_account_is_of_what_was_sampled(
    tmp_path: Path, records: int, batch: int, *, drop_last: bool, held: int
) -> None:
    epochs = 4
    path, counted = trained(tmp_path, records=records, batch=batch, epochs=epochs, drop_last=drop_last, held=held)
    run = account_of(path)
    (phase,) = run.phases
    assert run.steps == counted.noises
    assert held or counted.noises == counted.batches
    assert phase.rate is not None
    tosses, drawn = records * counted.noises, sum(counted.draws.values())
    spread = math.sqrt(tosses * phase.rate * (1.0 - phase.rate))
    assert abs(drawn - tosses * phase.rate) < 5.0 * spread + 0.02 * tosses * phase.rate  # 1/(k-1) is said where 1/k is
    assert len(counted.draws) <= records
    std = math.sqrt(sum(counted.squares) / len(counted.squares))
    assert std == pytest.approx(phase.noise_multiplier * CLIP, rel=0.05)


def test_what_the_history_does_not_tell_is_asked_or_refused(tmp_path: Path) -> None:
    path, counted = trained(tmp_path, records=60, batch=20, epochs=2, poisson=False)
    assert set(counted.draws.values()) == {2}  # every record once in each epoch
    with pytest.raises(Missing, match="not Poisson sampling") as asked:
        account_of(path)
    assert asked.value.fact == "sampling"
    run = account_of(path, sampling="shuffle")
    assert (run.steps, run.phases[0].rate) == (counted.noises, None)


def test_adaptive_clipping_is_refused(tmp_path: Path) -> None:
    clipped = {"clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2,
               "max_clipbound": 10.0, "min_clipbound": 0.1, "unclipped_num_std": 2.0}  # fmt: skip
    path, _ = trained(tmp_path, records=100, batch=20, epochs=1, **clipped)
    with pytest.raises(NotApplicable, match="adaptive clipping"):
        account_of(path)
