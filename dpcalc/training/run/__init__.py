"""The execution of runs: the plan, the kernel of a step, the noise, and the rounding of released numbers."""
