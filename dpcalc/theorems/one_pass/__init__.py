"""One pass in a fixed order: amplification by iteration and shifted divergences, also for random parts of a pass."""
