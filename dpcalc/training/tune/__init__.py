"""The best of a random number of runs; the guarantee covers the choice among settings."""
