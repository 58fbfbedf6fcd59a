"""Definitions of steps on batches drawn at random."""
