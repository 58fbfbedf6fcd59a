"""Solving for a parameter of the run: searches that end on the safe side."""
