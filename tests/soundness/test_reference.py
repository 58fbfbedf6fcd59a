"""The definitions against the reference values, which were computed by other means and without dpcalc.

A definition that shares an error with the code proves nothing; these values come from neither. Each enclosure must hold
the decimal given, to the digits that are given, and be narrow enough to tell.
"""

import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from flint import arb, fmpq

from dpcalc.certify.numerics import balls
from dpcalc.certify.numerics.balls import infinite, least, precision, settle
from dpcalc.certify.one_pass import iteration, streams
from dpcalc.certify.released import compositions as released
from dpcalc.certify.risk import costs
from dpcalc.certify.runs import divergence
from dpcalc.certify.runs.run import RunInputs, schedule_reach
from dpcalc.certify.sampled import noisy_output as sampled
from dpcalc.certify.table import definitions

CASES = [
    case
    for name in ("iteration", "contraction", "holder")
    for case in json.loads((Path(__file__).parents[1] / "reference" / f"{name}.json").read_text())
]
DIGITS = 27  # of a reference value are right


def rational(text: Any) -> fmpq:
    """A decimal, or a quotient of whole numbers, exactly."""
    exact = Fraction(str(text))
    return fmpq(exact.numerator, exact.denominator)


class Raw:
    """The inputs of a case."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    def __call__(self, name: str) -> fmpq:
        return rational(self.raw[name])

    def whole(self, name: str) -> int:
        return int(Fraction(str(self.raw[name])))

    def log(self, name: str) -> arb:
        return arb(self(name)).log()


def run(values: Mapping[str, Any], **derived: Callable[[RunInputs], Any]) -> RunInputs:
    """The inputs of a definition; rationals are exact, so that both readings are one."""
    return RunInputs(values, True, derived)


def of(id: str, values: Mapping[str, Any], **derived: Callable[[RunInputs], Any]) -> arb:
    """The definition of a bound."""
    return definitions()[id].formula(run(values, **derived))


# --- passes


def _single(i: Raw, at: str = "t") -> dict[str, Any]:
    return {
        "records": i.whole("n"), "index": i.whole(at) if at in i.raw else 1, "batch_size": 1,
        "sensitivity": 2 * i("L"), "noise_std": i("sigma"),
    }  # fmt: skip


def _at(i: Raw, at: str = "t") -> dict[str, Any]:
    return {**_single(i, at), "order": arb(i("alpha"))} if "alpha" in i.raw else {**_single(i, at), "epsilon": i("eps")}


def _batches(i: Raw) -> arb:
    size = i.whole("b")
    values = {**_single(i), "batch_size": size, "index": size * i.whole("batch_index"), "order": arb(i("alpha"))}
    return of("iteration.pnsgd_rdp", values)


def _passes(i: Raw, at: str = "l") -> dict[str, Any]:
    return {
        "records": i.whole("l"), "index": i.whole(at), "batch_size": 1, "epochs": i.whole("E"), "sensitivity": i("r"),
        "noise_std": fmpq(1), **_slowed(i),
    }  # fmt: skip


def _slowed(i: Raw, step_size: fmpq = fmpq(1)) -> dict[str, Any]:  # noqa: B008
    m = (1 - i("c")) / step_size if "c" in i.raw else fmpq(0)
    return {"step_size": step_size, "smoothness": m or fmpq(1), "strong_convexity": m}


def _descent(i: Raw) -> dict[str, Any]:
    return {
        "records": 1, "steps": i.whole("t"), "sensitivity": i("r"), "noise_std": fmpq(1), **_slowed(i)
    }  # fmt: skip


def _domain(i: Raw, by: str) -> dict[str, Any]:
    return {"sensitivity": i(by), "noise_std": i("sigma"), "diameter": i("D"), **_slowed(i, i("eta"))}


def _linear_factor(i: Raw) -> arb:
    """C_n from the bound at order 2 and Delta = sigma, where it is C_n/n."""
    values = {"records": i.whole("n"), "index": 1, "batch_size": 1, "sensitivity": fmpq(1), "noise_std": fmpq(1)}
    return of("iteration.stop_linear", {**values, "order": arb(2)}) * i.whole("n")


def _allocated(i: Raw) -> arb:
    s, v, c = ([arb(rational(x)) for x in i.raw[name]] for name in "svc")
    scale = [x.sqrt() for x in v]
    start = arb(i("z0")) if "z0" in i.raw else arb(0)
    sums = [iteration.hull_cost(s, c, scale, start)]
    if "D" in i.raw:
        sums += [iteration.hull_cost(s[t:], c[t:], scale[t:], arb(i("D"))) for t in range(1, len(s))]
    return least(*sums)


def _langevin(i: Raw) -> dict[str, Any]:
    m = i("lam") if "lam" in i.raw else fmpq(1)
    return {
        "records": i.whole("n"), "steps": i.whole("K"), "sensitivity": i("Sg"), "langevin_std": i("sigma"),
        "step_size": i("eta"), "smoothness": i("beta") if "beta" in i.raw else m, "strong_convexity": m,
        "order": arb(i("alpha")),
    }  # fmt: skip


def _diffusion(id: str) -> Callable[[Raw], arb]:
    return lambda i: of(id, _langevin(i), noise_std=lambda v: v.langevin_std * (2 / v.step_size).sqrt())


def _of_mu(id: str) -> Callable[[Raw], arb]:
    return lambda i: arb(i("alpha")) * _diffusion(id)(i) ** 2 / 2


def _once(i: Raw) -> arb:
    values = {**_passes(i), "epsilon": arb(i("eps"))}
    return of("shuffled_epochs.once", values).exp()


# --- conversions


def _edge(name: str) -> Callable[[Raw], arb]:
    def value(i: Raw) -> arb:
        order, rdp = (i("alpha"), i("rdp")) if "alpha" in i.raw else (i("order"), i("rho"))
        return balls.EDGES[name](arb(order), arb(rdp), i.log("delta"))

    return value


def _classic(i: Raw) -> arb:
    return balls.log_delta(arb(i("eps")), arb(i("eps")) / balls.classic_factor(i.log("delta"))).exp()


# --- contraction


def _noise(i: Raw) -> dict[str, Any]:
    return {"noise": str(i.raw["noise"]), "epsilon": arb(i("eps")), "loss_class": "lipschitz"}


def _full(i: Raw, at: str = "i") -> dict[str, Any]:
    return {
        **_noise(i), "scale": i("scale"), "sensitivity": 2 * i("L"), "displacement": i("M"), "diameter": i("D"),
        "step_size": i("eta"), "records": i.whole("n"), "batch_size": i.whole("batch") if "batch" in i.raw else 1,
        "last_batch": "drop" if str(i.raw.get("drop_last", "")).lower() == "true" else "own",
        "index": i.whole(at) if at in i.raw else None,
    }  # fmt: skip


def _own(i: Raw) -> arb:
    return balls.log_step(str(i.raw["noise"]), arb(i("eps")), arb(2 * i("L") / i("scale")))


def _following(i: Raw) -> arb:
    return balls.log_step(str(i.raw["noise"]), arb(i("eps")), arb(i("M") * i("D") / (i("eta") * i("scale"))))


def _ratios(i: Raw, records: int, index: int) -> dict[str, Any]:
    """A run of given r_A and r_B, in a domain of one noise scale times r_B; 1-Lipschitz where the case names c."""
    c = i("c") if "c" in i.raw else None
    smooth: dict[str, Any] = {"loss_class": "lipschitz"}
    if c is not None:
        m = 1 - c
        smooth = {"loss_class": "convex-smooth", "smoothness": m or fmpq(1), "strong_convexity": m}
    return {
        **_noise(i), "records": records, "index": index, "batch_size": 1, "last_batch": "own", "scale": fmpq(1),
        "sensitivity": i("rA"), "displacement": fmpq(1), "diameter": i("rB"), "step_size": fmpq(1), **smooth,
    }  # fmt: skip


def _after(id: str) -> Callable[[Raw], arb]:
    return lambda i: of(id, _ratios(i, i.whole("k") + 1, 1))


def _on_average(id: str) -> Callable[[Raw], arb]:
    return lambda i: of(id, _ratios(i, i.whole("n"), 1))


def _shift(i: Raw) -> arb:
    m = 1 - i("c")
    return of(
        "contraction.shift",
        {
            "noise": "gaussian", "records": i.whole("k") + 1, "index": 1, "batch_size": 1, "scale": i("sigma"),
            "sensitivity": 2 * i("L"), "step_size": fmpq(1), "smoothness": m or fmpq(1), "strong_convexity": m,
            "loss_class": "convex-smooth",
        },
    )  # fmt: skip


class Columns(NamedTuple):
    """A schedule as the definitions read it."""

    step_size: list[fmpq]
    noise: list[fmpq]
    displacement: list[fmpq] | None = None
    contraction: list[fmpq] | None = None
    probability: list[fmpq] | None = None
    shift: None = None

    def __len__(self) -> int:
        return len(self.step_size)

    @property
    def lipschitz(self) -> bool:
        return self.contraction is not None


class Exact(RunInputs):
    """RunInputs whose schedules hold rationals."""

    def column(self, values: Any) -> list[arb]:
        return [arb(x) for x in values]


def _heights(i: Raw, name: str) -> list[fmpq]:
    formula = str(i.raw[name]).split("(j=")[0].strip()
    forms: dict[str, Callable[[int], fmpq]] = {"2+j/10": lambda j: 2 + fmpq(j, 10), "1/(j+1)": lambda j: fmpq(1, j + 1)}
    return [forms[formula](j) for j in range(1, i.whole("n") + 1)]


def _uneven(id: str) -> Callable[[Raw], arb]:
    def value(i: Raw) -> arb:
        n = i.whole("n")
        law = None
        if "law" in i.raw:
            first, last = (int(x) for x in re.findall(r"\d+", str(i.raw["law"])))
            law = [fmpq(1, last - first + 1) if first <= j <= last else fmpq(0) for j in range(1, n + 1)]
        schedule = Columns(_heights(i, "eta_j"), _heights(i, "sigma_j"), [i("M")] * n, None, law)
        values = {
            **_noise(i), "schedule": schedule, "scale": fmpq(1), "sensitivity": 2 * i("L"), "diameter": i("D"),
            "index": i.whole("i") if "i" in i.raw else None,
        }  # fmt: skip
        return definitions()[id].formula(Exact(values, True))

    return value


def _one_use(i: Raw) -> arb:
    columns = ([rational(x) for x in i.raw[name]] for name in ("eta", "sigma", "c"))
    step_size, noise, c = columns
    values = {
        "schedule": Columns(step_size, noise, None, c), "index": i.whole("t"), "sensitivity": 2 * i("L"),
        "noise_std": fmpq(1),
    }  # fmt: skip
    return definitions()["scheduled.pnsgd"].formula(Exact(values, True)) ** 2


def _tuned(noise: str) -> Callable[[RunInputs], arb]:
    def scale(v: RunInputs) -> arb:
        reach = schedule_reach(noise, arb(v.records), v.c1, v.c2)
        return v.displacement * v.diameter / v.step_size / reach

    return scale


def _schedule(i: Raw, noise: str) -> dict[str, Any]:
    return {
        "noise": noise, "epsilon": arb(i("eps")), "records": i.whole("n"), "batch_size": 1, "last_batch": "own",
        "c1": i("C1"), "c2": i("C2"), "sensitivity": 2 * i("L"), "displacement": i("M"), "diameter": i("D"),
        "step_size": i("eta"), "loss_class": "lipschitz",
    }  # fmt: skip


def _tuned_delta(noise: str) -> Callable[[Raw], arb]:
    return lambda i: of("shuffle.product", _schedule(i, noise), scale=_tuned(noise))


def _stream(i: Raw, index: str, records: str) -> dict[str, Any]:
    return {
        **_schedule(Raw({**i.raw, "n": 1}), str(i.raw["noise"])), "decay_exponent": arb(i("alpha")),
        "schedule_factor": fmpq(1), "index": i.whole(index), "records": i.whole(records),
    }  # fmt: skip


def _stream_scale(i: Raw) -> arb:
    return streams.Stream(run(_stream(i, "j", "j"))).scale(i.whole("j"))


def _repeated(i: Raw) -> arb:
    return of(
        "released.optimal",
        {"epochs": i.whole("E"), "epoch_epsilon": i("eps0"), "epoch_delta": i("delta0"), "epsilon": i("eps")},
    )


# --- costs and sampled records


def _budget(i: Raw) -> dict[str, Any]:
    return {
        "records": i.whole("n"), "dimension": i.whole("d"), "lipschitz": i("L"), "radius": i("R"),
        "epsilon": arb(i("eps")), "log_delta": i.log("delta"),
    }  # fmt: skip


def _classic_noise(v: RunInputs) -> arb:
    return 2 * v.lipschitz * balls.classic_factor(v.log_delta) / v.epsilon


def _priced(bound: str) -> Callable[[Raw], arb]:
    return lambda i: costs.PRICES[bound].risk(run(_budget(i), sigma=_classic_noise))


def _averaged(i: Raw) -> arb:
    values = {"radius": i("R"), "count": i.whole("T"), "lipschitz": i("LG"), "dimension": 1, "sigma": fmpq(0)}
    best = {"eta": lambda v: 2 * v.radius / (v.lipschitz * arb(v.count).sqrt())}
    return costs.PRICES["utility.average"].risk(run(values, **best))


def _explicit(i: Raw) -> arb:
    values = {
        "strong_convexity": i("lam"), "smoothness": i("beta"), "lipschitz": i("L"), "records": i.whole("n"),
        "dimension": i.whole("d"), "epsilon": arb(i("eps")), "log_delta": i.log("delta"),
    }  # fmt: skip
    return costs.PRICES["langevin.explicit"].risk(run(values))


def _smoothed(i: Raw) -> arb:
    """L lambda E|Z| from the smoothness sqrt(2/pi) L/lambda of the kernel."""
    values = {"lipschitz": i("L"), "dimension": i.whole("d"), "width": i("lam")}
    return costs.PRICES["smoothing.kernel"].risk(
        run(values, smoothness=lambda v: (2 / arb.pi()).sqrt() * v.lipschitz / v.width)
    )


def _holder(i: Raw) -> dict[str, Any]:
    names = {"alpha": "holder_exponent", "L": "holder_constant", "M": "gradient_at_zero", "M0": "loss_at_zero",
             "R": "radius", "eta": "step_size", "G": "lipschitz", "sigma": "noise_std", "eps": "epsilon",
             "rho": "strong_convexity"}  # fmt: skip
    parameters: dict[str, Any] = {names[k]: i(k) for k in i.raw if k in names}
    parameters.update(
        {long: i.whole(k) for k, long in (("n", "records"), ("T", "steps"), ("d", "dimension")) if k in i.raw}
    )
    return parameters


def _drifting(i: Raw) -> arb:
    return sampled.drift(run(_holder(i)))


def _apart(i: Raw) -> arb:
    return sampled.stability(run(_holder(i)))(i.whole("k"))


def _curved_apart(i: Raw) -> arb:
    values = {**_holder(i), "holder_exponent": fmpq(1), "holder_constant": fmpq(1), "steps": i.whole("k")}
    return sampled.stability(run(values))(i.whole("k"))


def _gradient_risk(i: Raw) -> arb:
    values = {**_holder(i), "count": i.whole("T"), "eta": i("eta"), "sigma": i("sigma")}
    return costs.PRICES["holder_cost.gradient_expected"].risk(run(values))


def _sampled_rdp(i: Raw) -> arb:
    """p and (b sigma/(2G))^2 with 2 G = 1 and records to match."""
    p = i("p")
    values = {
        "records": int(p.q), "batch_size": int(p.p), "lipschitz": fmpq(1, 2), "steps": 1,
        "order": i("order"), "square": i("s2"),
    }  # fmt: skip
    return of("dp_sgd.gradient_renyi", values, noise_std=lambda v: arb(v.square).sqrt() / v.batch_size)


QUANTITIES: dict[str, Callable[[Raw], arb]] = {
    "thm23_mu": lambda i: of("iteration.pnsgd", _single(i)),
    "thm23_rdp": lambda i: of("iteration.pnsgd_rdp", _at(i)),
    "minibatch_rdp": _batches,
    "skip_rdp": lambda i: of("iteration.skip_rdp", _at(i)),
    "skip_delta": lambda i: of("iteration.skip", _at(i)).exp(),
    "stop_rdp": lambda i: of("iteration.stop_rdp", _at(i)),
    "stop_delta": lambda i: of("iteration.stop", _at(i)).exp(),
    "thm26_harmonic_rdp": lambda i: of("iteration.stop_harmonic", _at(i)),
    "thm26_tight_factor": _linear_factor,
    "thm35_rdp": lambda i: of("multi_epoch.cyclic_rdp", {**_at(i, "i"), "epochs": i.whole("n")}),
    "multi_epoch_rdp": lambda i: of("multi_epoch.cyclic_rdp", {**_at(i, "i"), "epochs": i.whole("E")}),
    "alloc_cost": _allocated,
    "alloc_cost_domain": _allocated,
    "onepass_mu2_schedule": _one_use,
    "mu_noisygd_sc": lambda i: of("noisy_gd.contraction", _descent(i)),
    "bok_table7_ngd_mu": lambda i: of("noisy_gd.contraction", _descent(i)),
    "bok_table7_gdp_comp": lambda i: of("noisy_gd.composition", _descent(i)),
    "mu_noisygd_domain": lambda i: of(
        "noisy_gd.domain", {"records": 1, "steps": i.whole("T"), **_domain(i, "Delta_over_n")}
    ),
    "mu_cgd_domain": lambda i: of(
        "multi_epoch.cyclic_domain",
        {"records": i.whole("l"), "index": i.whole("i"), "batch_size": 1, "epochs": i.whole("E"),
         **_domain(i, "Delta_over_b")},
    ),
    "mu_cgd_index": lambda i: of("multi_epoch.cyclic_contraction", _passes(i, "i")),
    "bok_table9_ncgd_mu": lambda i: of("multi_epoch.cyclic_contraction", _passes(i)),
    "bok_table9_gdp_comp": lambda i: of("multi_epoch.composition", _passes(Raw({**i.raw, "l": 1}))),
    "cgd_shuffle_once_delta": _once,
    "chourasia_rdp": _diffusion("noisy_gd.langevin"),
    "chourasia_rdp_refined": _diffusion("noisy_gd.langevin_refined"),
    "chourasia_lower": _diffusion("noisy_gd.langevin_lower"),
    "si_rdp_chourasia_units": _of_mu("noisy_gd.contraction"),
    "chourasia_exact_quadratic": _of_mu("noisy_gd.quadratic"),
    "rdp_to_dp_mironov": _edge("mironov"),
    "rdp_to_dp_cks": _edge("canonne"),
    "rdp_to_dp_alcks": _edge("asoodeh"),
    "cks_delta": lambda i: balls.canonne_log_delta(arb(i("alpha")), arb(i("rdp")), arb(i("eps"))).exp(),
    "gdp_ln_delta": lambda i: balls.log_delta(arb(i("eps")), arb(i("mu"))),
    "classic_true_delta": _classic,
    "theta": lambda i: balls.log_delta(arb(i("eps")), arb(i("r"))),
    "laplace_hockey_stick": lambda i: balls.log_step("laplace", arb(i("eps")), arb(i("s"))),
    "A": _own,
    "B": _following,
    "delta_fixed_index": lambda i: of("contraction.product", _full(i)),
    "delta_random_stop_exact": lambda i: of("contraction.stop_product", _full(i)),
    "delta_shuffled": lambda i: of("shuffle.product", _full(i)),
    "delta_minibatch_shuffled": lambda i: of("shuffle.product", _full(i)),
    "delta_shuffled_and_random_stop": lambda i: of("shuffle.stop_product", _full(i)),
    "delta_heterogeneous_fixed": _uneven("stepwise.product"),
    "delta_heterogeneous_worst_index": _uneven("stepwise.product"),
    "delta_heterogeneous_shuffled": _uneven("stepwise.shuffled_product"),
    "delta_position_law": _uneven("stepwise.shuffled_product"),
    "thm3_v": lambda i: _tuned("laplace")(run(_schedule(i, "laplace"))),
    "thm4_sigma": lambda i: _tuned("gaussian")(run(_schedule(i, "gaussian"))),
    "thm3_delta": _tuned_delta("laplace"),
    "thm4_delta": _tuned_delta("gaussian"),
    "nonlinear_delta_after_k_steps": _after("contraction.nonlinear"),
    "nonlinear_delta_shuffled": _on_average("shuffle.nonlinear"),
    "hybrid_delta_after_k_steps": _after("contraction.hybrid"),
    "gdp_shift_mu": _shift,
    "gdp_shift_delta": lambda i: balls.log_delta(arb(i("eps")), _shift(i)),
    "laplace_shift_delta": lambda i: balls.composed(arb(2 * i("L") / i("v")), i.whole("k") + 1, arb(i("eps"))),
    "online_scale": _stream_scale,
    "online_A": lambda i: streams.Stream(run(_stream(i, "i", "i"))).first(),
    "online_delta": lambda i: of("online.product", _stream(i, "i", "n")),
    "online_delta_worst_index": lambda i: of("online.product", _stream(i, "n", "n")),
    "compose_homogeneous": _repeated,
    "gdp_mu_from_pure_dp": lambda i: of("released.pure", {"epochs": 1, "epoch_epsilon": i("eps")}),
    "thm28_bound_tight": _averaged,
    "thm29_bound": _priced("utility.stop_classic"),
    "thm30_bound": _priced("utility.skip_classic"),
    "thm33_err_tight": _smoothed,
    "cor34_extra_corrected": lambda i: _priced("smoothing.skip_classic")(i) - _priced("utility.skip_classic")(i),
    "chourasia_excess_explicit": _explicit,
    "drift": _drifting,
    "uas_bounded_tight": _apart,
    "uas_strongly_convex": _curved_apart,
    "output_mixture_delta": lambda i: of("dp_sgd.output", _holder(i)).exp(),
    "excess_expected_grad": _gradient_risk,
    "wbk_rdp": _sampled_rdp,
}  # fmt: skip
"""What a definition says, by the name of the reference quantity."""


def compared(case: Mapping[str, Any]) -> bool:
    """Whether a definition speaks of the case: of no short batch over the nominal size, of not too many steps."""
    i = Raw(case["inputs"])
    return {
        "minibatch_rdp": lambda: i.whole("n") % i.whole("b") == 0,
        "compose_homogeneous": lambda: i.whole("E") <= released.MOST_PASSES,
        "online_delta": lambda: i.whole("n") - i.whole("i") <= streams.LONGEST,
        "nonlinear_delta_after_k_steps": lambda: i.whole("k") <= divergence.LONGEST,
    }.get(case["quantity"], lambda: case["quantity"] in QUANTITIES)()


COMPARED = [case for case in CASES if compared(case)]


def test_the_most_used_definitions_are_compared() -> None:
    assert {case["quantity"] for case in COMPARED} == set(QUANTITIES)
    assert len(COMPARED) >= 270


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in COMPARED])
def test_the_enclosure_holds_the_reference_value(case: dict[str, Any]) -> None:
    formula, inputs = QUANTITIES[case["quantity"]], Raw(case["inputs"])
    enclosure = settle(lambda: formula(inputs), bits=100)
    logarithm = "log_delta" in case and case["quantity"] != "gdp_ln_delta"
    with precision(400):
        given = case["log_delta"] if logarithm else case["value"]
        if given == "-inf":
            assert infinite(enclosure)
            return
        truth = arb(given)
        tolerance = abs(truth) * arb(10) ** -DIGITS + arb(10) ** -60  # of the logarithm of a number next to 1
        assert enclosure.rel_accuracy_bits() >= 80 or abs(enclosure) < arb(10) ** -60
        assert enclosure.overlaps(truth + tolerance.union(-tolerance)), f"{enclosure} against {given}"
