"""What is true: one file per family of theorems."""
