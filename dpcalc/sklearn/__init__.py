"""Private linear models as scikit-learn estimators: needs ``pip install 'dpcalc[sklearn]'``."""

from __future__ import annotations

try:
    import sklearn  # noqa: F401
except ImportError:
    raise ImportError("dpcalc.sklearn needs scikit-learn: pip install 'dpcalc[sklearn]'") from None

from dpcalc.errors import PrivacyWarning
from dpcalc.recipes.ledgers.accountant import Accountant
from dpcalc.sklearn.estimators import DPClassifier, DPRegressor, OutsideRangesWarning

__all__ = ["Accountant", "DPClassifier", "DPRegressor", "OutsideRangesWarning", "PrivacyWarning"]
