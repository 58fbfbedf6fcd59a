"""What is asked, what is filled in by default, and what is guaranteed of the run."""
