"""Steps whose noise is correlated: matrix factorisation, DP-FTRL and banded matrices."""
