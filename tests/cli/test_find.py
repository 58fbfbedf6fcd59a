"""One search: what a stranger types leads to one answer and a command, and every topic's command works as printed."""

import functools
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpcalc.cli.commands.find import ROWS
from dpcalc.cli.help import search
from dpcalc.cli.help.search import entries, found
from dpcalc.cli.main import COMMANDS, main
from dpcalc.theorems.record import all_bounds
from dpcalc.topics import bare, topics, words_for_commands


@pytest.fixture(autouse=True, scope="module")
def _indexed_once() -> Iterator[None]:
    """A command searches once; here every search would index the same entries again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_indexed", functools.cache(search._indexed))
        yield


def ended(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    printed = capsys.readouterr()
    return int(stop.value.code or 0), printed.out, printed.err


ASKED = {
    "corollary 31": "dpcalc explain utility.public",
    "feldman theorem 23": "dpcalc explain iteration.pnsgd",
    "thm. 24": "dpcalc explain iteration.skip",
    "kairouz 3.3": "dpcalc explain released.optimal",
    "figure 2 sordello": "dpcalc shuffle -n 1e5:1e9:log33",
    "sordello-5": "dpcalc online -n 1e3:1e10:log15",
    "table 7 bok": "dpcalc multi-epoch --algorithm noisy-gd",
    "table 1 feldman": "dpcalc utility",
    "momentum": "dpcalc dp-sgd",
    "adam": "dpcalc dp-sgd",
    "AdamW": "dpcalc dp-sgd",
    "drop_last": "dpcalc help last-batch",
    "delta too large": "dpcalc rdp",
    "errata": "dpcalc find errata sordello",
    "errata wang 2022": "dpcalc explain dp_sgd.",
    "automatic clipping": "dpcalc dp-sgd",
    "ghost clipping": "dpcalc dp-sgd",
    "augmentation multiplicity": "dpcalc dp-sgd",
    "how do I account for hyperparameter tuning": "dpcalc ledger --add",
    "several runs": "dpcalc ledger --add",
    "composition": "dpcalc ledger --add",
    "max_grad_norm": "dpcalc help clip",
    "weight decay": "dpcalc help regularisation",
    "learning rate": "dpcalc help step-size",
    "lr": "dpcalc help step-size",
    "lambda": "dpcalc help regularisation",
    "units": "dpcalc help noise",
    "clipping": "dpcalc help loss-class",
    "hidden iterates": "dpcalc help release",
    "membership inference": "dpcalc risk",
    "canaries": "dpcalc audit",
    "opacus": "dpcalc dp-sgd",
    "bibtex": "dpcalc cite",
    "user-level": "dpcalc dp-sgd",
    "federated": "dpcalc dp-sgd",
    "dp-ftrl": "dpcalc dp-ftrl",
    "lower bound": "dpcalc compare",
    "balls-in-bins": "dpcalc help sampling",
    "shuffle-once": "dpcalc bounds --algorithm shuffle-once",
    "langevin": "dpcalc ",
    "gradient accumulation": "dpcalc dp-sgd",
    "batchnorm": "dpcalc help loss-class",
    "early stopping": "dpcalc find tuning",
    "zcdp": "dpcalc help method#notions",
    "adjasency": "dpcalc help adjacency",
    "hyperparamter": "dpcalc ledger",
    "forget a record": "dpcalc unlearn",
    "zhu": "dpcalc explain sampled.poisson",
    "steinke": "dpcalc explain sampled.last_iterate_heuristic",
}
"""What a stranger types -> what the first command begins with."""


@pytest.mark.parametrize("words", ASKED)
def test_a_question_leads_to_its_command(words: str) -> None:
    hits = found(words.split())
    assert hits
    assert hits[0].command.startswith(ASKED[words]), [(hit.kind, hit.name) for hit in hits[:5]]


@pytest.mark.parametrize("words", ["errata", "noise", "corollary 31", "tuning", "feldman", "shuffled", "poisson"])
def test_an_answer_is_eight_rows_and_json_has_everything(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(capsys, f"find {words}")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) <= ROWS
    assert max(map(len, out.splitlines())) <= 80
    hits = json.loads(ended(capsys, f"find {words} --json")[1])
    assert [hit["command"] for hit in hits] == [hit.command for hit in found(words.split())]
    everything = ended(capsys, f"find {words} --all")[1]
    assert everything.count("\n  dpcalc ") == len(hits)
    if more := re.search(r"^(\d+) more: dpcalc (find .*)$", out, re.MULTILINE):
        assert out.count("\n  dpcalc ") + int(more[1]) == len(hits)
        assert ended(capsys, more[2])[1] == everything


@pytest.mark.few(1)
@pytest.mark.parametrize("part", range(5))
def test_a_theorem_is_found_by_its_number(part: int) -> None:
    for bound in list(all_bounds().values())[part::5]:
        number = re.match(r"(Theorem|Lemma|Corollary) (\d+)\b", bound.locator)
        if number:
            author = bound.reference.rstrip("0123456789")
            names = {hit.name.removeprefix("erratum ") for hit in found([author, number[1], number[2]])}
            assert bound.id in names


@pytest.mark.few(1)
@pytest.mark.parametrize("part", range(5))
def test_every_bound_and_topic_is_found_by_its_name(part: int) -> None:
    for entry in entries()[part::5]:
        if entry.kind in ("bound", "topic"):
            assert entry.name in [hit.name for hit in found([entry.name])[:2]], entry.name


# explain and help take the same words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("corollary 31", "utility.public: "),
        ("feldman theorem 35", "multi_epoch.cyclic: "),
        ("iteration.pnsgd", "iteration.pnsgd: "),
        ("adam", "With dp-sgd, where every"),
        ("errata", "What the papers have wrong"),
    ],
)
def test_explain_takes_words_that_name_one_thing(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(capsys, f"explain {words}")
    assert (code, err) == (0, "")
    assert out.startswith(said)


def test_bounds_takes_words_too(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = ended(capsys, "bounds corollary 31 --json")
    assert [bound["id"] for bound in json.loads(out)] == [
        "utility.public", "utility.public_classic", "utility.public_published",
    ]  # fmt: skip


# topics


COMMANDS_OF_TOPICS = sorted({topic.type for topic in topics()})


@pytest.mark.few(8)
@pytest.mark.parametrize("line", COMMANDS_OF_TOPICS)
def test_what_a_topic_says_to_type_works(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(capsys, line.removeprefix("dpcalc "))
    assert code == 0
    assert not err or err.startswith("warning: delta is at least 1/records")
    assert out


def test_topics_are_short_and_a_name_is_one_topic() -> None:
    names = [bare(topic.name) for topic in topics()]
    assert len(set(names)) == len(names)
    refused = [bare(word) for topic in topics() for word in (*topic.flags, *topic.refuses)]
    assert len(set(refused)) == len(refused)
    assert all(len(topic.says) <= 240 for topic in topics())
    assert set(words_for_commands()) <= set(COMMANDS)
    assert not {word for words in words_for_commands().values() for word in words} & set(COMMANDS)


def test_figures_are_those_of_the_documentation() -> None:
    """A figure that is found has the command of docs/figures.md, but for where it is drawn."""
    page = Path(__file__).resolve().parents[2] / "docs" / "figures.md"
    if not page.exists():
        pytest.skip("the documentation is not part of this distribution")
    drawn = re.findall(r"^\$ (dpcalc .*?)(?: --plot-bounds \S+)? --plot \S+$", page.read_text("utf-8"), re.MULTILINE)
    figures = [topic for topic in topics() if re.match(r"figure (of|[2-5])", topic.name)]
    assert len(figures) == 5
    assert {topic.type for topic in figures} <= set(drawn)
