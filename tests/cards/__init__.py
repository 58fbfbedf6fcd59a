"""Privacy cards."""
