"""Passes whose ends are released."""
