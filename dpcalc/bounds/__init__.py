"""What is true: one file per family, one function and one record per theorem."""
