"""Privacy cards: what is guaranteed of a release, in one document that can be published and verified.

A card has everything that its numbers follow from. Who reads it recomputes all of it with `dpcalc verify`.
"""
