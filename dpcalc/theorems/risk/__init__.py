"""Excess risk: what a budget costs."""
