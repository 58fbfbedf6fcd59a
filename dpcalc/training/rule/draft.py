"""The description of a run while defaults are filled in, before accounting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.model import loss as losses
from dpcalc.model.algorithm import ALGORITHMS, FULL_BATCH, Algorithm, Order, Release, Source
from dpcalc.model.draft import Description
from dpcalc.model.loss import Loss
from dpcalc.model.quantities import LossName, Model, Noise
from dpcalc.model.question import Question

DEFAULT_ALGORITHM = FULL_BATCH


class Draft(Mapping[str, Any]):
    """The parameters of a run by name, in the order in which they became known, each with its source.

    Attributes:
        question: the budget, or the question about the run.
    """

    def __init__(self, description: Description, question: Question | None = None) -> None:
        """Take the parameters that are given."""
        self._values, self._sources = dict(description), dict(description.sources)
        self._values.setdefault("algorithm", DEFAULT_ALGORITHM)
        self.question = question or Question()

    @classmethod
    def of(cls, **given: Any) -> Draft:
        """Return the draft of these parameters."""
        return cls(Description(given))

    def replacing(self, **changes: Any) -> Draft:
        """Return the draft with other values of some parameters."""
        return Draft(Description({**self, **changes}, self._sources), self.question)

    def asking(self, question: Question) -> Draft:
        """Return the draft with another budget."""
        return Draft(Description(self, self._sources), question)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def default(self, name: str, value: Any, source: Source = Source.DEFAULT) -> None:
        """Fill in a parameter that is not given."""
        if name not in self:
            self._values[name], self._sources[name] = value, source

    def choose(self, name: str, value: Any) -> None:
        """Set a parameter that was not given, replacing a default."""
        self._values[name], self._sources[name] = value, Source.DERIVED

    def fill_model(self) -> None:
        """Fill in how gradients of several classes are clipped: as whole vectors, or by a capped softmax.

        Gradients of a capped softmax are those of a convex function, which hidden iterates need. Full batches and
        samples are accounted by composition, which needs no convexity, and clipped vectors are faster.
        """
        if self["loss"] == LossName.SOFTMAX and self["classes"] > 2 and self.clip is not None:
            public = self.algorithm.release is Release.STEP
            composed = public or self.algorithm.order in (Order.FULL, Order.SAMPLE, Order.DRAW)
            self.default("model", Model.ANY if composed else Model.CAPPED)

    def given(self, name: str) -> bool:
        """Return whether the parameter was given, not filled in."""
        return self._sources.get(name, Source.DEFAULT) not in (Source.DEFAULT, Source.DERIVED)

    def take_shape(self, rows: int, columns: int, *, with_dimension: bool) -> None:
        """Take the number of records from the data, and the dimension if ``with_dimension``."""
        self._values["records"] = rows
        self._sources.setdefault("records", Source.DATA)
        self._values.pop("dimension", None)
        if with_dimension:
            self._values["dimension"] = columns
            self._sources.setdefault("dimension", Source.DATA)

    def with_sources(self, inputs: Mapping[str, tuple[Any, Source]]) -> dict[str, tuple[Any, Source]]:
        """Return the inputs of the accounted case with the sources of this draft, where it has one."""
        return {
            name: (value, self._sources.get(name, source) if source is Source.ARGUMENT else source)
            for name, (value, source) in inputs.items()
        }

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm."""
        return ALGORITHMS[str(self["algorithm"])]

    @property
    def laplace(self) -> bool:
        """Whether the noise is Laplace noise."""
        return self.get("noise") == Noise.LAPLACE or self.get("laplace_scale") is not None

    @property
    def norm(self) -> int:
        """The norm in which rows are bounded: 1 for Laplace noise, else 2."""
        return 1 if self.laplace else 2

    @property
    def clip(self) -> float | None:
        """The norm to which gradients are clipped; None without clipping, or before it is known."""
        return self.get("clip")

    @property
    def steps(self) -> int | None:
        """The number of steps, if given or chosen."""
        return self.get("steps")

    @property
    def epochs(self) -> int | None:
        """The number of passes, if given or chosen."""
        return self.get("epochs")

    @property
    def step_size(self) -> float | None:
        """The step size, if given or chosen."""
        return self.get("step_size")

    @property
    def radius(self) -> float | None:
        """The radius of the ball that iterates are projected onto; None for the whole space."""
        return self.get("radius")

    @property
    def loss(self) -> Loss:
        """The loss; its gradients may be clipped in addition."""
        return losses.of(str(self["loss"]), **{name: float(self[name]) for name in losses.PARAMETERS if name in self})

    @property
    def described_loss(self) -> dict[str, Any]:
        """The loss by its name and parameters."""
        return {name: self[name] for name in ("loss", *losses.PARAMETERS) if name in self}
