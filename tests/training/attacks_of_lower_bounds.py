"""Which attack of an audit shows which lower value of `dpcalc compare`, or why none does."""

from typing import NamedTuple

from dpcalc.training.audit.attacks import Attack


class Shown(NamedTuple):
    """What shows a lower value.

    Attributes:
        attacks: on these losses, or on the nearest ones that the account allows; empty if there are none.
        how: what the losses have in common, or why there is no attack.
    """

    attacks: tuple[Attack, ...]
    how: str


_LINEAR, _CURVED = (Attack.LINEAR,), (Attack.LINEAR, Attack.RESET)
_SAME = "the same losses"
_REGULARISED = "the same losses: linear, with a regulariser of the strong convexity"
_STEEP = "no curvature or the largest one; gradients of at most L, so that a step forgets at most eta L"
_FORGETS = "the record's own loss is linear; gradients of at most L, so that a step forgets at most eta L"
_LAST = "the iterates after every pass tell more than the last one, which is all that the attack sees of passes"
_SLOPE = "the losses are steeper than L in a direction of their own, which reveals the number of steps"

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
    "linear.sampled_curved": Shown(_LINEAR, _REGULARISED),
    "noisy_gd.langevin_lower": Shown(_LINEAR, f"{_REGULARISED}; it bounds no epsilon"),
    "linear.curved": Shown(_CURVED, _STEEP),
    "linear.curved_passes": Shown(_CURVED, _STEEP),
    "linear.curved_released": Shown((), _LAST),
    "linear.shuffled_curved": Shown(_CURVED, _STEEP),
    "linear.once_curved": Shown(_CURVED, _STEEP),
    "linear.shuffled_curved_secret": Shown(_CURVED, _STEEP),
    "linear.once_curved_secret": Shown(_CURVED, _STEEP),
    "linear.once_curved_released": Shown(_CURVED, _STEEP),
    "linear.epochs_curved": Shown(_CURVED, _STEEP),
    "linear.epochs_curved_released": Shown(_CURVED, _STEEP),
    "linear.forgetting": Shown(_CURVED, _FORGETS),
    "linear.forgetting_passes": Shown(_CURVED, _FORGETS),
    "linear.forgetting_released": Shown((), _LAST),
    "linear.stop": Shown((), _SLOPE),
    "linear.skip": Shown((), _SLOPE),
    "linear.shuffled_stop": Shown((), _SLOPE),
    "linear.stop_forgetting": Shown((), _SLOPE),
    "linear.skip_forgetting": Shown((), _SLOPE),
    "linear.shuffled_stop_curved": Shown((), _SLOPE),
    "sampled.hidden_lower": Shown((), "DP-SGD on sampled batches is not carried out here"),
    "sampled.shuffle_lower": Shown((), "DP-SGD on sampled batches is not carried out here"),
    "sampled.total_lower": Shown((), "DP-SGD on sampled batches is not carried out here"),
}
"""By the name of the lower value; a test asks for all."""
