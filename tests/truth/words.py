"""What docs/tightness.md says beside its numbers."""

import re
from pathlib import Path

_, *_PARTS = re.split(
    r"^<!-- ([a-z-]+) -->\n", Path(__file__).with_suffix(".md").read_text(encoding="utf-8"), flags=re.M
)
"""The parts of words.md: a name, what is said, and so on."""
NOTES = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))
"""What is known of the reasons why each algorithm's bounds are tight or loose."""
HEAD, GAPS, SIZES = NOTES.pop("head"), NOTES.pop("gaps"), NOTES.pop("sizes").rstrip("\n")
_DOMAIN = (
    "what is cut off at the ends of the interval hides the record as well, and a bound uses a part of that at most"
)
_PLACES = "as pnsgd on an interval, averaged over the record's places"
_PASSES = "as cyclic on an interval, averaged over the record's places"
_RELEASED = "as pnsgd on an interval, averaged over the record's places and composed"
_LAPLACE = "Laplace noise is bounded through Renyi divergences, or step by step as if laws were as far apart as can be"
_COMPOSED = "the bound composes a curve that no single pair of data sets has"
CAUSES = {
    "pnsgd": _DOMAIN,
    "skip": _DOMAIN,
    "stop": _LAPLACE,
    "shuffled": _PLACES,
    "rotation": _LAPLACE,
    "shuffled-stop": _PLACES,
    "online": "the product of coefficients takes the two laws for as far apart as the domain allows, in every step",
    "cyclic": f"{_DOMAIN}; and it remembers earlier passes while it forgets earlier noise, as no losses known do",
    "shuffle-once": _PASSES,
    "rotation-epochs": _PASSES,
    "shuffled-epochs": _PASSES,
    "noisy-sgd": "the bound is composition, which hidden iterates on an interval are far from",
    "noisy-gd": _LAPLACE,
    "cyclic-released": _LAPLACE,
    "shuffle-once-released": _RELEASED,
    "rotation-epochs-released": _RELEASED,
    "shuffled-epochs-released": _RELEASED,
    "noisy-sgd-released": _COMPOSED,
    "noisy-gd-released": _DOMAIN,
    "dp-sgd": "the bound takes all that is seen of fixed batches for the worst, where the sum of the steps is seen",
    "correlated": "the grid of likelihood ratios",
    "dp-sgd-output": "the bound allows for any curvature, and the lower value is of linear losses on single draws",
    "dp-sgd-gradient": _COMPOSED,
    "chain": _LAPLACE,
    "unlearning": "the lower value is of maps that scale; those of a training run have more freedom",
}
"""What is known of the cause of the widest gap of each algorithm."""
