"""Guarantees: upper bounds on what a run reveals."""
