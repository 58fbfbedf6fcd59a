"""Definitions of passes that release their iterates, and of their compositions."""
