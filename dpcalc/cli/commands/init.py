"""``dpcalc init``."""

from __future__ import annotations

import click

from dpcalc.cli.query import Command
from dpcalc.cli.types import FILE
from dpcalc.errors import DpcalcError, MissingParameter, SpecError
from dpcalc.files.output import check_outputs, say, write
from dpcalc.inert import printable
from dpcalc.model.quantities import Given


@click.command("init", cls=Command)
@click.argument("config", metavar="CONFIG")
@click.option("--command", "command_", metavar="NAME", help="Command of the recipe (default: dp-sgd or compare).")
@click.option("--algorithm", metavar="NAME", help="Algorithm, if the configuration does not name it.")
@click.option("--policy", is_flag=True, help="CONFIG is a recipe: write a policy with the budgets that it asserts.")
@click.option("--output", "-o", type=FILE, help="Write to FILE, atomically, instead of stdout.")
def command(config: str, command_: str | None, algorithm: str | None, policy: bool, output: str | None) -> None:
    """Write a recipe from a training configuration: YAML, JSON or TOML.

    Keys that dpcalc recognises, in its own words or those of other programs, become references to the configuration.
    So the gate checks the run that is trained. Each reference is shown; an ambiguous key is left out and reported.

    \b
    A configuration, train.yaml:
        {dataset_size: 50000, sample_rate: 0.01, steps: 2000,
         noise_multiplier: 1.1, sampling: poisson, delta: 1e-5}
    Its recipe, to which you add the gate:
      dpcalc init train.yaml -o budget.yaml
    A recipe with a gate, gated.yaml:
        dpcalc: recipe/1
        cases:
          release: {command: rdp, records: 60000, lipschitz: 1, smoothness: 1,
                    step_size: 0.1, noise_std: 20, delta: 1e-6,
                    assert: epsilon <= 1}
    A policy, which limits what recipes may assert and ask:
      dpcalc init --policy gated.yaml -o policy.yaml
      dpcalc check gated.yaml --policy policy.yaml
    """
    from dpcalc.recipes.reading.schema import draft

    check_outputs([(output, "-o")], (config,))
    if policy:
        from dpcalc.recipes.judging.policy import drafted
        from dpcalc.recipes.reading.read import read
        from dpcalc.recipes.reading.recipe import files_of

        recipe = read(config)
        check_outputs([(output, "-o")], files_of(recipe))
        write(drafted(recipe), output)
        return
    start = draft(config, output, command_, algorithm)
    if start.command == "dp-sgd":
        _refuse_unprotected(config)
    write(start.text, output)
    try:
        _ask(config, start.command, dict(start.given), dict(start.budget))
    except DpcalcError as error:
        from dpcalc.account.stated import Missing

        lacks = isinstance(error, Missing | MissingParameter) and error.parameters
        hint = f"state {', '.join(error.parameters)} in {config}" if lacks else error.hint
        say(printable(f"still to add: {error.message}") + (f"\n  hint: {printable(hint)}" if hint else ""))


def _refuse_unprotected(config: str) -> None:
    """Refuse a configuration that turns noise or clipping off: the recipe would gate what it does not do."""
    from dpcalc.account.described import refuse_unprotected
    from dpcalc.account.forms import read_run

    try:
        facts = read_run(config).facts
    except DpcalcError:  # it says less than a run: the recipe is a start
        return
    refuse_unprotected(facts)


def _ask(config: str, name: str, given: Given, budget: Given) -> None:
    """Ask the question of the recipe, and print the answer in a line.

    Raises:
        DpcalcError: it has no answer, or `dpcalc account` reads more in the configuration than the recipe does.
    """
    from dpcalc.engine.ask import ask
    from dpcalc.model.question import Question

    delta = budget.get("delta")
    question = Question(budget.get("epsilon"), getattr(delta, "value", None), getattr(delta, "log", None), (), None)
    case = ask(name, given, question)
    best = case.best
    if best is not None:
        if name == "dp-sgd" and best.epsilon is not None:
            _compare(config, best.epsilon, str(best.adjacency))
        from dpcalc.render.numbers import SIX
        from dpcalc.render.words.sentences import headline

        say(printable(f"as it stands: {'; '.join(headline(case, SIX))} ({best.bound})"))


def _compare(config: str, epsilon: float, adjacency: str) -> None:
    """Refuse an epsilon below that of the account of the configuration.

    Raises:
        DpcalcError: it is, or a run as configured has no account.
    """
    from dpcalc.account.way import accounted

    best = accounted([config], {"adjacency": adjacency} if adjacency == "replace-one" else {})[0].best
    if best is not None and not (best.epsilon or 0.0) <= epsilon * (1.0 + 1e-6):
        raise SpecError(
            f"the recipe says epsilon {epsilon:.6g}, but by `dpcalc account` the run spends {best.epsilon:.6g}",
            "write its sample_rate and steps in the recipe",
        )
