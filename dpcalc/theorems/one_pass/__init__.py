"""One pass in a fixed order: amplification by iteration and shifted divergences, also of random parts of a pass."""
