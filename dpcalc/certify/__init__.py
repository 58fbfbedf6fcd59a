"""Proof by ball arithmetic: every reported guarantee against the formula of its theorem, evaluated independently.

`dpcalc.certify.case.certify` does it for an answer; the modules named after families hold the formulas. Needs
python-flint, and uses nothing of the arithmetic that it checks.
"""
