"""The named tuples of the package behave as those of ``typing`` do, and say what is wrong."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import NamedTuple

import pytest


class Point(NamedTuple):
    x: int
    y: int = 2


class Far(Point):
    z: int = 3


class Usual(typing.NamedTuple):
    x: int
    y: int = 2


def test_it_is_the_usual_tuple() -> None:
    for made, usual in ((Point(1), Usual(1)), (Point(1, 5), Usual(1, 5)), (Point(y=4, x=3), Usual(y=4, x=3))):
        assert (tuple(made), made._asdict(), made._fields) == (tuple(usual), usual._asdict(), usual._fields)
        assert tuple(made._replace(y=9)) == tuple(usual._replace(y=9))
        assert copy.copy(made) == pickle.loads(pickle.dumps(made)) == made


def test_a_subclass_has_the_fields_of_its_base() -> None:
    assert Far._fields == ("x", "y", "z")
    assert Far._field_defaults == {"y": 2, "z": 3}
    far = Far(1)
    assert (far.x, far.y, far.z, far._replace(y=7)) == (1, 2, 3, Far(1, 7, 3))


@pytest.mark.parametrize("values", [(), (1,), (1, 2, 3)])
def test_a_tuple_is_made_of_as_many_values_as_it_has_fields(values: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match=f"2 fields, and there are {len(values)} values"):
        Point._make(values)
    assert Point._make(iter((1, 5))) == Point(1, 5)


@pytest.mark.parametrize(
    ("values", "named", "said"),
    [
        ((), {}, "lacks x"),
        ((1,), {"x": 2}, "is given x twice"),
        ((1, 2, 3), {}, "takes 2 values, not 3"),
        ((1,), {"z": 2}, "does not take z"),
        ((), {"z": 2}, "does not take z and lacks x"),
    ],
)
def test_what_is_wrong_with_values_is_said(values: tuple[int, ...], named: dict[str, int], said: str) -> None:
    with pytest.raises(TypeError) as wrong:
        Point(*values, **named)
    assert str(wrong.value) == f"Point(x, y) {said}"


def test_a_field_without_a_default_comes_first() -> None:
    namespace = {"__module__": __name__, "__annotations__": {"a": "int", "b": "int"}, "a": 1}
    with pytest.raises(TypeError, match="b, which has no default, follows a, which has one"):
        type(Point)("Wrong", (NamedTuple,), namespace)
