"""Numerics: nothing here knows of privacy.

The names of functions that round to one side end in `_up` or `_down`. An enclosure is a pair (low, high). Other
functions round to nearest, and their docstrings state the accuracy.
"""
