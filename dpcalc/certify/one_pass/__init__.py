"""Definitions of one pass over the records, in a fixed or a random order, or with changing noise."""
