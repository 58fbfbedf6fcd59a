"""What a theorem needs besides its function: one failing test lists all that is missing, and how to make it."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpcalc import references
from dpcalc.certify.case import has_definition
from dpcalc.certify.risk.costs import PRICES
from dpcalc.certify.table import definitions
from dpcalc.theorems.record import Theorem, all_bounds, lookup
from tests.corpus.names import BOUNDS as NAMES
from tests.quick.questions import QUESTIONS

ROOT = Path(__file__).resolve().parents[2]

TRUTH = {
    "iteration.stop_published": "theorems/test_iteration.py::test_published_stop_is_withheld_where_it_is_false",
    "shifted.laplace": "theorems/test_shifted.py::test_laplace_with_unequal_steps",
    "shifted.laplace_domain": "theorems/test_shifted.py::test_laplace_on_a_bounded_domain",
    "multi_epoch.contraction_published": "theorems/test_multi_epoch.py::test_printed_formulas",
    "multi_epoch.domain_published": "theorems/test_multi_epoch.py::test_printed_formulas",
    "multi_epoch.dynamics_published": "theorems/test_multi_epoch.py::test_printed_formulas",
    "contraction.stop_published": "reference/test_reference.py::test_reference",
    "shuffle.limit": "reference/test_reference.py::test_reference",
    "shuffle.nonlinear_limit": "reference/test_reference.py::test_reference",
    "hidden_position.shuffled": "cli/test_compare_truth.py::test_no_small_run_is_less_private",
    "sampled.poisson": "theorems/test_sampled_steps.py::test_no_small_run_is_less_private",
    "sampled.truncated": "theorems/test_sampled_steps.py::test_no_small_run_is_less_private",
    "sampled.scheduled": "reference/test_sampling.py::test_a_guarantee_is_just_above",
    "sampled.fixed": "theorems/test_sampled_steps.py::test_no_small_run_is_less_private",
    "sampled.with_replacement": "theorems/test_sampled_steps.py::test_no_small_run_is_less_private",
    "sampled.hidden": "theorems/test_sampled_hidden.py::test_no_run_is_less_private",
    "sampled.balls_in_bins": "theorems/test_sampled_steps.py::test_no_small_run_is_less_private",
    "sampled.known_places": "reference/test_groups.py::test_known_places_are_those_of_all_orders",
    "sampled.total_lower": "theorems/test_sampled_totals.py::test_no_lower_value_is_above_the_truth",
    "sampled.hidden_lower": "theorems/test_hidden_past.py::test_the_lower_value_is_that_of_a_run",
    "linear.sampled_curved": "theorems/test_hidden_past.py::test_the_lower_value_of_curved_losses_is_that_of_a_run",
    "sampled.shuffle_lower": "theorems/test_sampled_steps.py::test_the_lower_value_of_shuffled_batches_is_one",
    "sampled.last_iterate_heuristic": "theorems/test_last_iterate.py::test_the_heuristic_is_what_linear_losses_reveal",
    "correlated.banded_poisson": "theorems/test_correlated.py::test_no_small_banded_run_is_less_private",
    "correlated.banded_balls": "theorems/test_correlated.py::test_no_small_banded_run_is_less_private",
    "online.limit": "reference/test_reference.py::test_reference",
    "online.limit_above": "reference/test_reference.py::test_reference",
    "online.limit_below": "reference/test_reference.py::test_reference",
    "online.limit_printed": "theorems/test_contraction.py::test_printed_limit_of_a_stream",
    "multi_epoch.laplace": "theorems/test_laplace_passes.py::test_no_run_is_less_private",
    "shuffled_epochs.once_laplace": "theorems/test_laplace_passes.py::test_no_run_is_less_private",
    "noisy_gd.laplace": "theorems/test_laplace_passes.py::test_no_run_is_less_private",
    "noisy_gd.langevin_published": "theorems/test_multi_epoch.py::test_printed_renyi_formulas",
    "noisy_gd.dynamics_published": "theorems/test_multi_epoch.py::test_printed_renyi_formulas",
    "noisy_gd.domain_published": "theorems/test_multi_epoch.py::test_printed_domain_form_is_right_where_it_is_whole",
    "noisy_sgd.composition": "cli/test_compare_truth.py::test_no_small_run_is_less_private",
    "noisy_sgd.hidden": "cli/test_compare_truth.py::test_no_small_run_is_less_private",
    "released.cyclic_curve": "theorems/test_released.py::test_fixed_order_composes_exactly",
    "released.shuffled_epochs": "cli/test_compare_truth.py::test_no_small_run_is_less_private",
    "released.shuffled_epochs_point": "cli/test_compare_truth.py::test_no_small_run_is_less_private",
    "released.shuffled_epochs_rdp": "cli/test_compare_truth.py::test_no_small_run_is_less_private",
    "released.shuffled_epochs_secret": "theorems/test_released.py::test_secret_order_of_contractions",
    "released.shuffled_epochs_secret_curve": "cli/test_compare_truth.py::test_no_small_run_is_less_private",
    "released.shuffle_once_secret": "cli/test_compare_truth.py::test_no_small_run_is_less_private",
    "shuffled_epochs.fresh": "theorems/test_shuffled_epochs.py::test_fresh_orders_against_sampled_positions",
    "shuffled_epochs.once_secret": "theorems/test_shuffled_epochs.py::test_one_secret_order_is_as_good_as_known",
    "shuffled_epochs.fresh_secret": "theorems/test_shuffled_epochs.py::test_fresh_secret_orders_are_as_good_as_known",
    "expanding.fresh": "theorems/test_expanding.py::test_no_run_is_less_private",
    "expanding.sampled": "theorems/test_expanding.py::test_no_run_is_less_private",
    "expanding.laplace": "theorems/test_expanding.py::test_laplace_noise",
    "linear.sampled": "theorems/test_linear.py::test_sampled_is_a_binomial_mixture",
    "linear.curved_passes": "theorems/test_linear.py::test_passes_are_the_quadratics_without_curvature",
    "linear.shuffled_curved": "theorems/test_linear.py::test_shuffled_curved_is_an_average",
    "linear.once_curved": "theorems/test_splits.py::test_lower_values_are_below_those_of_the_maps_themselves",
    "linear.shuffled_curved_secret": "theorems/test_splits.py::test_lower_values_of_the_sheet",
    "linear.once_curved_secret": "theorems/test_splits.py::test_lower_values_are_below_those_of_the_maps_themselves",
    "linear.forgetting": "theorems/test_forgetting.py::test_a_pass_is_the_recursion",
    "linear.forgetting_passes": "theorems/test_forgetting.py::test_a_pass_is_the_recursion",
    "linear.forgetting_released": "theorems/test_forgetting.py::test_a_pass_is_the_recursion",
    "linear.stop_forgetting": "theorems/test_forgetting.py::test_stop_and_skip_are_averages_of_passes",
    "linear.skip_forgetting": "theorems/test_forgetting.py::test_stop_and_skip_are_averages_of_passes",
    "linear.once_curved_released": "theorems/test_forgetting.py::test_random_places",
    "linear.shuffled_stop_curved": "theorems/test_forgetting.py::test_random_places",
    "linear.epochs_curved": "theorems/test_forgetting.py::test_fresh_places",
    "linear.epochs_curved_released": "theorems/test_forgetting.py::test_fresh_places",
    "dp_sgd.gradient": "theorems/test_holder.py::test_gradient_bounds_are_ordered_and_met",
    "dp_sgd.gradient_published": "theorems/test_holder.py::test_the_noise_of_theorem_11_alone_is_not_private",
    "utility.average_published": "theorems/test_utility.py::test_printed_risks_are_what_the_paper_prints",
    "utility.public_published": "theorems/test_utility.py::test_printed_noise_for_public_records_is_not_private",
    "tasks.published": "theorems/test_utility.py::test_printed_risks_are_what_the_paper_prints",
    "smoothing.skip_published": "theorems/test_utility.py::test_printed_risks_are_what_the_paper_prints",
    "langevin.least_order": "theorems/test_utility.py::test_printed_risks_are_what_the_paper_prints",
}
"""The test that compares a theorem with an independent value, for those that no definition in ball arithmetic checks.

What has a definition is compared with it by `tests.soundness`.
"""


@functools.cache
def text_of(path: str) -> str:
    """Return a file of the project; empty where there is none."""
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.exists() else ""


def is_compared(id: str) -> bool:
    """Return whether an independent value of the theorem is part of the tests."""
    if id in PRICES or (id in definitions() and not definitions()[id].floor):
        return True
    file, _, name = TRUTH.get(id, "").partition("::")
    return bool(file) and f"def {name}(" in text_of(f"tests/{file}")


def missing(bound: Theorem) -> Iterator[str]:
    """Yield what a theorem still lacks, each with what makes it."""
    if bound.reference not in references.entries():
        yield f"its source: write @...{{{bound.reference}, ...}} into dpcalc/data/references.bib"
    if bound.reference not in references.SHORT:
        yield f"the name of its source: a line for {bound.reference!r} in SHORT of dpcalc/references.py"
    if bound.guarantee and has_definition(bound.id) == bool(bound.uncertified):
        yield (
            "what --certify does: either a formula below @defines in dpcalc/certify/ "
            '(PRICES in risk/costs.py for a risk) or uncertified="why there is none" in @theorem'
        )
    if not re.search(rf"`{re.escape(bound.id)}`", text_of("docs/method.md")):
        yield f"its proof, or a pointer: a paragraph of docs/method.md that names `{bound.id}`"
    if f"\n## {bound.id}\n" not in text_of(f"docs/bounds/{bound.family}.md"):
        yield "its page: run `python docs/build.py`"
    if bound.id not in {id for question in QUESTIONS for id in question.theorems.split()}:
        yield "a question that it answers in tests/quick/questions.txt"
    if bound.id not in NAMES:
        yield "its name in tests/corpus/names.py, and the recording of the answers: see `python -m tests.corpus --help`"
    if bound.guarantee and not bound.price and f"`{bound.id}`" not in text_of("docs/tightness.md"):
        yield "its row of the page: run `python -m tests.truth --write docs/tightness.md`"
    if not is_compared(bound.id):
        yield "an independent value: a test against a reference or brute force, named in TRUTH of this file"


@pytest.mark.parametrize("id", all_bounds())
def test_nothing_is_missing(id: str) -> None:
    lacking = list(missing(lookup(id)))
    assert not lacking, f"{id} lacks\n  " + "\n  ".join(lacking)


def test_what_is_missing_is_noticed() -> None:
    bare = lookup("released.optimal")._replace(id="released.nothing", reference="nobody2030")
    assert len(list(missing(bare))) == 9
    assert not list(missing(lookup("released.optimal")))


def test_the_table_names_theorems_that_nothing_else_checks() -> None:
    checked = {id for id in all_bounds() if id not in TRUTH and is_compared(id)}
    assert set(TRUTH) == set(all_bounds()) - checked
