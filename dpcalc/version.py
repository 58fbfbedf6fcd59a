"""The version, in a file of its own so that reading it imports nothing else."""

__version__ = "1.0.0rc1"
