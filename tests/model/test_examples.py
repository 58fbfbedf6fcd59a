"""The values that errors show as examples."""

import pytest

from dpcalc.model.parameter import EVERY, check, example_of


@pytest.mark.parametrize("name", [name for name, each in EVERY.items() if not each.choices])
def test_an_example_may_be_given(name: str) -> None:
    assert check(name, example_of(name)) == example_of(name)
