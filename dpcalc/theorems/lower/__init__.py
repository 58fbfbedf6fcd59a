"""Lower bounds: what no guarantee can beat."""
