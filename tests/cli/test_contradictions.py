"""A lower bound that takes long is asked near the best guarantee, and one that contradicts it is a bug to report."""

import shlex
from typing import Any

import pytest

from dpcalc.cli.main import main
from dpcalc.engine import ask as asking
from dpcalc.theorems.record import Theorem, for_algorithm

RUN = "--algorithm shuffled -n 50 -L 1 --smoothness 1 --eta 1 -d 1e-6"
QUESTIONS = (f"compare {RUN} --sigma 4", f"compare {RUN} -e 1 --solve noise-std")


def noisier(bound: Theorem, factor: float) -> Theorem:
    """Return the theorem as it would be if there were so many times the noise."""

    def wrong(run: Any) -> Any:
        return bound.function(run.changed(scale=factor * run.scale))

    return bound._replace(function=wrong) if bound.guarantee and "scale" in bound.parameters else bound


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_guarantee_that_a_lower_bound_rules_out_is_a_bug_to_report(
    capsys: pytest.CaptureFixture[str], ask: Any, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """Linear losses meet all that is said of the run, and show far more than a guarantee for so much noise allows."""
    ask(question)
    monkeypatch.setattr(asking, "for_algorithm", lambda *of: [noisier(bound, 8.0) for bound in for_algorithm(*of)])
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(question))
    said = capsys.readouterr()
    assert (stop.value.code, said.out) == (4, "")
    for part in ("--- bug report ---", "records=50", "is below what linear.shuffled rules out"):
        assert part in said.err


def test_losses_with_steep_gradients_contradict_no_guarantee(ask_json: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They bound guarantees that use only how far gradients are apart: the row is left out, and the case says why."""
    monkeypatch.setattr(asking, "for_algorithm", lambda *of: [noisier(bound, 1.02) for bound in for_algorithm(*of)])
    [case] = ask_json(QUESTIONS[0])
    assert "linear.shuffled_curved" not in {row["bound"] for row in case["results"]}
    [why] = [each for each in case["not_applicable"] if each["bound"] == "linear.shuffled_curved"]
    assert "how far two gradients are apart" in why["because"]
