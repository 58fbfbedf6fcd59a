"""Printing, drawing and writing reports, and messages of failures."""
