"""Numerics: nothing here knows of privacy.

A function whose result is rounded to one side ends in `_up` or `_down`. An enclosure is a pair (low, high). Every other
function rounds to nearest, and its docstring says how good it is.
"""
