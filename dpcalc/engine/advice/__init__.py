"""Advice: what would improve an answer, what a description lacks, and notes beside a number."""
