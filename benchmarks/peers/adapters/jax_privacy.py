"""Questions in the words of JAX-Privacy: the sensitivity of a Toeplitz matrix, in doubles; one record left out."""

import math

import dp_accounting
import jax

jax.config.update("jax_enable_x64", True)

from jax_privacy.matrix_factorization import toeplitz  # noqa: E402 (after the precision is set)


def _square_root(given):
    column = toeplitz.optimal_max_error_strategy_coefs(given["steps"])
    squared = toeplitz.minsep_sensitivity_squared(column, given["steps"] // given["epochs"], given["epochs"])
    return dp_accounting.get_epsilon_gaussian(given["sigma"] / math.sqrt(float(squared)), given["delta"])


METHODS = {"square root": {"sensitivity": _square_root}}
