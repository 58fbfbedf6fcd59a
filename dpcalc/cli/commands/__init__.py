"""The commands that do more than ask one query about a described run; each is imported when it is typed."""
