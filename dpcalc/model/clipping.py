"""The functions whose gradients clipped gradients are.

A model is linear if the loss of a record depends on the weights through one number, z = <w, x>. With phi the loss as
a function of z, a clipped gradient is clip(phi'(z), -C/|x|, C/|x|) x, which is the gradient of another function of z.
That function is convex if phi is, its gradient is at most C long, and clipping, which is 1-Lipschitz, makes no slope
change faster. So it is in the same loss class, with the same smoothness, but it is not strongly convex.

With several numbers z, from several classes or layers, a clipped gradient is in general not the gradient of a convex
function. For a softmax of two classes it is, since the gradient's direction is fixed. For more classes the softmax is
capped (`dpcalc.training.run.capped`): slopes that are too long are those of its infimal convolution with C/|x| times
the norm, which is convex and as smooth as the softmax. Without a cap (``model`` is ``any``) all that is known of a
clipped gradient is that it is at most C long. That is
enough for composition, which lets every iterate be public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.loss_class import convex_if_clipped
from dpcalc.model.quantities import LossClass, LossName, Model

if TYPE_CHECKING:
    from dpcalc.model.draft import Description


def fill_in(draft: Description) -> None:
    """Fill in the gradient bound and the loss class of clipped gradients; do nothing without clipping.

    Raises:
        SpecError: the given parameters contradict clipping.
    """
    check_model(draft)
    if not draft.has("clip"):
        if draft.has("model"):
            raise SpecError("the model decides what clipped gradients are, and none are clipped", "give --clip too")
        return
    if draft.sources.get("lipschitz", Source.DERIVED) not in (Source.LOSS, Source.DERIVED):
        raise SpecError("lipschitz is given and also follows from clip", "keep one of the two")
    if draft.sources.get("lipschitz") is not Source.LOSS:
        draft.put("lipschitz", draft["clip"], Source.DERIVED)
    _fill_class(draft)


def check_model(draft: Description) -> None:
    """Refuse a ``model`` that the loss cannot have.

    Raises:
        SpecError: a capped model of another loss than the softmax, or a softmax as a model of one score.
    """
    softmax = draft.get("loss") == LossName.SOFTMAX
    if draft.get("model") == Model.CAPPED and not softmax:
        raise SpecError("what is capped is a softmax", "give --loss softmax, or another --model")
    if draft.get("model") == Model.LINEAR and softmax and draft.get("classes") != 2:
        raise SpecError(
            "a softmax is a function of several scores, and a linear model has one",
            "give --model capped, if the softmax is capped (see `dpcalc help method`); or leave out --model",
        )


def _fill_class(draft: Description) -> None:
    """Fill in the loss class of the clipped gradients.

    Raises:
        SpecError: another loss class is given, or strong convexity, which clipping destroys.
    """
    named = draft.has("loss")
    if draft.get("loss") == LossName.SOFTMAX and draft.get("model") == Model.ANY:
        _forget_curvature(draft)
        return
    if named and draft.get("model") == Model.ANY:
        raise SpecError("the losses that have a name are those of linear models", "leave out --model or --loss")
    if named and not convex_if_clipped(draft["loss"], draft.get("model"), draft.get("classes")):
        raise SpecError(
            "clipped gradients of a softmax of more than two classes are not those of a convex loss",
            "give --model capped, if the softmax is capped (see `dpcalc help method`); or --model any, for what holds "
            "of any loss",
        )
    if not named and draft.get("strong_convexity"):
        raise SpecError(
            "clipped gradients are not those of a strongly convex loss",
            "leave out --strong-convexity; with --loss give --regularisation, whose gradient is added after clipping",
        )
    given = draft["loss_class"] if draft.sources.get("loss_class", Source.DERIVED) is not Source.DERIVED else None
    if named or draft.get("model") == Model.LINEAR:
        if given is None and not draft.has("smoothness"):
            draft.put("loss_class", LossClass.CONVEX, Source.DERIVED)
        return
    if given not in (None, LossClass.LIPSCHITZ):
        raise SpecError(
            f"clipped gradients are those of a {given} loss only where the model is linear",
            "give --loss, or --model linear, if it is; or leave out --loss-class",
        )
    draft.put("loss_class", LossClass.LIPSCHITZ, Source.DERIVED)


def _forget_curvature(draft: Description) -> None:
    """Drop all constants of a named loss except the bound on its gradients.

    Raises:
        SpecError: a stronger loss class is given.
    """
    given = draft["loss_class"] if draft.sources.get("loss_class") not in _OF_LOSS else None
    if given not in (None, LossClass.LIPSCHITZ):
        raise SpecError(
            f"clipped gradients of a softmax are not those of a {given} loss, unless it is capped",
            "give --model capped, if it is; or leave out --loss-class",
        )
    for name in ("smoothness", "holder_exponent", "holder_constant"):
        if draft.sources.get(name) is Source.LOSS:
            draft.take(name)
    if draft.has("strong_convexity"):
        draft.put("strong_convexity", 0.0, Source.DERIVED)
    draft.put("loss_class", LossClass.LIPSCHITZ, Source.DERIVED)


_OF_LOSS = (None, Source.LOSS, Source.DERIVED)
