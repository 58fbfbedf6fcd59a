"""Lower bounds on epsilon from attacks on many runs."""
