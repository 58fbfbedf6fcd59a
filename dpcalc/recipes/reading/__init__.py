"""Recipes as text: cases, gates and references, read from YAML with the place of every mistake."""
