"""The commands that ask one query about a described run: a table with their help."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dpcalc.cli.query import Command, parameter_options, run_query

if TYPE_CHECKING:
    pass


class RunCommand(NamedTuple):
    """A command of one query.

    Attributes:
        help: the text.
        query: the name of its query; empty: the name of the command.
        format: the default output format.
        options: further options, after the query's parameters and the report options.
    """

    help: str
    query: str = ""
    format: str | None = None
    options: tuple[Callable[..., Any], ...] = ()

    def made(self, name: str) -> click.Command:
        """Return the command of this name."""
        query = self.query or name

        def ask(**flags: Any) -> None:
            run_query(query, {**flags, "format": flags["format"] or self.format})

        for option in self.options:
            ask = option(ask)
        return click.command(name, cls=Command, help=self.help)(parameter_options(query)(ask))


_SHARD = click.option(
    "--shard",
    metavar="I/N",
    help="Run only shard I of N of a sweep, on one of N machines; dpcalc merge combines their --report json=FILE.",
)

RUNS = {
    "compare": RunCommand(
        """Evaluate every bound that applies to a described run, best first, and say why the others do not.

        \b
        One pass in a random order: how private, and what would make it better?
          dpcalc compare --algorithm shuffled -n 60000 -L 1 --smoothness 1 \\
            --eta 0.1 --sigma 2 -d 1e-6
        What does shuffling buy?
          dpcalc compare --algorithm pnsgd,shuffled,noisy-sgd -n 60000 -L 1 \\
            --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6
        The noise for several budgets:
          dpcalc compare --algorithm cyclic --epochs 10 -n 60000 -L 1 \\
            --smoothness 1 --eta 0.1 -d 1e-6 -e 0.5,1,2
        """,
        options=(_SHARD,),
    ),
    "rdp": RunCommand(
        """Account for one pass of noisy SGD in a fixed order, whose iterates stay hidden.

        \b
        How private is one pass over 60000 records?
          dpcalc rdp -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 --delta 1e-6
        What noise gives epsilon 1 to the first half of the records?
          dpcalc rdp -n 60000 -i 30000 -L 1 --smoothness 1 --eta 0.1 -e 1 -d 1e-6

        Numeric flags take a value, a list 1,2,4, a range 1:10:0.5 or a log range 1:1000:log7.
        """,
    ),
    "shifted": RunCommand(
        """Account for any sequence of noisy Lipschitz steps w -> map(w) + noise. The maps of two neighbouring
        runs differ by at most a shift.

        \b
        A record used in every step of 100 (full batch of 1000, L = 1):
          dpcalc shifted --steps 100 --shift 0.0002 --contraction 0.99 --eta 0.1 \\
            --sigma 0.02 --delta 1e-6
        Per-step values (add spend to check your own shifts), steps.csv:
            shift,contraction,step_size,noise_std
            0.1,0.9,0.1,2
            0,0.9,0.1,2
        How private are they?
          dpcalc shifted --schedule steps.csv --delta 1e-6
        """,
    ),
    "unlearn": RunCommand(
        """Make a model forget records by noisy steps on the kept records: w -> w - eta (gradient + noise).

        The guarantee compares the model with one trained without the records that takes the same further
        steps (Sekhari et al. 2021, where a request to forget nothing takes the steps too). If the last steps
        of training without the records are these steps, it also compares with that model itself (Guo et al.
        2020). It does not protect against someone who has the old model.

        \b
        A minimiser of 1000 strongly convex losses; how many steps?
          dpcalc unlearn --start minimiser -n 1000 -L 1 --smoothness 1 \\
            --strong-convexity 0.1 --eta 0.1 --sigma 0.5 -e 0.1 -d 1e-6 \\
            --solve clean_steps
        The last iterate of noisy SGD:
          dpcalc unlearn --start run -n 1000 --batch-size 10 --epochs 20 -L 1 \\
            --smoothness 1 --strong-convexity 0.1 --eta 0.1 --sigma 0.5 \\
            --clean-steps 50 -d 1e-6
        Parameters per step, steps.csv:
            contraction,step_size,noise_std
            0.9,0.1,0.5
            0.9,0.1,0.5
        From a known distance:
          dpcalc unlearn --start-distance 0.02 --schedule steps.csv -d 1e-6
        """,
    ),
    "hockey-stick": RunCommand(
        """Compute delta(epsilon) of one record in a pass in fixed order, or one stopped at random; Gaussian or
        Laplace noise.

        \b
        How well do the steps after record 50000 hide it, on a set of diameter 2?
          dpcalc hockey-stick -n 100000 -i 50000 -L 1 --smoothness 1 --eta 0.1 \\
            --sigma 2 -D 2 -e 0.1
        Clipped gradients, for any loss:
          dpcalc hockey-stick -n 100 -i 1 -L 1 --loss-class lipschitz --eta 1 \\
            --sigma 2 -D 1 -e 1
        How much Laplace noise does it need?
          dpcalc hockey-stick -n 1000 -i 900 -L 1 --smoothness 1 --eta 0.1 -D 1 \\
            --noise laplace -e 1 -d 1e-6
        """,
    ),
    "shuffle": RunCommand(
        """Account for one pass in a random order; only the last iterate is released.

        The order may be published. With --permutation secret you promise that the order, its seed and all
        logs of single steps stay secret for ever. That also hides the position of a record, and epsilon is
        often smaller by orders of magnitude.

        \b
        How private is one shuffled pass?
          dpcalc shuffle -n 100000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -D 2 \\
            --delta 1e-6
        The noise schedule of Sordello et al., tuned to n, and its limit:
          dpcalc shuffle -n 1e6:1e9:log4 -L 10 --loss-class convex-smooth \\
            --smoothness 1 --eta 0.1 -D 1 --c1 1e5 --c2 100 -e 1
        """,
    ),
    "multi-epoch": RunCommand(
        """Account for many passes over the records. The last iterate is released, or with --release epoch the
        iterate after every pass.

        --algorithm sets the order of the records: a guarantee for one order does not hold for another.

        \b
        Twenty passes over 60000 records in batches of 256:
          dpcalc multi-epoch -n 60000 --batch-size 256 --epochs 20 -L 1 \\
            --smoothness 1 --eta 0.1 --sigma 0.05 -d 1e-6
        How many passes are possible?
          dpcalc multi-epoch -n 60000 --batch-size 256 -L 1 --smoothness 1 \\
            --eta 0.1 --sigma 0.05 -e 2 -d 1e-6 --solve epochs
        Laplace noise on one parameter; --release epoch for every pass:
          dpcalc multi-epoch -n 1000 --epochs 20 -L 1 --smoothness 1 \\
            --eta 0.1 --laplace-scale 20 -d 1e-6
        Privacy against time:
          dpcalc multi-epoch --algorithm cyclic,shuffle-once -n 60000 \\
            --epochs 1:1000:log7 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6
        """,
    ),
    "dp-sgd": RunCommand(
        """Account for DP-SGD with clipped gradients and any model, as in Opacus, TensorFlow Privacy and
        JAX-Privacy.

        \b
        How private are 20 epochs of 100 batches (rate 1/100, 2000 steps)?
          dpcalc dp-sgd -n 50000 --sample-rate 0.01 --steps 2000 \\
            --noise-multiplier 1.1 --sampling poisson --adjacency zero-out -d 1e-5
        Which noise multiplier gives epsilon 2?
          dpcalc dp-sgd -n 50000 --sample-rate 0.01 --steps 2000 --sampling poisson \\
            --adjacency zero-out -e 2 -d 1e-5

        \b
        A linear model, of which only the final iterate is released:
          dpcalc dp-sgd -n 1000 --batch-size 50 --steps 20000 --noise-multiplier 3 \\
            --sampling poisson --adjacency zero-out --clip 1 --loss logistic \\
            --feature-bound 1 --eta 2 -R 0.5 --release last -d 1e-5

        --sampling is decisive: for the same noise, epsilon can differ several times between sampling schemes.
        Leave it out to see all of them.

        With dp-sgd all iterates may be public. dp-sgd-gradient and dp-sgd-output release the average of the
        iterates, for losses that need not be smooth (Hoelder gradients). Only dp-sgd-output requires that the
        iterates stay hidden.

        \b
        How much noise do the gradients of a hinge loss need?
          dpcalc dp-sgd --algorithm dp-sgd-gradient --loss hinge --feature-bound 1 \\
            -n 10000 -R 1 -e 1 -d 1e-8
        How much does the output need?
          dpcalc dp-sgd --algorithm dp-sgd-output --loss hinge --feature-bound 1 \\
            -n 10000 -R 1 --eta 0.001 -e 1 -d 1e-8
        """,
    ),
    "dp-ftrl": RunCommand(
        """Account for correlated noise on clipped gradients: DP-FTRL, matrix factorisation, banded matrices.

        \b
        Five epochs of 200 steps with the square root of the prefix sums:
          dpcalc dp-ftrl --mechanism sqrt --steps 1000 --epochs 5 \\
            --noise-multiplier 5 --adjacency zero-out -d 1e-6
        Which noise gives epsilon 2?
          dpcalc dp-ftrl --mechanism sqrt --steps 1000 --epochs 5 -e 2 \\
            --adjacency zero-out -d 1e-6
        Which matrix gives the least noise, and how much less than DP-SGD?
          dpcalc dp-ftrl --steps 1000 --epochs 5 -e 2 --adjacency zero-out \\
            -d 1e-6
        Ten bands, each record in a random step of its group in every epoch:
          dpcalc dp-ftrl --mechanism banded-sqrt --bands 10 --steps 1000 \\
            --epochs 5 --noise-multiplier 1.2 --scaling columns \\
            --sampling balls-in-bins --adjacency zero-out -d 1e-6

        Without --sampling, batches come in a fixed order, which may be public. A record is used at most
        --participations times, at least --separation steps apart, or once in every epoch.
        """,
    ),
    "statement": RunCommand(
        """Write a paragraph for a paper's appendix or a model card: the run, its guarantee, and every assumption.

        \b
          dpcalc statement --algorithm shuffled -n 60000 -L 1 --smoothness 1 \\
            --eta 0.1 --sigma 2 -d 1e-6
        """,
        query="compare",
        format="statement",
    ),
}
"""The commands by name."""
