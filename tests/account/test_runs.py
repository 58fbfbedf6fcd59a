"""Files that training jobs write: what each is read as, or the one question that it leaves open."""

import json
import math
import random
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from dpcalc.account.described import Described
from dpcalc.account.forms import Phase, read_run
from dpcalc.account.stated import Missing
from dpcalc.account.way import _described, _typed, accounted
from dpcalc.errors import DpcalcError, NotApplicable, SpecError

Written = Callable[[str, Any], str]

SNIPPET = {
    "tool": "opacus", "history": [[2.0, 0.5, 60]], "records": 570, "sampler": "UniformWithReplacementSampler",
    "rate": 0.5, "epoch_steps": 2, "divisor": 285, "optimizer": "DPOptimizer", "reduction": "mean", "secure": False,
}  # fmt: skip
EVENT = {
    "class_name": "SelfComposedDpEvent", "count": 2000,
    "event": {"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.01,
              "event": {"class_name": "GaussianDpEvent", "noise_multiplier": 1.1}},
}  # fmt: skip
TRUNCATED = {
    "module_name": "dp_accounting.dp_event", "class_name": "TruncatedSubsampledGaussianDpEvent", "dataset_size": 50000,
    "sampling_probability": 0.01, "truncated_batch_size": 600, "noise_multiplier": 1.1,
}  # fmt: skip
PRINTED = (
    "ComposedDpEvent(events=[SelfComposedDpEvent(event=PoissonSampledDpEvent(sampling_probability=0.01, "
    "event=GaussianDpEvent(noise_multiplier=1.1)), count=1000), NoOpDpEvent(), "
    "SelfComposedDpEvent(event=PoissonSampledDpEvent(sampling_probability=0.02, "
    "event=GaussianDpEvent(noise_multiplier=1.5)), count=500)])"
)
PLAN = (
    "BandMFExecutionPlanConfig(iterations=1000, strategy=array([1. , 0.5, 0.25]), noise_multiplier=1.2, "
    "l2_clip_norm=1.0, rescale_to_unit_norm=True, normalize_by=128.0, sampling_prob=0.3, truncated_batch_size=None, "
    "num_examples=60000, column_normalize=False)"
)
CONFIG = (
    "BandMFConfig(iterations=1000, expected_participations=100.0, strategy=array([1. , 0.5, 0.25]), "
    "noise_multiplier=1.2, l2_clip_norm=1.0, rescale_to_unit_norm=True, normalize_by=128.0, truncated_batch_size=None, "
    "num_examples=None, column_normalize=False)"
)
TRANSFORMERS = """
output_dir: out
per_device_train_batch_size: 8
gradient_accumulation_steps: 4
num_train_epochs: 3.0
max_steps: -1
learning_rate: 5.0e-5
dataloader_drop_last: true
seed: 42
noise_multiplier: 0.8
target_delta: 1e-5
per_sample_max_grad_norm: 1.0
"""
LIGHTNING = """
trainer: {max_epochs: 10, devices: 2, num_nodes: 2, accumulate_grad_batches: 1}
data:
  class_path: my.Data
  init_args: {batch_size: 32, dataset_size: 51200}
val: {batch_size: 999}
dp: {noise_multiplier: 1.0, max_grad_norm: 1.0, sampling: poisson, delta: 1.0e-6}
"""
KERAS = {
    "class_name": "DPKerasSGDOptimizer",
    "config": {"name": "SGD", "learning_rate": 0.15, "l2_norm_clip": 1.0, "noise_multiplier": 1.1,
               "num_microbatches": 250},
    "batch_size": 250, "epochs": 60, "num_examples": 60000,
}  # fmt: skip
P = Phase


def _said(flags: str) -> dict[str, Any]:
    words = flags.split()
    names = [word.removeprefix("--").replace("-", "_") for word in words[::2]]
    return {name: _typed(name, text) for name, text in zip(names, words[1::2], strict=True)}


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(name: str, content: Any) -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def read(path: str, flags: str = "") -> Described:
    return _described(read_run(path), _said(f"--delta 1e-5 {flags}"), None)


RUNS: list[tuple[str, str, Any, str, Sequence[Phase], str]] = [
    ("snippet", "run.json", SNIPPET, "", [P(2.0, 0.5, 60)], "poisson"),
    ("snippet-with-batch", "run.json", {**SNIPPET, "batch_size": 200}, "", [P(2.0, 0.5, 60)], "poisson"),
    ("printed", "history.txt", "[(1.1, np.float64(0.01), 1000), (1.5, 0.02, 500)]", "--sampling poisson",
     [P(1.1, 0.01, 1000), P(1.5, 0.02, 500)], "poisson"),
    ("printed-with-its-name", "history.txt", "accountant.history: [(1.1, 0.01, 1000)]", "--sampling poisson",
     [P(1.1, 0.01, 1000)], "poisson"),
    ("ordered-dict", "state.txt", "OrderedDict([('history', [(1.1, 0.01, 1000)]), ('mechanism', 'prv')])",
     "--sampling poisson", [P(1.1, 0.01, 1000)], "poisson"),
    ("state-dict", "state.json", {"privacy_accountant_state_dict": {"history": [[1.0, 0.01, 10], [1.0, 0.01, 5]],
     "mechanism": "gdp"}}, "--sampling poisson", [P(1.0, 0.01, 15)], "poisson"),
    ("smaller-rate-than-loader", "run.json", {**SNIPPET, "history": [[2.0, 0.35, 60]]}, "", [P(2.0, 0.5, 60)],
     "poisson"),
    ("not-poisson", "run.json", {**SNIPPET, "sampler": "BatchSampler"}, "--sampling shuffle", [P(2.0, None, 60)],
     "shuffle"),
    ("resumed-inside-an-epoch", "run.json",
     {**SNIPPET, "sampler": "shuffle", "history": [[2, 0.5, 3], [1, 0.5, 2]]}, "--resumed true",
     [P(2.0, None, 3), P(1.0, None, 3)], "shuffle"),
    ("least-noise-of-an-epoch", "run.json",
     {**SNIPPET, "sampler": "shuffle", "history": [[2, 0.5, 3], [1, 0.5, 2], [3, 0.5, 3]]}, "--resumed false",
     [P(2.0, None, 2), P(1.0, None, 4), P(3.0, None, 2)], "shuffle"),
    ("uses", "run.json", {"records": 1000, "batch_size": 20, "uses": 5, "epochs": 2, "noise_multiplier": 1.1},
     "--sampling balls-in-bins --divisor constant", [P(1.1, None, 500)], "balls-in-bins"),
    ("workers", "run.json", {**SNIPPET, "sampler": "DistributedUniformWithReplacementSampler"}, "--devices 2",
     [P(2.0, 0.5, 60)], "poisson"),
    ("ghost", "run.json", {**SNIPPET, "history": [[2.0, 0.1, 60]], "rate": None, "epoch_steps": None, "accumulation": 3,
     "optimizer": "DPOptimizerFastGradientClipping"}, "", [P(2.0, 0.1, 60)], "poisson"),
    ("accumulated-in-the-history", "run.json", {**SNIPPET, "history": [[2.0, 0.04, 60]], "rate": 0.01, "epoch_steps":
     100}, "--accumulation 4", [P(2.0, 0.01, 60)], "poisson"),
    ("rate-of-another-loader", "run.json", {**SNIPPET, "history": [[2.0, 0.04, 60]], "rate": 0.01, "epoch_steps": 100},
     "--accumulation 1", [P(2.0, 0.04, 60)], "poisson"),
    ("keras-accumulates", "c.json", {**KERAS, "config": {**KERAS["config"], "gradient_accumulation_steps": 4}},
     "--sampling shuffle", [P(2.2, None, 3600)], "shuffle"),
    ("event", "event.json", EVENT, "", [P(1.1, 0.01, 2000)], "poisson"),
    ("printed-event", "event.txt", PRINTED, "", [P(1.1, 0.01, 1000), P(1.5, 0.02, 500)], "poisson"),
    ("tree-event", "event.json", {"class_name": "SelfComposedDpEvent", "count": 2, "event": {
        "class_name": "SingleEpochTreeAggregationDpEvent", "noise_multiplier": 3, "step_counts": [7, 8, 1]}}, "",
     [P(3, None, 8)], "full"),
    ("full-batch-event", "event.json", {"class_name": "GaussianDpEvent", "noise_multiplier": 3}, "", [P(3, None, 1)],
     "full"),
    ("plan", "plan.txt", PLAN, "", [P(1.2, 0.3, 334)], "poisson"),
    ("plan-by-participations", "plan.txt", CONFIG, "", [P(1.2, 0.3, 334)], "poisson"),
    ("plan-as-json", "plan.json", {"iterations": 1000, "expected_participations": 5, "strategy": [1.0, 0.5, 0.3, 0.2],
     "noise_multiplier": 1.2, "column_normalize": True}, "", [P(1.2, 0.02, 250)], "poisson"),
    ("opacus-loader", "c.yaml", "tool: opacus\nrecords: 570\nbatch_size: 200\ndrop_last: true\nepochs: 30\n"
     "noise_multiplier: 2\npoisson_sampling: true", "", [P(2.0, 0.5, 60)], "poisson"),
    ("opacus-quirk", "c.json", {"records": 9300, "batch_size": 100, "epochs": 3, "noise_multiplier": 1,
     "sampler": "UniformWithReplacementSampler"}, "", [P(1.0, 1 / 92, 276)], "poisson"),
    ("any-loader", "c.yaml", "n: 570\nbatch_size: 200\nepochs: 2\nnoise_multiplier: 1", "--sampling poisson "
     "--drop-last false", [P(1.0, 200 / 570, 6)], "poisson"),
    ("transformers", "args.yaml", TRANSFORMERS, "--sampling shuffle --records 10000 --devices 4", [P(0.8, None, 234)],
     "shuffle"),
    ("lightning", "c.yaml", LIGHTNING, "--per-device-batch-size 32", [P(1.0, 1 / 400, 4000)], "poisson"),
    ("keras", "c.json", KERAS, "--sampling shuffle", [P(1.1, None, 14400)], "shuffle"),
    ("clients", "fl.toml", "num_clients = 1000\nclients_per_round = 50\nnum_rounds = 40\nnoise_multiplier = 0.5",
     "--sampling fixed", [P(0.5, None, 40)], "fixed"),
    ("bands-of-images", "c.json", {"num_bands": 4, "sample_rate": 0.1, "steps": 8, "noise_multiplier": 1},
     "--sampling poisson", [P(1, 0.1, 8)], "poisson"),
    ("users-clipped-whole", "c.json", {"sample_rate": 0.1, "steps": 8, "noise_multiplier": 1, "clip_per": "user",
     "max_records_per_user": 3}, "--sampling poisson", [P(1, 0.271, 8)], "poisson"),
    ("weights-and-biases", "c.yaml", "sample_rate: {value: 0.1}\nsteps: {desc: null, value: 8}\n"
     "noise_multiplier: {value: 2}", "--sampling poisson", [P(2, 0.1, 8)], "poisson"),
    ("two-releases", "c.json", {"sample_rate": 0.01, "steps": 2000, "noise_multiplier": 1.1, "releases_per_batch": 2},
     "--sampling poisson", [P(0.7778174593052022, 0.01, 1000)], "poisson"),
    ("noise-after-averaging", "c.json", {"noise_std": 9, "clip": 2, "divisor": 100, "sample_rate": 0.1, "steps": 5},
     "--sampling poisson --noise-std 0.001", [P(0.05, 0.1, 5)], "poisson"),
    ("centred-counts", "c.json", {"noise_multiplier": 1, "clipped_count_stddev": 0.5, "count": "centred", "steps": 1,
     "sample_rate": 1}, "--sampling poisson", [P(math.sqrt(0.5), 1.0, 1)], "poisson"),
    ("layers", "c.json", {"layer_noise_multipliers": [3, 4], "steps": 1, "sample_rate": 1}, "--sampling poisson",
     [P(2.4, 1.0, 1)], "poisson"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "flags", "phases", "sampling"), [case[1:] for case in RUNS],
                         ids=[case[0] for case in RUNS])  # fmt: skip
def test_a_run_file_is_read_as_what_ran(
    written: Written, name: str, content: Any, flags: str, phases: Sequence[Phase], sampling: str
) -> None:
    run = read(written(name, content), flags)
    assert run.sampling == sampling
    assert len(run.phases) == len(phases)
    for one, other in zip(run.phases, phases, strict=True):
        assert one.steps == other.steps
        assert (one.rate is None) == (other.rate is None)
        assert (other.rate or 0.0) <= (one.rate or 0.0) <= (other.rate or 0.0) * (1 + 1e-14)
        assert other.noise_multiplier * (1 - 1e-14) <= one.noise_multiplier <= other.noise_multiplier


@pytest.mark.parametrize(
    ("content", "flags", "fact"),
    [
        ("[(1.1, 0.01, 1000)]", "", "sampling"),
        ({**SNIPPET, "sampler": "BatchSampler"}, "", "sampling"),
        ({**SNIPPET, "sampler": "DistributedUniformWithReplacementSampler"}, "", "devices"),
        ("records: 570\nbatch_size: 200\nepochs: 2\nnoise_multiplier: 1", "--sampling poisson", "drop_last"),
        ("batch_size: 200\nepochs: 2\nnoise_multiplier: 1", "--sampling poisson", "records"),
        ("batch_size: 200\nepochs: 2\nrecords: 500\nnoise_multiplier: 1", "--sampling shuffle", "drop_last"),
        ("epochs: 2\nnoise_multiplier: 1\nrecords: 10", "--sampling poisson", "loader_length"),
        ("records: 600\nbatch_size: 200\nepochs: 2\ndevices: 2\nnoise_multiplier: 1", "--sampling poisson",
         "per_device_batch_size"),
        (TRANSFORMERS, "--sampling shuffle --records 10000", "devices"),
        ("records: 600\nbatch_size: 200\nnoise_multiplier: 1", "--sampling poisson", "steps"),
        ("records: 600\nbatch_size: 200\nsteps: 1", "--sampling poisson", "noise_multiplier"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nunit: user", "--sampling poisson", "max_records_per_user"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nclipped_count_stddev: 3", "--sampling poisson", "count"),
        ("a: {batch_size: 1}\nb: {batch_size: 2}\nrecords: 6\nsteps: 1\nnoise_multiplier: 1", "--sampling poisson",
         "batch_size"),
        ("batch_size: auto\nrecords: 6\nsteps: 1\nnoise_multiplier: 1", "--sampling poisson", "batch_size"),
        ("poisson_sampling: false\nnoise_multiplier: 1", "", "sampling"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nmax_batch_size: 9", "--sampling poisson", "records"),
        ("stage1: {epochs: 1}\nstage2: {epochs: 1}\nrecords: 6\nbatch_size: 2\nnoise_multiplier: 1",
         "--sampling poisson", "epochs"),
        ("steps: 2\nepochs: 9\nrecords: 6\nbatch_size: 2\nnoise_multiplier: 1", "--sampling poisson", "steps"),
        ("learning: {rate: 0.001}\nsteps: 9\nnoise_multiplier: 1", "--sampling poisson", "loader_length"),
        ("scheduler: {steps: 9}\nsample_rate: 0.1\nnoise_multiplier: 1", "--sampling poisson", "steps"),
        ("sampler: TPESampler\nsteps: 9\nnoise_multiplier: 1", "", "sampling"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nclip_per: user", "--sampling poisson",
         "max_records_per_user"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nadjacency: add-remove", "--sampling poisson", "divisor"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nclipping: adaptive", "--sampling poisson",
         "count_noise_std"),
        ({**SNIPPET, "sampler": "BatchSampler", "optimizer": "DistributedDPOptimizer"}, "--sampling shuffle",
         "devices"),
        ({**SNIPPET, "sampler": "shuffle", "history": [[2, 0.5, 3], [1, 0.5, 2]]}, "", "resumed"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nclipping: per_layer", "--sampling poisson",
         "layer_noise_multipliers"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nmax_grad_norm: [1, 1]", "--sampling poisson",
         "layer_noise_multipliers"),
        ("sigma: 1\nsteps: 1\nsample_rate: 0.1", "--sampling poisson", "noise_multiplier"),
        ({**SNIPPET, "history": [[2.0, 0.04, 60]], "rate": 0.01, "epoch_steps": 100}, "", "accumulation"),
        ('{"sample_rate": 0.1, "steps": 1, "noise_multiplier": NaN}', "--sampling poisson", "noise_multiplier"),
        ({"sample_rate": 0.1, "steps": 1, "noise_multiplier": True}, "--sampling poisson", "noise_multiplier"),
        ({"sample_rate": 0.1, "steps": 1, "noise_multiplier": -1.1}, "--sampling poisson", "noise_multiplier"),
        ({"sample_rate": 256, "steps": 1, "noise_multiplier": 1.1}, "--sampling poisson", "sample_rate"),
    ],
)  # fmt: skip
def test_one_fact_is_asked_for_at_a_time(written: Written, content: Any, flags: str, fact: str) -> None:
    with pytest.raises(Missing) as raised:
        read(written("run", content), flags)
    assert raised.value.fact == fact
    assert f"--{fact.replace('_', '-')}" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("content", "flags", "why"),
    [
        (SNIPPET, "--layer-noise-multipliers 1,1,1", "contains it"),
        ("poisson_sampling: true\nsteps: 9\nsample_rate: 0.1\nnoise_multiplier: 4\nclip: 1",
         "--divisor 500 --noise-std 0.0022", "gives z = 4, but .* gives 1.1"),
        ("poisson_sampling: true\nsteps: 9\nsample_rate: 0.1\nnoise_multiplier: 4",
         "--layer-noise-multipliers 4,4", "gives 2.82843"),
    ],
)  # fmt: skip
def test_noise_that_is_said_twice_must_agree(written: Written, content: Any, flags: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        read(written("run", content), flags)


@pytest.mark.parametrize(("accumulation", "refused"), [(2, True), (5, False)])
def test_batches_left_over_may_use_a_record_twice(written: Written, accumulation: int, refused: bool) -> None:
    """Of 25 batches, 2 of each step: the last one of an epoch and the first of the next are one step."""
    content = f"records: 250\nper_device_train_batch_size: 10\ngradient_accumulation_steps: {accumulation}\n"
    path = written("run.yaml", content + "num_gpus: 1\nepochs: 2\nnoise_multiplier: 4\ndataloader_drop_last: false\n")
    if not refused:
        assert read(path, "--sampling shuffle").steps == 10
        return
    with pytest.raises(NotApplicable, match="use a record twice"):
        read(path, "--sampling shuffle")


@pytest.mark.parametrize(
    ("flags", "rate"),
    [("", 0.01), ("--sample-rate 0.01", 0.01), ("--sample-rate 0.04", 0.01), ("--sample-rate 0.02", None)],
)
def test_batches_of_a_loader_that_are_accumulated_have_coins_of_their_own(
    written: Written, flags: str, rate: float | None
) -> None:
    """100 batches of an epoch, 4 of each step: what is said of a rate is of a batch or of a step."""
    path = written("run.json", {"noise_multiplier": 1.1, "epochs": 10, "sampling": "poisson"})
    said = f"--loader-length 100 --accumulation 4 {flags}"
    if rate is None:
        with pytest.raises(SpecError, match=r"drawn at rate 0\.01 each"):
            read(path, said)
        return
    run = read(path, said)
    assert (run.steps, run.group_size) == (250, 4)
    assert run.phases[0].rate == pytest.approx(rate, rel=1e-12)


def test_a_last_step_of_fewer_batches_counts(written: Written) -> None:
    """20000 records in batches of 32 are 625, which are 79 steps of 8 or fewer."""
    content = {"records": 20000, "per_device_batch_size": 16, "devices": 2, "accumulation": 8, "drop_last": True,
               "epochs": 3, "noise_multiplier": 0.7, "sampling": "poisson"}  # fmt: skip
    assert read(written("run.json", content), "").steps == 237


def test_an_event_without_replacement_is_of_batches_of_one_size(written: Written) -> None:
    event = "SampledWithoutReplacementDpEvent(source_dataset_size=50000, sample_size=500, event=%s)"
    run = read(written("event.txt", event % "GaussianDpEvent(noise_multiplier=1.1)"), "")
    assert (run.sampling, run.shape, run.phases) == ("fixed", {"records": 50000, "batch_size": 500}, (P(1.1, None, 1),))
    two = f"ComposedDpEvent(events=[{event % 'NoOpDpEvent()'}, GaussianDpEvent(noise_multiplier=1.1)])"
    with pytest.raises(NotApplicable, match="several sizes"):
        read(written("event.txt", two.replace("NoOpDpEvent()", "GaussianDpEvent(noise_multiplier=2)")), "")


def test_a_typed_command_is_read_by_its_flags(written: Written) -> None:
    said = {
        "records": 60000,
        "batch_size": 256,
        "epochs": 3,
        "noise_multiplier": 1.1,
        "drop_last": "false",
        "sampling": "shuffle",
    }
    typed = (
        "OMP_NUM_THREADS=1 train.py --records=60000 --batch-size 256 \\\n  --epochs=3 -v --noise-multiplier '1.1' "
        "--drop-last false --sampling shuffle --max-steps -1"
    )
    one, other = (
        read(written(name, content))
        for name, content in (("run.sh", typed), ("run.json", said | {"drop_last": "false", "sampling": "shuffle"}))
    )
    assert (one.phases, one.sampling, one.shape) == (other.phases, other.sampling, other.shape)
    assert "-v" in one.unused
    script = "#!/bin/bash\n# train.py --epochs 9\nexport N='a: b'; cd x\n%s 2>&1 | tee -a log\n"
    assert read(written("run.sh", script % typed)).phases == other.phases


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("train.py --epochs 3 --epochs=4", "twice"),
        ("train.py --epochs 3; train.py --noise-multiplier 1", "2 commands"),
        ("train.py --epochs 3\ntrain.py --epochs 3", "2 commands"),
        ("for s in 1 2; do train.py --seed $s --epochs 3; done", "loop"),
        ("seq 3 | xargs -n 1 train.py --epochs 3 --seed", "loop"),
        ("run() { train.py --epochs 3 --seed $1; }\nrun 1\nrun 2", "function"),
        ("#SBATCH --array=1-5\ntrain.py --epochs 3", "array"),
    ],
)
def test_a_script_of_several_runs_is_refused(written: Written, content: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        read(written("run.sh", content))


def test_delta_is_asked_for(written: Written) -> None:
    with pytest.raises(Missing, match="delta"):
        accounted([written("run.json", EVENT)], {})


@pytest.mark.parametrize(
    ("content", "flags", "error", "words"),
    [
        ({**SNIPPET, "optimizer": "AdaClipDPOptimizer"}, "", NotApplicable, "adaptive clipping"),
        ({**SNIPPET, "history": [[1.1, 0.01, 9]], "unclipped_num_std": 5}, "", NotApplicable, "1.08056"),
        ("framework: opacus\nsample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\ndp_clipping: adaptive",
         "--sampling poisson",
         NotApplicable, "adaptive clipping"),
        (SNIPPET, "--adjacency add-remove", NotApplicable, "number of records"),
        (SNIPPET, "--sampling shuffle", SpecError, "--sampling"),
        ({**SNIPPET, "sampler": "BatchSampler"}, "--sampling poisson", SpecError, "--sampling"),
        (SNIPPET, "--steps 10", SpecError, "--steps"),
        (SNIPPET, "--noise-multiplier 10", SpecError, "--noise-multiplier"),
        (SNIPPET, "--loader-length 7", SpecError, "loader-length"),
        (SNIPPET, "--divisor realised", NotApplicable, "divided"),
        ({**EVENT, "same_seed": True}, "", SpecError, "same_seed"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nsame_seed: true\ndevices: 2", "--sampling poisson",
         NotApplicable,
         "seed"),
        ({**KERAS, "config": {"num_microbatches": 50, "l2_norm_clip": 1, "noise_multiplier": 1}}, "--sampling poisson",
         NotApplicable, "mean gradient"),
        ({**SNIPPET, "history": [[0, 0.5, 60]]}, "", NotApplicable, "no noise"),
        ({**SNIPPET, "history": [[0.01, 1.5, 60]]}, "", SpecError, "sample_rate"),
        ({**SNIPPET, "history": [[1, 0.5, 0]]}, "", SpecError, "steps"),
        ({**SNIPPET, "history": [[1, 0.5, 1.5]]}, "", SpecError, "steps"),
        ({**SNIPPET, "history": [["1", 0.5, 1]]}, "", SpecError, "noise_multiplier"),
        ({**SNIPPET, "history": [[True, 0.5, 1]]}, "", SpecError, "noise_multiplier"),
        ({**SNIPPET, "history": [[1, 0.5]]}, "", SpecError, "history"),
        ({**SNIPPET, "history": []}, "", SpecError, "empty"),
        ({"first": SNIPPET, "second": {"history": [[1, 0.5, 9]]}}, "", SpecError, "2 histories"),
        ("sample_rate: 0.1\nsteps: 1\nnoise_multiplier: 1\nnoise_scheduler: ExponentialNoise", "--sampling poisson",
         NotApplicable, "step to step"),
        ({"records": 1001, "batch_size": 100, "epochs": 2, "noise_multiplier": 1, "drop_last": False}, "--devices 2 "
         "--batch-size 100 --sampling shuffle", NotApplicable, "samplers repeat some"),
        ('{"history": [[NaN, 0.5, 1]]}', "", SpecError, "noise_multiplier"),
        ({"buf_decay": [0.9, 0.5], "output_scale": [0.2, 0.1]}, "", NotApplicable, "buffers of a BLT"),
        ({"iterations": 10, "expected_participations": 4, "strategy": [1, 0.5, 0.25], "noise_multiplier": 1}, "",
         SpecError, "4 participations of a record in 10 steps of 3 groups"),
        ({"iterations": 10, "expected_participations": 2, "strategy": [0.5, 0.25], "noise_multiplier": 1,
          "column_normalize": True}, "", NotApplicable, "columns are normalised"),
        ({"class_name": "MixtureOfGaussiansDpEvent", "standard_deviation": 1}, "", NotApplicable, "Mixture"),
        ({"class_name": "ComposedDpEvent", "events": [TRUNCATED, EVENT]}, "", NotApplicable, "several sizes"),
        ({"class_name": "SingleEpochTreeAggregationDpEvent", "noise_multiplier": 3, "step_counts": 8},
         "--adjacency add-remove", NotApplicable, "shifts all later records"),
        ({"class_name": "GaussianDpEvent", "noise_multiplier": 1, "more": 2}, "", SpecError, "more"),
        ({"class_name": "SelfComposedDpEvent", "event": EVENT, "count": True}, "", SpecError, "steps"),
        ({"class_name": "PoissonSampledDpEvent", "sampling_probability": 0.5, "event": EVENT}, "", NotApplicable,
         "nested sampling"),
    ],
)  # fmt: skip
def test_what_no_account_holds_for_is_refused(
    written: Written, content: Any, flags: str, error: type[DpcalcError], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        read(written("run", content), flags)
    assert not isinstance(raised.value, Missing)


def _long(rows: str, count: int, around: str = "[%s]") -> str:
    return around % ", ".join([rows] * count)


@pytest.mark.parametrize("around", ["[%s]", '{"tool": "opacus", "history": [%s], "records": 9}'])
@pytest.mark.parametrize("row", ["[1.5, 0.01, 1], [0.9, 0.02, 2]", "[1.50, 1e-2, 1],\n  [ 9e-1 ,0.02 ,2.0 ]"])
def test_a_long_history_is_that_of_its_rows(written: Written, row: str, around: str) -> None:
    run = read(written("run.json", _long(row, 10_000, around)), "--sampling poisson")
    assert set(run.phases) == {P(1.5, 0.01, 10_000), P(0.9, 0.02, 20_000)}


def test_a_long_history_as_python_prints_it(written: Written) -> None:
    row = "(np.float64(1.5), np.float64(0.01), 1), (0.9, numpy.float64(2e-2), 2)"
    printed = _long(row, 10_000, "{'history': [%s], 'mechanism': 'prv'}")
    run = read(written("run.txt", printed), "--sampling poisson")
    assert set(run.phases) == {P(1.5, 0.01, 10_000), P(0.9, 0.02, 20_000)}


@pytest.mark.parametrize(("kinds", "refused"), [(9_999, False), (12_000, True)])
def test_alike_steps_on_cut_batches_are_not_merged(written: Written, kinds: int, *, refused: bool) -> None:
    """The largest rate of alike steps may hide more where a batch is cut."""
    rows = [[1.0, 0.5 + 1e-9 * (k * kinds // 12_000), 1] for k in range(12_000)]
    path = written("run.json", {"history": rows, "max_batch_size": 1, "records": 3})
    with pytest.raises(NotApplicable, match="truncated") if refused else nullcontext():
        assert len(read(path, "--sampling poisson --adjacency replace-one").phases) == kinds


@pytest.mark.parametrize(
    "content",
    [
        {"history": [[1.0, 0.25, 9]], "loader_length": 3, "records": 10, "max_batch_size": 3},
        {"batch_size": 3, "records": 10, "epochs": 2, "noise_multiplier": 1, "drop_last": False, "max_batch_size": 3},
    ],
)
def test_of_cut_batches_no_larger_rate_is_taken(written: Written, content: Any) -> None:
    path = written("run.json", content)
    with pytest.raises(NotApplicable, match="may hide more at the larger one"):
        read(path, "--sampling poisson --adjacency replace-one")


def test_records_of_users_are_not_cut_one_by_one(written: Written) -> None:
    """By the rate of a user with all its records, one with fewer would be hidden less than is said."""
    content = {"sample_rate": 0.9, "records": 3, "steps": 1, "noise_multiplier": 3.3, "max_batch_size": 1}
    path = written("run.json", content)
    asked = "--sampling poisson --adjacency replace-one --clip-per user --max-records-per-user"
    assert read(path, f"{asked} 1").phases == (P(3.3, 0.9, 1),)
    with pytest.raises(NotApplicable, match="records of a user are cut"):
        read(path, f"{asked} 2")


@pytest.mark.parametrize("smooth", [True, False])
def test_very_many_kinds_of_steps_have_the_worst_of_alike_ones(written: Written, *, smooth: bool) -> None:
    chance = random.Random(0)
    rows = [(0.5 + (k if smooth else chance.randrange(30_000)) / 20_000, 0.01 + k / 10**7, 1) for k in range(30_000)]
    run = read_run(written("run.json", [list(row) for row in rows]))
    assert run.ordered is smooth
    assert len(run.phases) <= 10_000
    assert sum(phase.steps for phase in run.phases) == len(rows)
    for least in (0.7, 1.1, 1.9):  # as many steps have little noise, and as many a large rate, as were written
        assert sum(p.steps for p in run.phases if p.noise_multiplier <= least) >= sum(z <= least for z, *_ in rows)
    for most in (0.0105, 0.012):
        assert sum(p.steps for p in run.phases if (p.rate or 0.0) >= most) >= sum(q >= most for _, q, _ in rows)
    assert max(p.rate or 0.0 for p in run.phases) == max(q for _, q, _ in rows)
    assert all(any(z * 0.999 <= p.noise_multiplier <= z for p in run.phases) for z, *_ in rows[::3000])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_long("[1.1, 0.01, 1]", 20_000, "[%s, [1.1, 256, 1]]"), "entry 20001 of the history: sample_rate"),
        (_long("[1.1, 0.01, 1]", 20_000, "[[0.0, 0.01, 1], %s]"), "entry 1 of the history has no noise"),
        (_long("[1.1, 0.01, 1.5]", 20_000), "steps"),
        (_long("[1e999, 0.01, 1]", 20_000), "noise_multiplier"),
        (_long("[1.1, 0.01, 1e13]", 20_000), "steps"),
        (_long("[1.1, true, 1]", 20_000), "sample_rate"),
        (_long("[1.1, 0.01, 1]", 20_000, '{"a": {"history": [%s]}, "b": {"history": [[1, 1, 1]]}}'), "2 histories"),
        (_long("[1.1, 0.01, 1]", 20_000, '{"losses": [%s], "steps": 1}'), "no key history"),
        (_long("[1.1, 0.01, 1] [1.1, 0.01, 1]", 20_000), "."),
        (_long("[1.1, 0.01, 1]", 20_000, "[%s") + "]" * 40_000, "."),
        ('{"note": "' + "x" * 1_000_001 + '", "history": [[1.1, 0.01, 1]]}', "beside its history"),
    ],
)  # fmt: skip
def test_long_files_that_are_no_history_of_a_run_are_refused(written: Written, text: str, words: str) -> None:
    with pytest.raises(DpcalcError, match=words):
        read(written("run.json", text), "--sampling poisson")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x80\x04\x95", b"PK\x03\x04rest", b"\x1f\x8b\x08", b"[" * 200_000, b'{"a":' * 5000, b"(" * 3000,
        b"-" * 300_000 + b"1", b'{"history": [[1,1,1],', b"\xff\xfe\x00", b"", b"a: *b", b"a: &a [*a, *a]",
        b"__import__('os').system('true')", b"[[9" + b"9" * 6000 + b",1,1]]", b"x" * 1_000_001, b"[" * 3_000_000,
        b"[[1,1,1]," * 300_000, b"[[1,1,1" * 300_000,
        b'{"history": [[1,1,1]], "history": [[9,0.1,1]]}', b"a: !!python/object/apply:os.system [true]",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["run.json", "run.txt", "run.yaml"])
def test_hostile_files_are_refused(tmp_path: Path, name: str, raw: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(raw)
    with pytest.raises(DpcalcError):
        read(str(path), "--sampling poisson")


def test_no_irregular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("/dev/zero")
    (tmp_path / "model.ckpt").write_text("[(1, 0.1, 1)]")
    for name in ("link.json", "model.ckpt", ".", "none.json"):
        with pytest.raises(SpecError):
            read_run(str(tmp_path / name))
