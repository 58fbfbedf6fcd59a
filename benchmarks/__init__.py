"""Measurements that the documentation shows, and those that are made by hand."""
