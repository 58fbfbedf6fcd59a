"""The cases of a selection judged one by one, here or by whoever was sent their text."""

from __future__ import annotations

from functools import partial

from dpcalc.recipes.judging.verdict import error, judged
from dpcalc.recipes.running.evaluate import Answers, broken
from dpcalc.recipes.running.selection import Selection
from dpcalc.render.notes import in_words
from dpcalc.report import Case


class Judge:
    """Gives the verdicts.

    Args:
        selection: whose cases are judged.
        answers: to them and to those that they are compared with.
    """

    def __init__(self, selection: Selection, answers: Answers) -> None:
        self._selection, self._answers = selection, answers
        self._stale: dict[tuple[int, str, str], bool] = {}

    def __call__(self, place: int) -> Case:
        """Return the case at a place with its verdict; an error that nobody expected is one of this case alone."""
        recipe, entry = self._selection.at(place)
        certify = self._selection.options.certify
        try:
            case = judged(recipe, entry, partial(self._answers, recipe), certify=certify, stale=self._stale)
        except Exception as unexpected:
            case = error(entry, entry.place, broken(unexpected))
        return in_words("check", case)
