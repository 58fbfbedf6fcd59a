"""The setup of a run, its defaults, and its guarantee."""
