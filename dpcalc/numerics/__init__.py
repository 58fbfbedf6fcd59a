"""Numerics, without a word of privacy."""
