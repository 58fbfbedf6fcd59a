"""Losses with Holder continuous gradients: noise on the gradient or on the output of SGD."""
