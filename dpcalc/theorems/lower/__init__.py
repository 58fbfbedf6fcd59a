"""What no guarantee can beat."""
