"""Notes: what they say in words, what JSON has of them, and that both speak of the same numbers."""

import json
import math
from typing import Any

import pytest

import dpcalc
from dpcalc import notes
from dpcalc.render import render
from dpcalc.render.notes import report
from dpcalc.report import Case, Result
from tests.schema import SCHEMA, conforms

FIELDS = SCHEMA["$defs"]["case"]["properties"]["note_data"]["items"]["properties"]
BEST = Result("iteration.pnsgd", "Pass", "epsilon", 1.0, "upper", epsilon=1.0, delta=1e-6, best=True)
ANSWER: dict[str, Any] = {"quantity": "epsilon", "value": 0.123456789, "bound": "iteration.pnsgd"}
DELTA: dict[str, Any] = {"quantity": "delta", "value": 0.0, "log_delta": -1000.0, "bound": "iteration.pnsgd"}


def bettered(changes: dict[str, Any], options: str, gain: float = 8.125, **answer: Any) -> dict[str, Any]:
    """The fields of a note on what would better an answer."""
    return {**ANSWER, "changes": changes, "options": options, "gain": gain, **answer}


SECRET = bettered({"permutation": "secret"}, "--permutation secret")
SMOOTH = bettered({"smoothness": 20.0}, "--smoothness 20")
STEP = bettered({"step_size": 2.0}, "--step-size 2", bound="a.b")
CURVED = bettered({"strong_convexity": 0.1}, "--strong-convexity 0.1", 1.24, quantity="diameter", value=1.23456)
BOUNDED = bettered({"diameter": 10.0}, "--diameter 10", quantity="noise_std", value=1e-150, any=True)
ZERO_OUT: dict[str, Any] = {"adjacency": "null-record", "value": 0.123456789, "bound": "sampled.poisson"}
PRINTED: dict[str, Any] = {"quantity": "epsilon", "value": 2.1597}
SAID = [
    (notes.OtherIndex(changes={"index": 1}, **ANSWER), "better hidden: 0.1235 for record 1 (use --index)"),
    (
        notes.OtherOrder(**bettered({"algorithm": "cyclic"}, "--algorithm cyclic")),
        "--algorithm cyclic gives epsilon 0.1235, 8.1 times less: several passes in one fixed order (iteration.pnsgd)",
    ),
    (
        notes.OtherRelease(**bettered({"release": "last"}, "--release last", 1.06)),
        "--release last gives epsilon 0.1235: only the last iterate is released then (iteration.pnsgd)",
    ),
    (
        notes.PromiseNotMade(promise=("a (--permutation secret)", "b"), **SECRET),
        "--permutation secret gives epsilon 0.1235, 8.1 times less, if a; b (iteration.pnsgd)",
    ),
    (
        notes.PromiseNotMade(promise=("a",), **{**SECRET, **DELTA}),
        "--permutation secret gives delta 5.076e-435, 8.1 times less, if a",
    ),
    (
        notes.Improvement(**SMOOTH),
        "--smoothness 20 gives epsilon 0.1235, 8.1 times less: if the losses are known to be convex and this smooth, "
        "or smoother (iteration.pnsgd)",
    ),
    (
        notes.Improvement(or_less=True, **{**STEP, "quantity": "steps", "value": 1234567}),
        "--step-size 2 gives steps 1234567, 8.1 times more: any step size up to 2/smoothness does (a.b)",
    ),
    (
        notes.Improvement(**STEP),
        "--step-size 2 gives epsilon 0.1235, 8.1 times less: the step size 2/smoothness (a.b)",
    ),
    (
        notes.Improvement(**CURVED),
        "--strong-convexity 0.1 gives diameter 1.234, 1.2 times more: an example of what it is worth to know the "
        "losses to be strongly convex (iteration.pnsgd)",
    ),
    (notes.Improvement(**BOUNDED), "--diameter 10 gives noise_std any: an example of what it is worth to project"),
    (
        notes.HidingPays(parameter="epochs", value=1234, bound="a.b", about=False),
        "a.b beats composition from about 1.2e+03 epochs on",
    ),
    (
        notes.ShortLastBatch(size=96, **bettered({"last_batch": "drop"}, "--last-batch drop")),
        "--last-batch drop gives epsilon 0.1235, 8.1 times less: the short last batch of 96 records weighs each of",
    ),
    (notes.NewestRecord(covered=9, newest=9), "there is no amplification"),
    (notes.NewestRecord(covered=5, newest=9), "every record up to 5 is covered"),
    (notes.NewestRecord(covered=5, newest=9, **ANSWER), "the newest has no amplification: epsilon 0.1235"),
    (
        notes.BetterThanPublished(bound="shuffle.mixture", published="shuffle.product", quantity="epsilon", value=2.0),
        "shuffle.mixture lets the noise of all later steps add up",
    ),
    (
        notes.HidingPays(parameter="epochs", value=2621440, bound="expanding.domain", about=True),
        "does not help yet: expanding.domain beats composition from about 2.6e+06 epochs on",
    ),
    (
        notes.TunedNoise(parameter="noise_std", value=0.5, kappa=0.25, exponent=None),
        "noise_std at this n is 0.5; its product bound nears the limit delta* from above in the end, as slowly as "
        "1/ln n, but may start far below it (kappa = Delta eta/(c D) = 0.25 < 1)",
    ),
    (notes.TunedNoise(parameter="noise_std", value=0.5, kappa=2.0, exponent=None), "as slowly as 1/ln n"),
    (notes.TunedNoise(parameter="laplace_scale", value=0.5, kappa=math.inf, exponent=1.0), "as 1/n (kappa = "),
    (notes.TunedNoise(parameter="laplace_scale", value=0.5, kappa=0.25, exponent=0.25), "from below, as n^-0.25,"),
    (notes.Vacuous(bounds=("a.b",), all=True), "every bound here is vacuous"),
    (notes.Vacuous(bounds=("a.b", "a.c"), all=False), "a.b, a.c: vacuous, above"),
    (notes.OwnChoice(bound="a.b", parameters=("steps",)), "a.b chooses steps itself"),
    (notes.NotCertified(bound="a.b", because="why"), "a.b is not certified: why"),
    (
        notes.NotCertified(bound="a.b", because="why", instead="a.c", quantity="epsilon", value=2.0),
        "a.b is not certified: why; the best that is: a.c, epsilon 2",
    ),
    (notes.NotCertified(because="why", instead="a.c", **{**ANSWER, "bound": "a.b"}), "a.c, epsilon 0.1235"),
    (notes.NotCertified(because="why", instead="a.c", **{**DELTA, "bound": "a.b"}), "a.c, delta 5.076e-435"),
    (
        notes.NotCertified(bound="a.b", because="why", instead="a.c", quantity="diameter", value=1.23456),
        "a.c, diameter 1.234",
    ),
    (
        notes.NotCertified(bound="a.b", because="why", instead="a.c", quantity="noise_std", value=1e-150, any=True),
        "a.c, noise_std any",
    ),
    (
        notes.OtherAdjacencies(quantity="epsilon", answers=[ZERO_OUT, {**ZERO_OUT, "adjacency": "replace-one"}]),
        "other adjacencies: epsilon 0.1235 with zero-out, 0.1235 with replace-one",
    ),
    (
        notes.OtherAdjacencies(quantity="epsilon", answers=[ZERO_OUT], at={"noise_multiplier": 1.23451}),
        "other adjacencies at noise_multiplier 1.235: epsilon 0.1235 with zero-out",
    ),
    (
        notes.OtherAdjacencies(
            quantity="delta", answers=[{**ZERO_OUT, "value": 0.0, "log_delta": -1000.0}], at={"steps": 123456}
        ),
        "other adjacencies at steps 123456: delta 5.076e-435 with zero-out",
    ),
    (
        notes.AccountantPrints(sampling="poisson", adjacency="add-remove", covers_run=True, **PRINTED),
        "prints epsilon of about 2.16: this run is what it assumes, if batches are really drawn so",
    ),
    (
        notes.AccountantPrints(sampling="poisson", adjacency="replace-one", covers_run=False, **PRINTED),
        "prints epsilon of about 2.16: that is no guarantee for this run, as the adjacency here is replace-one",
    ),
    (
        notes.AccountantPrints(
            sampling="shuffle", adjacency="null-record", covers_run=False, at={"steps": 12}, **PRINTED
        ),
        "of about 2.16 at steps 12: that is no guarantee for this run, as batches here are shuffled, and neither the "
        "number of Poisson sampling nor that of balls-in-bins may be quoted for them",
    ),
    (
        notes.AccountantPrints(sampling="fixed", adjacency="replace-one", covers_run=False, **PRINTED),
        "no guarantee for this run, as batches here are of one size, so that a record that leaves one makes room for "
        "another; and the adjacency here is replace-one",
    ),
    (notes.LeftOut(algorithm="shuffled", parameter="index"), "shuffled has no index: it was left out"),
    (notes.LossDomain(radius=5.0), "hold where |w| <= 5: project every iterate there"),
    (notes.LossDomain(radius=5.0, projected=True), "every iterate is projected onto the ball |w| <= 5"),
    (notes.LinearClip(), "clipped separately, with the intercept as one more feature"),
    (notes.LinearClip(regularised=True), "the regulariser's gradient is added after clipping"),
    (notes.Referenced(parameter="noise_std", origin="c.yaml#/std"), "noise_std is that of c.yaml#/std"),
    (notes.OnePass(algorithm="cyclic"), "no --epochs is given: this is for one pass of cyclic"),
    (notes.NotTrained(), "a gate failed: nothing was trained"),
    (
        notes.DefaultRule(signal_to_noise=11.0, picked="clip 0.1"),
        "the default rule chose clip 0.1, for a signal to noise of kappa = 11",
    ),
    (
        notes.OfClasses(class_shares=(0.75, 0.25)),
        "the shares of the classes, 0.75, 0.25, are assumed to be public",
    ),
    (
        notes.OfClasses(class_shares=(0.75, 0.25), class_weights=(0.3333, 1.0)),
        "to be public; slopes of the classes were multiplied by 0.3333, 1; predictions follow these weights",
    ),
    (notes.LabelReading(reading="yes is 1"), "labels: yes is 1"),
    (notes.ColumnReading(reading="words are 0"), "columns: words are 0"),
    (notes.SumsOfProducts(), "sums of the products of columns and target"),
    (
        notes.Calibrated(temperature=2.0, sums=4),
        "clipping pushes scores apart: they were divided by 2 to be log-odds; the last 4 accounted steps are noisy "
        "counts of right and wrong answers for that (see `dpcalc help method`)",
    ),
    (
        notes.Calibrated(temperature=2.0, sums=4, class_sums=3),
        "the last 7 accounted steps are noisy sums for that: 4 are counts of right and wrong answers, and 3 sum labels "
        "and probabilities for a bias of each class (see",
    ),
    (
        notes.Calibrated(temperature=2.0, sums=0),
        "clipping pushes scores apart: they were divided by 2 to be log-odds (see `dpcalc help method`)",
    ),
    (
        notes.Centred(mean_sums=11, distance_sums=1, accounted_steps=112),
        "the first 12 of the 112 accounted steps are noisy sums, 11 of rows and 1 of distances from their noisy mean",
    ),
    (notes.Forgets(model="old.json", steps=118), "old.json was trained on for 118 steps on these records alone"),
    (notes.UnreadableCells(), "a cell that is not a finite number counts as 0"),
    (notes.NotPrivate(because="why"), "NOT PRIVATE: why"),
    (
        notes.Rounded(of="every noisy sum", epsilon=0.0, delta=2.0**-30),
        "every noisy sum is rounded to a grid of 1/16 to 1/8 of its noise; 9.32e-10 of delta are included for that",
    ),
    (
        notes.Rounded(of="what is released", grid=0.125, epsilon=2.0**-20, delta=2.0**-130),
        "what is released is rounded to multiples of 0.125; 9.54e-07 of epsilon and 7.35e-40 of delta are included",
    ),
    (
        notes.DearRounding(of="what is released", grid=0.125, epsilon=0.25, delta=2.0**-30),
        "what is released is rounded to multiples of 0.125; 0.25 of epsilon and 9.32e-10 of delta are included for "
        "that; longer steps, a smaller --radius or fewer passes would cost less",
    ),
    (notes.NotCovered(because="not covered"), "the metrics of this run and the remarks on its records are not covered"),
    (notes.NotMeasured(), "--test-fraction 0.2"),
    (
        notes.Charged(
            file="s.yaml", entry="train", entries=2, spent=0.87244, epsilon=3.0, delta=1e-5,
            remaining={"epsilon": 2.132419, "mu": 0.67}, begun=["old"],
        ),
        "charged before training to s.yaml: epsilon <= 0.8725 of 3 at delta = 1e-05 is spent; left for one more: pure "
        "epsilon <= 2.132, or mu <= 0.67; charged and not known to be released: old",
    ),
    (notes.Charged(file="s.yaml", entry="train", entries=2), "s.yaml: 2 entries; it has no budget"),
    (notes.ModelFile(), "the model is not kept: give -o"),
    (notes.ModelFile(path="m.json"), "the model is written to m.json"),
    (notes.SeveralModels(), "the guarantee covers one of them, not all"),
    (
        notes.Tuned(law="geometric", mean=10.0, candidates=6, on="records held out", records=91, score_epsilon=0.3811),
        "with one of 6 candidates drawn at random; a score has noise for epsilon = 0.382",
    ),
    (notes.NothingDrawn(), "nothing is released"),
    (
        notes.CostOfTries(runs=10, epsilon=1.0, value=1.6211, fixed_number=3.611),
        "the best of a random, secret number of such runs (geometric, mean 10), each scored privately, would have cost "
        "epsilon 1.63 instead of 1, and a fixed number of 10, by composition, 3.62: --tune",
    ),
    (
        notes.PrefixNoise(
            rms=8.5, largest=9.9, workload={}, others=[{"mechanism": "bisr", "bands": 64, "rms": 8.0}, {
                "algorithm": "dp-sgd", "mechanism": "identity", "bands": 1, "sampling": "poisson", "rms": 17.0,
                "noise_multiplier": 1.0,
            }],
        ),
        "noise in prefix sums: 8.5 clips (rms), at most 9.9; bisr with 64 bands 8; Poisson DP-SGD 17",
    ),
    (
        notes.RunRead(what="the history of an Opacus accountant", taken={"steps": "h.json: steps"}, unused=["lr"]),
        "read as the history of an Opacus accountant: steps; not used: lr",
    ),
    (notes.OtherReading(reading="Poisson batches", value=1.5, truth="batches were shuffled"), "batches were shuffled"),
    (notes.RunRemark(says="a restarted accountant forgets"), "a restarted accountant forgets"),
]  # fmt: skip


def every_kind(base: type[notes.Note] = notes.Note) -> set[str]:
    """Return the kinds of all classes of notes."""
    own = {base.kind} if base.kind else set[str]()
    return own.union(*(every_kind(each) for each in base.__subclasses__()))


@pytest.mark.parametrize(("note", "sentence"), SAID, ids=[note.kind for note, _ in SAID])
def test_a_note_in_words_and_as_data(note: notes.Note, sentence: str) -> None:
    found = report("rdp", (Case("pnsgd", {}, (BEST,), note_data=(note,)),))
    [said] = found.cases[0].notes
    assert sentence in said
    [case] = json.loads(render(found, "json"))["cases"]
    conforms(json.loads(render(found, "json")))
    [data] = case["note_data"]
    assert data["kind"] == note.kind
    assert set(data) <= set(FIELDS)
    assert None not in {
        value for name, value in data.items() if name != "kappa" and not isinstance(value, (dict, list))
    }


def test_every_kind_of_note_is_tried_and_in_the_schema() -> None:
    assert {note.kind for note, _ in SAID} == every_kind() == set(FIELDS["kind"]["examples"])


def test_a_comparison_says_a_promise_as_its_table_does() -> None:
    note = notes.PromiseNotMade(promise=("the order is secret",), **{**SECRET, "value": 0.12341})
    case = Case("pnsgd", {}, (BEST,), note_data=(note,))
    for command, value in (("compare", "0.1234"), ("shuffle", "0.1235")):
        [said] = report(command, (case,)).cases[0].notes
        assert said.startswith(f"--permutation secret gives epsilon {value}, 8.1 times less, if the order is secret (")


def test_nothing_is_said_of_a_bound_without_an_explanation() -> None:
    note = notes.BetterThanPublished(
        bound="shuffle.nonlinear", published="shuffle.product", quantity="epsilon", value=2.0
    )
    found = report("rdp", (Case("shuffled", {}, (BEST,), note_data=(note,)),))
    assert found.cases[0].notes == ()


PASS: dict[str, Any] = {
    "records": 1000, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "noise_std": 2, "delta": 1e-6,
}  # fmt: skip


def test_the_values_of_notes_are_those_of_the_other_runs() -> None:
    case = dpcalc.rdp(**PASS).cases[0]
    assert [note.kind for note in case.note_data] == ["other_index", "other_index"]
    for note in case.note_data:
        assert isinstance(note, notes.OtherIndex)
        best = dpcalc.rdp(**PASS, **(note.changes or {})).cases[0].best
        assert best is not None
        assert (best.quantity, best.value, best.bound) == (note.quantity, note.value, note.bound)


def test_an_earlier_record_is_named_where_it_is_better_hidden_alone() -> None:
    whole = {**PASS, "records": 20, "batch_size": 20}  # one step, which all records share
    assert dpcalc.rdp(**whole).cases[0].note_data == ()
    halves = dpcalc.rdp(**{**whole, "batch_size": 10}).cases[0].note_data
    assert [(note.kind, note.changes) for note in halves] == [("other_index", {"index": i}) for i in (1, 10)]


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("shuffle", {"algorithm": "rotation"}),
        ("multi_epoch", {"algorithm": "rotation-epochs", "epochs": 2}),
        ("multi_epoch", {"algorithm": "rotation-epochs", "epochs": 2, "release": "epoch"}),
    ],
)
def test_a_rotation_says_what_a_short_last_batch_costs(command: str, more: dict[str, Any]) -> None:
    ask = getattr(dpcalc, command)
    run = {**PASS, "records": 21, "batch_size": 20, **more}
    [note] = [note for note in ask(**run).cases[0].note_data if isinstance(note, notes.ShortLastBatch)]
    assert note.size == 1
    assert note.value == ask(**run, **(note.changes or {})).cases[0].best.value
    assert not [n for n in ask(**{**run, "batch_size": 7}).cases[0].note_data if isinstance(n, notes.ShortLastBatch)]


def test_deltas_that_underflow_are_compared() -> None:
    """As doubles both are next to nothing; of a short last batch one is far larger."""
    run = {**PASS, "records": 21, "batch_size": 20, "delta": None, "epsilon": 100.0, "algorithm": "cyclic", "epochs": 1}
    case = dpcalc.multi_epoch(**run).cases[0]
    [note] = [note for note in case.note_data if note.kind == "short_last_batch"]
    assert case.best is not None
    assert max(case.best.value, note.value) < 1e-300
    assert note.log_delta < case.best.log_delta


@pytest.mark.parametrize("budget", [{"delta": 1e-6}, {"delta": None, "epsilon": 1.0}])
def test_what_an_improvement_promises_is_found_by_the_improved_run(budget: dict[str, Any]) -> None:
    run = {**PASS, **budget, "algorithm": "cyclic", "epochs": 5000}
    improvements = [n for n in dpcalc.compare(**run).cases[0].note_data if isinstance(n, notes.Improvement)]
    assert improvements
    for note in improvements:
        best = dpcalc.compare(**run, **(note.changes or {})).cases[0].best
        assert best is not None
        if note.quantity == "delta":
            assert best.log_delta is not None
            assert note.log_delta is not None
            assert best.log_delta <= note.log_delta
        assert best.value <= note.value


def test_the_numbers_in_words_are_those_of_the_data_rounded_up() -> None:
    case = dpcalc.multi_epoch(**PASS, algorithm="cyclic", epochs=20).cases[0]
    [note] = [note for note in case.note_data if isinstance(note, notes.OtherOrder)]
    assert note.changes == {"algorithm": "noisy-sgd"}
    [said] = [said for said in case.notes if said.startswith("--algorithm noisy-sgd gives epsilon ")]
    assert note.value <= float(said.split()[4].strip(",")) <= note.value * 1.002
    assert note.gain == pytest.approx(case.best.value / note.value if case.best else math.nan)


def test_notes_do_not_depend_on_where_a_case_is_evaluated(tmp_path: Any) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(
        "dpcalc: recipe/1\ncases:\n"
        + "".join(
            f"  {name}: {{command: compare, algorithm: cyclic, records: 100, lipschitz: 1, smoothness: 1, "
            f"step_size: 0.1, noise_std: {std}, delta: 1e-6, assert: epsilon <= 9}}\n"
            for name, std in (("a", 2), ("b", 3))
        )
    )
    here, elsewhere = dpcalc.check(path), dpcalc.check(path, jobs=2)
    assert [note.kind for case in here.cases for note in case.note_data] == ["one_pass", "one_pass"]
    assert here == elsewhere


@pytest.mark.parametrize(
    ("algorithm", "more", "shuffled"),
    [("pnsgd", {}, "shuffled"), ("cyclic", {"epochs": 5}, "shuffle-once"),
     ("cyclic", {"epochs": 5, "release": "epoch"}, "shuffle-once")],
)  # fmt: skip
def test_a_comparison_in_a_fixed_order_offers_the_same_passes_shuffled_in_secret(
    algorithm: str, more: dict[str, Any], shuffled: str
) -> None:
    run = {**PASS, **more}
    case = dpcalc.compare(**run, algorithm=algorithm).cases[0]
    [note] = [note for note in case.note_data if isinstance(note, notes.OtherOrder)]
    assert note.changes == {"algorithm": shuffled, "permutation": "secret"}
    assert note.promise
    best = dpcalc.compare(**run, **note.changes).cases[0].best
    assert best is not None
    assert best.value == pytest.approx(note.value, rel=1e-3)
    [said] = [said for said in case.notes if said.startswith(f"--algorithm {shuffled} --permutation secret gives ")]
    assert "if the order and its seed stay secret for ever" in said
    told_where = dpcalc.compare(**run, algorithm=algorithm, index=3).cases[0]
    assert not [note for note in told_where.note_data if isinstance(note, notes.OtherOrder)]
