"""The version, alone in a file so that nothing else need be imported to read it."""

__version__ = "0.1.0"
