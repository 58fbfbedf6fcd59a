"""Tables and paragraphs fitted to a width."""

import random

import pytest

from dpcalc.render.layout import laid_out, wrapped

WORDS = ("a", "to", "noise", "multi_epoch.contraction_published", "--strong-convexity", "0.000188465")


def words_of(lines: list[str]) -> list[str]:
    return " ".join(lines).split()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_word_is_broken_or_lost_and_no_line_is_too_long(width: int) -> None:
    rng = random.Random(width)
    for _ in range(100):
        columns = rng.randrange(1, 9)
        rows = [[" ".join(rng.choices(WORDS, k=rng.randrange(6))) for _ in range(columns)] for _ in range(4)]
        rows = [["head"] * columns, *rows]
        for row, lines in zip(rows[1:], laid_out(rows, width)[1:], strict=True):
            found = [word.rstrip(";") for word in words_of(lines) if word.rstrip(";") != "head"]
            assert sorted(found) == sorted(words_of(row))
            assert max(map(len, lines), default=0) <= width


def test_an_equation_stays_on_one_line() -> None:
    lines = wrapped("step_size eta = 0.1, " * 20, 50, "given:   ", "         ")
    assert all(line.count("=") == line.count("eta = 0.1") for line in lines)
    assert all(line.startswith(("given:   ", "         ")) and len(line) <= 50 for line in lines)
