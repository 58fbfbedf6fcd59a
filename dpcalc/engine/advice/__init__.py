"""What would better an answer, what a description lacks, and what is worth knowing beside a number."""
