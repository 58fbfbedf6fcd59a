"""Privacy cards: the guarantee of a release, in one document that can be published and verified.

A card contains everything that its numbers follow from. Its readers recompute all of it with `dpcalc verify`.
"""
