"""One pass on a bounded domain by contraction coefficients: fixed and random orders, schedules and streams."""
