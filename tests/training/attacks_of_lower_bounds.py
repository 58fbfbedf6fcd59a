"""Which attack of an audit shows which lower value of `dpcalc compare`, or why none does."""

from __future__ import annotations

from typing import NamedTuple

from dpcalc.training.audit.attacks import Attack


class Shown(NamedTuple):
    """What shows a lower value.

    Attributes:
        attacks: on the losses of the lower value, or on losses as near to them as those accounted may be; none if none.
        how: in what the two differ, or why there is no attack.
    """

    attacks: tuple[Attack, ...]
    how: str


_LINEAR, _CURVED = (Attack.LINEAR,), (Attack.LINEAR, Attack.RESET)
_SAME = "the same losses"
_REGULARISED = "the same losses: linear, with a regulariser of the strong convexity"
_STEEP = "no curvature or the largest alone, and gradients of at most L, so that a step forgets no more than eta L"
_FORGETS = "the record's own loss is linear, and gradients are of at most L, so that a step forgets no more than eta L"
_SLOPE = "its losses are steeper than L in a direction of their own, which tells the number of steps"

SHOWN_BY: dict[str, Shown] = {
    "linear.pass": Shown(_LINEAR, _SAME),
    "linear.passes": Shown(_LINEAR, _SAME),
    "linear.descent": Shown(_LINEAR, _SAME),
    "linear.local": Shown(_LINEAR, _SAME),
    "linear.shuffled": Shown(_LINEAR, _SAME),
    "linear.once": Shown(_LINEAR, _SAME),
    "linear.epochs": Shown(_LINEAR, _SAME),
    "linear.sampled": Shown(_LINEAR, _SAME),
    "multi_epoch.quadratic": Shown(_LINEAR, _REGULARISED),
    "noisy_gd.quadratic": Shown(_LINEAR, _REGULARISED),
    "noisy_gd.langevin_lower": Shown(_LINEAR, f"{_REGULARISED}; it says nothing of epsilon"),
    "linear.curved": Shown(_CURVED, f"{_STEEP}; those behind the record may rest"),
    "linear.curved_passes": Shown(_CURVED, _STEEP),
    "linear.curved_released": Shown(_CURVED, f"{_STEEP}; the iterate after every pass is looked at"),
    "linear.shuffled_curved": Shown(_CURVED, f"{_STEEP}; the order is looked at"),
    "linear.once_curved": Shown(_CURVED, f"{_STEEP}; the order is looked at"),
    "linear.shuffled_curved_secret": Shown(_CURVED, _STEEP),
    "linear.once_curved_secret": Shown(_CURVED, _STEEP),
    "linear.once_curved_released": Shown(
        _CURVED, f"{_STEEP}; the order and the iterate after every pass are looked at"
    ),
    "linear.epochs_curved": Shown(_CURVED, f"{_STEEP}; the orders are looked at"),
    "linear.epochs_curved_released": Shown(
        _CURVED, f"{_STEEP}; the orders and the iterate after every pass are looked at"
    ),
    "linear.forgetting": Shown(_CURVED, _FORGETS),
    "linear.forgetting_passes": Shown(_CURVED, _FORGETS),
    "linear.forgetting_released": Shown(_CURVED, f"{_FORGETS}; the iterate after every pass is looked at"),
    "linear.stop": Shown((), _SLOPE),
    "linear.skip": Shown((), _SLOPE),
    "linear.shuffled_stop": Shown((), _SLOPE),
    "linear.stop_forgetting": Shown((), _SLOPE),
    "linear.skip_forgetting": Shown((), _SLOPE),
    "linear.shuffled_stop_curved": Shown((), _SLOPE),
    "sampled.shuffle_lower": Shown((), "DP-SGD on sampled batches is not carried out here"),
}
"""By the name of the lower value; a test asks for all."""


def table() -> str:
    """Return the rows as a table in Markdown."""
    lines = ["| lower value | attack | what is common, or why there is none |", "|---|---|---|"]
    for bound, shown in SHOWN_BY.items():
        lines.append(f"| `{bound}` | {', '.join(f'`{each}`' for each in shown.attacks) or 'none'} | {shown.how} |")
    return "\n".join(lines)
