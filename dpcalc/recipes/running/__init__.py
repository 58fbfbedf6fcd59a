"""Checks of any number of cases: computed here or elsewhere, kept in a file, shared out and merged."""
