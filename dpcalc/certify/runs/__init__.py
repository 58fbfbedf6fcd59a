"""Shared by several definitions: a run's batches and losses, the allocation of shifts, recursions and matchings.

Imports `dpcalc.certify.numerics` and `dpcalc.model`."""
