"""The commands that do more than one query about a described run; each is imported on use."""
