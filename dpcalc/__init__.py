"""dpcalc: how private is this training run, what noise does it need, and what does that cost?

The public names are loaded on first use, so that importing dpcalc imports nothing heavy; `__init__.pyi`
has their types.

Nothing outside the package may be imported here, not even from the standard library: ``python -m dpcalc`` runs this
file while modules are still looked for in the current folder, where `__main__` puts an end to that.
"""

from dpcalc.version import __version__

_PUBLIC = {
    "epsilon": "dpcalc.api.queries",
    "noise_multiplier": "dpcalc.api.queries",
    "compare": "dpcalc.api.queries",
    "rdp": "dpcalc.api.queries",
    "shifted": "dpcalc.api.queries",
    "unlearn": "dpcalc.api.queries",
    "hockey_stick": "dpcalc.api.queries",
    "shuffle": "dpcalc.api.queries",
    "online": "dpcalc.api.queries",
    "multi_epoch": "dpcalc.api.queries",
    "dp_sgd": "dpcalc.api.queries",
    "dp_ftrl": "dpcalc.api.queries",
    "utility": "dpcalc.api.queries",
    "statement": "dpcalc.api.documents",
    "explain": "dpcalc.api.documents",
    "cite": "dpcalc.api.documents",
    "list_bounds": "dpcalc.api.documents",
    "schema": "dpcalc.api.documents",
    "format_report": "dpcalc.api.documents",
    "check": "dpcalc.api.documents",
    "merge": "dpcalc.api.documents",
    "sweep": "dpcalc.api.queries",
    "train": "dpcalc.api.training",
    "audit": "dpcalc.api.training",
    "predict": "dpcalc.api.training",
    "evaluate": "dpcalc.api.training",
    "coefficients": "dpcalc.api.training",
    "to_sklearn": "dpcalc.api.training",
    "ledger": "dpcalc.api.asked",
    "convert": "dpcalc.api.asked",
    "risk": "dpcalc.api.asked",
    "card": "dpcalc.api.documents",
    "verify": "dpcalc.api.documents",
    "Report": "dpcalc.report",
    "Case": "dpcalc.report",
    "Result": "dpcalc.report",
    "DpcalcError": "dpcalc.errors",
    "SpecError": "dpcalc.errors",
    "NotApplicable": "dpcalc.errors",
    "Infeasible": "dpcalc.errors",
    "NotConverged": "dpcalc.errors",
    "GateFailed": "dpcalc.errors",
    "WorkerLost": "dpcalc.errors",
    "PrivacyWarning": "dpcalc.errors",
    "Accountant": "dpcalc.recipes.ledgers.accountant",
    "Ledger": "dpcalc.recipes.ledgers.accountant",
}

__all__ = [*_PUBLIC, "__version__"]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'dpcalc' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
