"""Ledgers: reading them, and charging releases, evaluations and fits to them."""
