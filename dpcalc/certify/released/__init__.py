"""Definitions of passes that release their iterates, and of what is composed from them."""
