"""Passes and steps whose maps may expand distances, with or without a bounded domain."""
