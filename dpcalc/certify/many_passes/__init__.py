"""Definitions of several passes, in one order or in fresh ones, and of full-batch descent."""
