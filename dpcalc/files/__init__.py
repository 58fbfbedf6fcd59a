"""Opening and unpacking files that need not be trusted."""

STANDARD_STREAM = "-"
"""The path that stands for standard input or standard output."""
