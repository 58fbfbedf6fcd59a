"""The command line: options to parameters, and nothing else."""
