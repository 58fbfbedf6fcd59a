"""What several definitions read of a run: its batches and losses, the allocation of shifts, recursions and matchings.

Imports `dpcalc.certify.numerics` and `dpcalc.model`."""
