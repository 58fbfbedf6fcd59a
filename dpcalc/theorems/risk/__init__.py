"""Excess risk: the cost of a privacy budget in accuracy."""
