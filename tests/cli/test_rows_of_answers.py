"""Default answers are a few rows of 80 columns, one of them with -v a screen; JSON has all of it anyway."""

from pathlib import Path
from typing import Any

import pytest

from dpcalc.theorems.conditions import HIDDEN, PERMITTED
from dpcalc.theorems.record import all_bounds

RUN = "-n 60000 -L 1 --smoothness 1 --eta 0.1"
SGD = "dp-sgd -n 60000 --batch-size 256 --epochs 60"
LOGISTIC = "--loss logistic --feature-bound 1"
ONE = [
    f"rdp {RUN} --sigma 2 -d 1e-6",
    f"rdp {RUN} -i 30000 -e 0.5 -d 1e-6",
    f"rdp {RUN} --sigma 2 --order 2,8",
    f"rdp {RUN} --sigma 2 -d 1e-6 --risk",
    f"rdp {RUN} --sigma 2 -d 1e-6 --assert epsilon<=5",
    f"rdp {RUN.replace('-n 60000', '-n 1000 --batch-size 30')} --sigma 0.2 -d 1e-6",
    f"shuffle {RUN} --sigma 2 -d 1e-6",
    f"shuffle {LOGISTIC} -n 60000 --eta 0.1 --sigma 2 -d 1e-6 --permutation secret",
    "multi-epoch --algorithm shuffle-once -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6 --epochs 10",
    "multi-epoch --algorithm noisy-gd -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 0.1 -d 1e-6 --epochs 100 -D 1",
    "multi-epoch -n 1000 -L 1 --smoothness 1 --sigma 2 --epochs 50 -d 1e-6",
    "multi-epoch -n 60000 --batch-size 256 -L 1 --smoothness 1 --eta 0.1 --sigma 0.05 -e 2 -d 1e-6 --solve epochs",
    f"{SGD} --noise-multiplier 1.1 --sampling poisson --adjacency add-remove -d 1e-5",
    f"{SGD} --noise-multiplier 1.1 --sampling shuffle -d 1e-5",
    f"{SGD} --noise-multiplier 1.1 --sampling shuffle -d 1e-5 --release last",
    f"{SGD} --noise-multiplier 1.1 --sampling shuffle -d 1e-5 --release last --clip 1 {LOGISTIC} --eta 0.1",
    f"{SGD} --sampling poisson -e 2 -d 1e-5",
    f"hockey-stick {RUN} -i 30000 --sigma 2 -e 0.5",
    "shifted --steps 1000 --shift 0.0002 --contraction 0.99 --eta 0.1 --sigma 0.02 --delta 1e-6",
    "online -n 1e6 --window 1000 -L 10 --smoothness 1 --eta 0.01 -D 1 --c1 100 --c2 100 --decay-exponent 1.5 -e 1",
    f"utility {LOGISTIC} -n 100000 --dimension 20 -R 1 -e 1 -d 1e-6",
    "ledger --add 'epsilon=0.1 times=100' --add 'mu=0.5' -d 1e-6 -e 6",
    "convert --mu 1 -d 1e-5",
    "risk -e 1 -d 1e-5",
    "audit --algorithm noisy-gd -n 20 --steps 50 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 0.01 --replicas 1e3",
    f"compare --algorithm cyclic {RUN} --batch-size 60 --epochs 50 --sigma 0.1 -d 1e-6",
    "train --data example:breast-cancer -e 1 -d 1e-5",
    "train --data example:breast-cancer -e 1 -d 1e-5 --seed 1",
    "train --synthetic logistic -n 300 --dimension 2 -R 1 --algorithm stop --eta 0.01 --sigma 2 -d 1e-5",
]
SEVERAL = [
    f"rdp {RUN.replace('60000', '1000,2000,3000')} --sigma 2 -d 1e-6",
    f"compare --algorithm pnsgd,shuffled,noisy-sgd {RUN} --sigma 2 -d 1e-6",
    f"compare --algorithm all {RUN} --sigma 2 -d 1e-6",
    f"utility --algorithm stop {LOGISTIC} -n 60000 --dimension 20 -R 1 -d 1e-6 -e 0.5,1,2",
]
TEXTS = [
    "bounds", f"bounds --algorithm shuffled,cyclic {RUN} --sigma 2", "explain sampled.poisson multi_epoch.cyclic",
    f"statement --algorithm shuffled {RUN} --sigma 2 -d 1e-6",
]  # fmt: skip
WIDTH = 80


def rows_of(text: str) -> list[str]:
    rows = text.splitlines()
    assert max(map(len, rows)) <= WIDTH, max(rows, key=len)
    return rows


@pytest.mark.few(9)
@pytest.mark.parametrize("line", ONE)
def test_an_answer_has_a_few_rows_and_a_screen_with_v(line: str, ask: Any) -> None:
    few = rows_of(ask(line))
    assert len(few) <= (10 if line.startswith(("train", "compare")) else 8), "\n".join(few)
    assert few[-1].startswith("-v adds ")
    screen = rows_of(ask(f"{line} -v"))
    assert len(screen) <= 24, "\n".join(screen)
    assert screen[-1].startswith("-vv adds ")
    assert any("given:" in row for row in screen)


@pytest.mark.parametrize("line", [*SEVERAL, *TEXTS])
def test_tables_and_long_texts_fit_the_width(line: str, ask: Any) -> None:
    assert rows_of(ask(line))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (ONE[14], "hiding the iterates gains nothing: no theorem helps a model that is not convex"),
        (ONE[9], "hiding the iterates gains nothing here: composition is as good"),
    ],
)
def test_hiding_that_gains_nothing_is_said_to(line: str, said: str, ask: Any) -> None:
    assert said in " ".join(ask(line).split())


@pytest.mark.parametrize(
    ("line", "quantity"),
    [
        (ONE[15], "epsilon"),
        (
            f"dp-sgd -n 1000 --batch-size 100 --epochs 9 {LOGISTIC} --clip 1 --eta 0.5 -R 2 --release last "
            "--sampling shuffle --adjacency zero-out -e 3 -d 1e-5", "noise_multiplier",
        ),
    ],
)  # fmt: skip
def test_what_hiding_gains_is_composition_over_the_answer(line: str, quantity: str, ask: Any, ask_json: Any) -> None:
    [case] = ask_json(line)
    hidden, seen = (row["value"] for row in case["results"][:2])
    said = float(" ".join(ask(line).split()).partition(f"makes {quantity} ")[2].split()[0])
    assert 0.99 * seen / hidden <= said <= seen / hidden


def test_what_must_stay_unseen_is_among_what_theorems_assume() -> None:
    assumed = {text for bound in all_bounds().values() for text in bound.assumes}
    assert HIDDEN.keys() <= assumed
    assert assumed >= PERMITTED


def test_a_page_is_never_made_of_what_is_no_terminal(ask: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PAGER", str(tmp_path / "none"))
    assert len(ask("bounds").splitlines()) > 24
