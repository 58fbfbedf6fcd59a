"""Passes and steps whose maps may drive two runs apart, on a bounded domain or not."""
