"""The best of a random number of runs, with the choice among settings paid for."""
