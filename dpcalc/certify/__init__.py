"""Proof by ball arithmetic: every reported guarantee against the formula of its theorem, evaluated independently.

`dpcalc.certify.case.certify` proves the guarantees of an answer. The folders named after families of theorems hold the
formulas, registered in `dpcalc.certify.table`; `runs` has shared code, and `numerics` the arithmetic. The package needs
python-flint, and shares no arithmetic with the code that it checks.
"""
