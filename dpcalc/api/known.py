"""What follows from guarantees that are known: ledgers, conversions, risks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from dpcalc.api.asked import Asked, answered, gate_of, known_of, product, risks_of, several
from dpcalc.model.algorithm import Source
from dpcalc.model.parameter import check
from dpcalc.render.notes import report
from dpcalc.report import Report


def ledger(
    entries: Mapping[str, Any] | Sequence[Any] = (),
    *,
    file: str | os.PathLike[str] | None = None,
    epsilon: Any = None,
    delta: Any = None,
    adjacency: Any = None,
    group_size: Any = None,
    partition: str | None = None,
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what several runs, releases and queries about the same records cost together.

    Args:
        entries: name -> entry, or a list of entries. An entry is a dict: a run (``algorithm`` and what describes it),
            ``mu``, ``noise_multiplier``, ``noise_std`` or ``laplace_scale`` with ``sensitivity``, or ``epsilon`` and
            ``delta``; with ``times``, ``part``, ``tuning`` and ``adjacency``, as docs/ledger.md says. A text such as
            ``"epsilon=0.1 times=100"`` is one as well.
        file: path of a ledger; the entries are added to those in it.
        epsilon: budget of all entries together; without delta, delta at it is sought. A list is a sweep.
        delta: of all entries together.
        adjacency: what neighbouring data sets differ in; by default what the file says, else what all entries say, else
            replace-one.
        group_size: so many records of one person differ.
        partition: ``"kept"``: a record that is replaced stays in its part.
        solve: noise_std, noise_multiplier or laplace_scale of the last entry is solved for; needs the budget.
        gates: assertions on the total such as "epsilon<=3".

    Returns:
        A report as in `rdp`; ``ledger`` of a case has the ``entries``, and what is ``remaining`` of the budget.

    Raises:
        SpecError: an entry or the budget is malformed, or adjacencies are mixed in a way that nothing covers.
        NotApplicable: nothing is known of an entry.
        Infeasible: no noise of the last entry meets the budget.

    >>> round(ledger([{"epsilon": 0.1, "times": 100}], delta=1e-6).value, 4)
    4.7746
    >>> round(ledger({"census": {"mu": 0.2}, "model": {"mu": 1}}, delta=1e-5).mu, 6)
    1.019804
    """
    from dpcalc.engine.ledgers.total import answer_ledger
    from dpcalc.recipes.ledgers.ledger import ledger_of, with_asked

    path = None if file is None else os.fspath(file)
    read = ledger_of(entries, path, partition)
    asked = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "group_size": group_size}
    sweeps = {name: several(name, value) for name, value in asked.items() if value is not None}
    wanted = [gate_of(text) for text in several("gates", gates)]
    cases = []
    for chosen in product(sweeps):
        written: dict[str, Any] = {
            name: value if isinstance(value, str) else repr(value) for name, value in chosen.items()
        }
        cases.append(
            answer_ledger(*with_asked(read[0], read[1], **written, solve=solve, source=Source.ARGUMENT), wanted)
        )
    return report("ledger", cases)


def convert(
    *,
    mu: Any = None,
    rho: Any = None,
    pure: Any = None,
    rdp: Any = None,
    epsilon: Any = None,
    delta: Any = None,
    order: Any = (),
    to: Any = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return a guarantee in the words of another notion of privacy, rounded up.

    One of ``mu``, ``rho``, ``pure`` and ``rdp`` is known; without them, ``epsilon`` and ``delta`` are. What does not
    follow is refused: (epsilon, delta) implies no mu. With ``to="mu"`` it is answered by the most mu that implies it,
    ``sufficient_mu``, rounded down.

    Args:
        mu: of Gaussian privacy; a list is a sweep, as everywhere.
        rho: of zero-concentrated privacy.
        pure: epsilon of pure privacy.
        rdp: bounds on the Renyi divergence, order -> epsilon; or a text such as ``"order=8 epsilon=1"``.
        epsilon: delta at it is sought; or known.
        delta: epsilon at it is sought; or known.
        order: order or orders at which the Renyi divergence is sought.
        to: what is sought: epsilon, delta, mu, rho, rdp or pure; by default what epsilon, delta or order ask for.
        gates: assertions such as "epsilon<=1".

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError: what is known or asked is malformed.
        NotApplicable: what is sought does not follow.
        Infeasible: nothing is enough for the budget.

    >>> round(convert(mu=1, delta=1e-5).value, 6)
    4.377178
    >>> best = convert(epsilon=1, delta=1e-5, to="mu").cases[0].best
    >>> best.quantity, round(best.value, 6)
    ('sufficient_mu', 0.268051)
    """
    from dpcalc.engine.convert import convert as converted
    from dpcalc.engine.convert import convert_among_others

    known = known_of(rdp, mu=mu, rho=rho, pure=pure, epsilon=epsilon, delta=delta, to=to)
    orders = tuple(float(check("order", one)) for one in several("order", order))
    asked = Asked(known, orders, None, [gate_of(text) for text in several("gates", gates)])
    return answered("convert", asked, converted, convert_among_others)


def risk(
    *,
    mu: Any = None,
    rho: Any = None,
    pure: Any = None,
    rdp: Any = None,
    epsilon: Any = None,
    delta: Any = None,
    fpr: Any = None,
    prior: Any = None,
    baseline: Any = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what an attacker can do against a guarantee, rounded up; of a run, ask any query with ``risk=True``.

    Args:
        mu: of Gaussian privacy; a list is a sweep, as everywhere.
        rho: of zero-concentrated privacy.
        pure: epsilon of pure privacy.
        rdp: bounds on the Renyi divergence, order -> epsilon; or a text such as ``"order=8 epsilon=1"``.
        epsilon: with delta, one point that is known; without, pure privacy.
        delta: with epsilon, one point that is known.
        fpr: rates of false positives, in (0, 1), at which the rates of true ones are told.
        prior: prior probabilities, in (0, 1), for how often a guess whether the record was there is right.
        baseline: probabilities, in (0, 1), to guess a secret of the record right without the release.
        gates: assertions such as "advantage<=0.1" or "tpr@1%<=0.05".

    Returns:
        A report; each case has ``risk``, a mapping of ``advantage``, ``tpr``, ``success``, ``reconstruction``, ``mu``.

    Raises:
        SpecError: what is known or asked is malformed.

    >>> told = risk(mu=1, fpr=0.01).cases[0].risk
    >>> round(told["advantage"]["value"], 6), round(told["tpr"][0]["value"], 6)
    (0.382925, 0.092362)
    """
    from dpcalc.engine.attack.stated import risk_of_guarantee

    known = known_of(rdp, mu=mu, rho=rho, pure=pure, epsilon=epsilon, delta=delta)
    rates = {"fpr": fpr, "prior": prior, "baseline": baseline}
    risks = risks_of(True, {name: several(name, value) for name, value in rates.items() if value is not None})
    asked = Asked(known, (), None, [gate_of(text) for text in several("gates", gates)], False, risks)
    return answered("risk", asked, risk_of_guarantee, risk_of_guarantee)
