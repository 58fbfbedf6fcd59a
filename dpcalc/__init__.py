"""dpcalc: how private is this training run, what noise does it need, and what does that cost?

The public names are loaded on first use, so that importing dpcalc imports nothing heavy.

Nothing outside the package may be imported here, not even from the standard library: ``python -m dpcalc`` runs this
file while modules are still looked for in the current folder, where `__main__` puts an end to that.
"""

from dpcalc.version import __version__

TYPE_CHECKING = False

_PUBLIC = {
    "compare": "dpcalc.api",
    "rdp": "dpcalc.api",
    "shifted": "dpcalc.api",
    "unlearn": "dpcalc.api",
    "hockey_stick": "dpcalc.api",
    "shuffle": "dpcalc.api",
    "online": "dpcalc.api",
    "multi_epoch": "dpcalc.api",
    "dp_sgd": "dpcalc.api",
    "utility": "dpcalc.api",
    "statement": "dpcalc.api",
    "explain": "dpcalc.api",
    "cite": "dpcalc.api",
    "list_bounds": "dpcalc.api",
    "schema": "dpcalc.api",
    "format_report": "dpcalc.api",
    "check": "dpcalc.api",
    "merge": "dpcalc.api",
    "sweep": "dpcalc.api",
    "train": "dpcalc.api",
    "audit": "dpcalc.api",
    "predict": "dpcalc.api",
    "evaluate": "dpcalc.api",
    "ledger": "dpcalc.api",
    "convert": "dpcalc.api",
    "risk": "dpcalc.api",
    "card": "dpcalc.api",
    "verify": "dpcalc.api",
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
    "Accountant": "dpcalc.recipes.accountant",
}

__all__ = [*_PUBLIC, "__version__"]  # noqa: PLE0604

if TYPE_CHECKING:
    from typing import Any

    from dpcalc.api import audit as audit
    from dpcalc.api import card as card
    from dpcalc.api import check as check
    from dpcalc.api import cite as cite
    from dpcalc.api import compare as compare
    from dpcalc.api import convert as convert
    from dpcalc.api import dp_sgd as dp_sgd
    from dpcalc.api import evaluate as evaluate
    from dpcalc.api import explain as explain
    from dpcalc.api import format_report as format_report
    from dpcalc.api import hockey_stick as hockey_stick
    from dpcalc.api import ledger as ledger
    from dpcalc.api import list_bounds as list_bounds
    from dpcalc.api import merge as merge
    from dpcalc.api import multi_epoch as multi_epoch
    from dpcalc.api import online as online
    from dpcalc.api import predict as predict
    from dpcalc.api import rdp as rdp
    from dpcalc.api import risk as risk
    from dpcalc.api import schema as schema
    from dpcalc.api import shifted as shifted
    from dpcalc.api import shuffle as shuffle
    from dpcalc.api import statement as statement
    from dpcalc.api import sweep as sweep
    from dpcalc.api import train as train
    from dpcalc.api import unlearn as unlearn
    from dpcalc.api import utility as utility
    from dpcalc.api import verify as verify
    from dpcalc.errors import DpcalcError as DpcalcError
    from dpcalc.errors import GateFailed as GateFailed
    from dpcalc.errors import Infeasible as Infeasible
    from dpcalc.errors import NotApplicable as NotApplicable
    from dpcalc.errors import NotConverged as NotConverged
    from dpcalc.errors import PrivacyWarning as PrivacyWarning
    from dpcalc.errors import SpecError as SpecError
    from dpcalc.errors import WorkerLost as WorkerLost
    from dpcalc.recipes.accountant import Accountant as Accountant
    from dpcalc.report import Case as Case
    from dpcalc.report import Report as Report
    from dpcalc.report import Result as Result


def __getattr__(name: str) -> "Any":
    if name not in _PUBLIC:
        raise AttributeError(f"module 'dpcalc' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
