"""``dpcalc dp-sgd``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("dp-sgd", cls=Command)
@parameter_options("dp-sgd")
def command(**flags: Any) -> None:
    """DP-SGD with clipped gradients, any model: what Opacus, TensorFlow Privacy and JAX-Privacy run.

    \b
    How private are 20 epochs of a loader of 100 batches: 1 in 100, 2000 times?
      dpcalc dp-sgd -n 50000 --sample-rate 0.01 --steps 2000 \\
        --noise-multiplier 1.1 --sampling poisson --adjacency zero-out -d 1e-5
    Which noise multiplier makes that epsilon 2?
      dpcalc dp-sgd -n 50000 --sample-rate 0.01 --steps 2000 --sampling poisson \\
        --adjacency zero-out -e 2 -d 1e-5

    \b
    And if the model is linear, and nobody sees but the last iterate?
      dpcalc dp-sgd -n 1000 --batch-size 50 --steps 20000 --noise-multiplier 3 \\
        --sampling poisson --adjacency zero-out --clip 1 --loss logistic \\
        --feature-bound 1 --eta 2 -R 0.5 --release last -d 1e-5

    --sampling decides: the same noise is worth several times more with one way to draw batches than with another.
    Leave it out to see what each would give.

    With dp-sgd all iterates may be public. dp-sgd-gradient and dp-sgd-output release the average of the iterates, for
    losses that need not be smooth (Hoelder gradients); only with dp-sgd-output must the iterates stay hidden.

    \b
    How much noise on the gradients of a hinge loss?
      dpcalc dp-sgd --algorithm dp-sgd-gradient --loss hinge --feature-bound 1 \\
        -n 10000 -R 1 -e 1 -d 1e-8
    And on the output?
      dpcalc dp-sgd --algorithm dp-sgd-output --loss hinge --feature-bound 1 \\
        -n 10000 -R 1 --eta 0.001 -e 1 -d 1e-8
    """
    run_query("dp-sgd", flags)
