"""Several releases about the same records, together."""
