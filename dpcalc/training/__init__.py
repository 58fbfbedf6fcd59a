"""The algorithms themselves, in numpy: what was accounted is what is run."""
