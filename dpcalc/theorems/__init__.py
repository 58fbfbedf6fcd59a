"""The theorems: one file per family."""
