"""Accounts of training runs from the files that they wrote."""
