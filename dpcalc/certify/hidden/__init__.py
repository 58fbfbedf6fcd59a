"""Definitions of last iterates: expanding maps, and clipped gradients."""
