"""Settings beside the facts of a run: what changes the answer is asked about or refused, and not passed over."""

from typing import Any

import pytest

from dpcalc.account.forms import Phase as P
from dpcalc.account.stated import Missing
from dpcalc.errors import DpcalcError, NotApplicable, SpecError

from .test_runs import SNIPPET, Written, read, written

__all__ = ["written"]


@pytest.mark.parametrize("said", [{"disable_dp": True}, {"dp": {"value": "False"}}, {"no-dp": 1}, {"use_dp": "off"},
                                  {"dpsgd": 0}, {"a": {"dp": True}, "b": {"enable_dp": False}}, {"no-dp-sgd": 1},
                                  {"nodpsgd": "true"},
                                  {"privacy": {"enabled": False, "clip": 1}}, {"dp.enable": False}, {"noise": "none"},
                                  {"noise_type": {"name": "off"}}, {"noise_multiplier": 0.0},
                                  {"dp": None}, {"method": "non-private"}, {"target_epsilon": "inf"},
                                  {"target_epsilon": -1}])  # fmt: skip
def test_a_run_without_privacy_is_refused(written: Written, said: dict[str, Any]) -> None:
    run = {"sample_rate": 0.01, "steps": 9, "noise_multiplier": 1.1, "sampling": "poisson"}
    assert read(written("run.json", run | {"dp": True, "disable_dp": False})).steps == 9
    assert read(written("run.json", run | {"dp": 8})).unused == ("dp",)
    with pytest.raises(NotApplicable, match="not private"):
        read(written("run.json", run | said), "--noise-multiplier 1.1")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"noise_type": "Laplace"}, "only Gaussian noise"),
        ({"mechanism": "discrete_gaussian"}, "only Gaussian noise"),
        ({"optimizer": "DP-FTRL"}, "correlated"),
        ({"noise": "BandMF"}, "correlated"),
        ({"clipping": "per_batch"}, "any length"),
        ({"per_sample_clipping": False}, "any length"),
        ({"max_grad_norm": 0}, "any length"),
        ({"max_grad_norm": 0.0, "tool": "opacus"}, "any length"),
        ({"max_grad_norm": None}, "any length"),
        ({"clip_type": "per_batch"}, "any length"),
        ({"noise": {"type": "laplace", "scale": 1}}, "only Gaussian noise"),
        ({"optimizer": {"name": "DP-FTRL", "lr": 1}}, "correlated"),
        ({"noise_scheduler": {"gamma": 0.9}}, "step to step"),
        ({"noise": {"decay": 0.9}}, "step to step"),
        ({"dp_noise_decay_rate": 0.99}, "step to step"),
        ({"min_noise_multiplier": 0.5}, "step to step"),
        ({"batch_size_growth": 2}, "step to step"),
        ({"dp_start_epoch": 3}, "step to step"),
    ],
)
def test_other_noise_and_no_clipping_are_refused(written: Written, said: dict[str, Any], words: str) -> None:
    run = {"sample_rate": 0.01, "steps": 9, "noise_multiplier": 1.1, "sampling": "poisson"}
    plain = {"noise_type": "gaussian", "mechanism": "rdp", "optimizer": "Ftrl", "clipping": "flat", "max_grad_norm": 1,
             "noise_decay": False, "a": {"optimizer": {"name": "sgd"}}}  # fmt: skip
    assert read(written("run.json", run | plain)).steps == 9
    with pytest.raises(NotApplicable, match=words):
        read(written("run.json", run | said))


def test_a_user_who_is_protected_may_have_several_records(written: Written) -> None:
    run = {"sample_rate": 0.01, "steps": 9, "noise_multiplier": 1.1, "sampling": "poisson", "dp_level": "user"}
    with pytest.raises(Missing, match="a user is protected"):
        read(written("run.json", run))


def test_a_resumed_run_says_that_steps_before_are_not_counted(written: Written) -> None:
    run = {"sample_rate": 0.01, "steps": 9, "noise_multiplier": 1.1, "sampling": "poisson"}
    assert any("earlier steps" in remark for remark in read(written("run.json", run | {"resume": "a.pt"})).remarks)
    assert not any("earlier steps" in remark for remark in read(written("run.json", run | {"resume": False})).remarks)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ({"validation_split": 0.1}, "records"),
        ({"train_split": "train[:90%]"}, "records"),
        ({"validation": {"split": 0.1}}, "records"),
        ({"data": {"splits": {"train": 0.8, "val": 0.2}}}, "records"),
        ({"num_val": 100}, "records"),
        ({"inner_steps": 4}, "releases_per_batch"),
        ({"noise": {"multiplier": 0.5}}, "noise_multiplier"),
        ({"virtual_batch_size": 512}, "batch_size"),
        ({"grad_accumulate_batches": 4}, "accumulation"),
        ({"accumulate_grad_batches": {"0": 8, "4": 4}}, "accumulation"),
        ({"n_critic": 5}, "steps"),
        ({"n_iters": 10000, "model": {"num_steps": 18}}, "steps"),
        ({"oversampling": True}, "sampling"),
        ({"num_repeats": 10}, "max_records_per_user"),
        ({"noise_cohort_size": 5000}, "noise_multiplier"),
        ({"clip_per_layer": True}, "layer_noise_multipliers"),
        ({"target_unclipped_quantile": 0.5}, "count_noise_std"),
        ({"adaptive_clipping": {"enabled": True}}, "count_noise_std"),
        ({"user_level_dp": True}, "unit"),
        ({"dp": {"enabled": True, "level": "user"}}, "max_records_per_user"),
        ({"batch_size": {"train": 100, "eval": 1}}, "batch_size"),
        ({"num_nodes": 2}, "devices"),
        ({"num_rounds": 5, "local_epochs": 2}, "clip_per"),
        ({"command": "t.py --gradient_accumulation_steps 4"}, "per_device_batch_size"),
    ],
)  # fmt: skip
def test_a_setting_that_may_change_a_fact_is_asked_about(written: Written, said: dict[str, Any], fact: str) -> None:
    run = {"dataset_size": 1000, "batch_size": 100, "epochs": 2, "noise_multiplier": 1.1, "sampling": "poisson"}
    idle = {"val_split": 0, "n_critic": 1, "n_train": 1000, "dataset_size": 1100, "test_size": 100, "oversample": False,
            "test": {"split": "test", "batch_size": 7}}  # fmt: skip
    assert read(written("run.json", run | idle)).phases == (P(1.1, 0.1, 20),)
    with pytest.raises(Missing) as raised:
        read(written("run.json", run | said))
    assert raised.value.fact == fact


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"sample_rate": 0.05}, "less than 100 of 1010 records"),
        ({"steps_per_epoch": 20}, "fill 11 batches"),
        ({"sampling": "fixed", "accumulation": 4, "per_device_batch_size": 25, "devices": 1, "drop_last": True},
         "several of the batches"),
        ({"n_runs": 5}, "several runs"),
        ({"sweep": {"lr": [1, 2]}}, "several runs"),
        ({"parameters": {"lr": {"values": [1, 2]}}}, "several runs"),
        ({"use_dp": "${USE_DP}"}, "a variable"),
    ],
)  # fmt: skip
def test_a_run_that_contradicts_itself_is_refused(written: Written, said: dict[str, Any], words: str) -> None:
    run = {"records": 1010, "batch_size": 100, "epochs": 2, "noise_multiplier": 1.1, "sampling": "poisson"}
    with pytest.raises(DpcalcError, match=words):
        read(written("run.json", run | said))


@pytest.mark.parametrize("sampler", ["poisson", "shuffle"])
@pytest.mark.parametrize(
    ("said", "words"),
    [({"epochs": 31}, "has 60"), ({"global_step": 61}, "has 60"), ({"noise_multiplier": 1.9}, "by the history 2")],
)
def test_a_history_of_less_than_the_rest_of_the_file_is_refused(
    written: Written, sampler: str, said: dict[str, Any], words: str
) -> None:
    run = SNIPPET | {"sampler": sampler}
    assert read(written("run.json", run | {"epochs": 30, "global_step": 60, "noise_multiplier": 2})).steps == 60
    assert read(written("run.json", run | {"global_step": 60, "max_steps": 90})).steps == 60
    with pytest.raises(SpecError, match=words):
        read(written("run.json", run | said))


def test_values_of_merges_in_yaml_are_read_once(written: Written) -> None:
    base = "base: &b {epochs: 10, batch_size: 32}\n"
    run = "{<<: *b, dataset_size: 3200, sampling: poisson, noise_multiplier: 1, val: &v {batch_size: 7}}\n"
    assert read(written("run.yaml", f"{base}train: {run}")).phases == (P(1.0, 0.01, 1000),)
    with pytest.raises(Missing, match="accumulated"):
        read(written("run.yaml", f"eval: &b {{batch_size: 32, accumulation: 4}}\ntrain: {run}epochs: 10"))
    bomb = "\n".join(f"b{k}: &b{k} {{<<: [{', '.join([f'*b{k - 1}'] * 9)}]}}" for k in range(1, 9))
    with pytest.raises(SpecError, match="more than 10000 values"):
        read(written("run.yaml", f"b0: &b0 {{x: 1}}\n{bomb}\nepochs: 10"))


def test_long_files_are_read_in_a_time_that_grows_with_their_length(written: Written) -> None:
    """Quadratic times would be minutes."""
    typed = "t.py --epochs 3 " + " ".join(f"-x{k} y z" for k in range(50_000))
    for name, text in (("run.sh", typed), ("run.json", {"accum" * 100_000 + "dtype": 1})):
        with pytest.raises(DpcalcError):
            read(written(name, text))


@pytest.mark.parametrize(
    ("typed", "fact"),
    [
        ("train.py --epochs 3 6 9", "epochs"),
        ("train.py --epochs 3 --gpus 1 2", "devices"),
        ("mpirun -np 4 train.py --epochs 3", "devices"),
        ("accelerate launch train.py --epochs 3", "devices"),
        ("train.py fit --epochs 3 --trainer.accumulate_grad_batches 4", "per_device_batch_size"),
        ("train.py --num_train_epochs 3 --epochs $EPOCHS", "epochs"),
    ],
)
def test_a_typed_command_leaves_open_what_it_does_not_say(written: Written, typed: str, fact: str) -> None:
    said = " --records 6400 --batch-size 64 --noise-multiplier 1 --sampling poisson"
    assert read(written("run.sh", f"train.py --epochs 3{said} data 2>&1")).phases == (P(1.0, 0.01, 300),)
    with pytest.raises(Missing) as raised:
        read(written("run.sh", typed + said))
    assert raised.value.fact == fact


@pytest.mark.parametrize("more", ['"$@"', "$EXTRA_ARGS", "${opts[@]}"])
def test_flags_in_a_variable_are_asked_for(written: Written, more: str) -> None:
    typed = "train.py $DATA --epochs 3 --records 640 --batch-size 64 --noise-multiplier 1 --sampling poisson"
    assert read(written("run.sh", typed)).steps == 30
    with pytest.raises(SpecError, match="more flags"):
        read(written("run.sh", f"{typed} {more}"))


def test_max_train_steps_override_epochs(written: Written) -> None:
    """As in the scripts of diffusers."""
    typed = "train.py --max_train_steps=15000 --num_train_epochs 1 --records 50000 --batch_size 50 --noise_multiplier 1"
    assert read(written("run.sh", typed), "--sampling poisson").phases == (P(1.0, 0.001, 15000),)


def test_norms_of_records_beat_those_of_batches(written: Written) -> None:
    run = {"sample_rate": 0.01, "steps": 9, "noise_multiplier": 1.1, "per_sample_max_grad_norm": 1.0}
    assert read(written("run.json", run | {"max_grad_norm": 0}), "--sampling poisson").steps == 9
    with pytest.raises(NotApplicable, match="any length"):
        read(written("run.json", run | {"per_sample_max_grad_norm": 0, "max_grad_norm": 1}), "--sampling poisson")


def test_rounds_are_steps_if_whole_updates_are_clipped(written: Written) -> None:
    run = {"num_rounds": 50, "clients_per_round": 5, "num_clients": 100, "noise_multiplier": 1, "sampling": "fixed"}
    local = {"epochs": 2, "batch_size": 32}
    whole = [read(written("run.json", run)), read(written("run.json", run | local), "--clip-per user")]
    assert all(one.phases == (P(1.0, None, 50),) and one.shape == {"records": 100, "batch_size": 5} for one in whole)
    of_records = run | {"sampling": "poisson", "clip_per": "record", "sample_rate": 0.01}
    with pytest.raises(Missing, match="number of steps"):
        read(written("run.json", of_records))
    assert read(written("run.json", of_records), "--steps 900").phases == (P(1.0, 0.01, 900),)
    with pytest.raises(SpecError, match="both given"):
        read(written("run.json", run), "--steps 60")


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (1001, {"drop_last": False}),
        (1001, {"drop_last": False, "devices": 1, "num_nodes": 2}),
        (1199, {"drop_last": True}),
    ],
)
def test_samplers_of_several_workers_repeat_records(written: Written, records: int, said: dict[str, Any]) -> None:
    """Each of 2 workers takes 600 of 1199 records, and one record twice; of 1001, 501 and in the last of 6 batches."""
    run = {"devices": 2, "per_device_batch_size": 100, "epochs": 2, "noise_multiplier": 4, **said}
    assert read(written("run.json", run | {"records": 1000}), "--sampling shuffle").steps == 10
    with pytest.raises(NotApplicable, match="2 workers share"):
        read(written("run.json", run | {"records": records}), "--sampling shuffle")
