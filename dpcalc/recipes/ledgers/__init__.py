"""Ledgers: reading one, charging a release to one, and what an evaluation or an accountant charges."""
