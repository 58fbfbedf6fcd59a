"""What is executed: the plan, the kernel of a step, the noise, and how released numbers are rounded."""
