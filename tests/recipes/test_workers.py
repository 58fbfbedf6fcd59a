"""Processes that compute: each within its limits, none steered from outside, and no loss but its own.

What they compute here is Python text, for ``eval`` is a function that every process knows.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpcalc
from dpcalc.recipes.running.workers import Pool, Stopped

PATIENT = 60.0  # seconds; what ought to be there at once
KILLED = "__import__('os').kill(__import__('os').getpid(), 9)"
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals")
LIMITED = pytest.mark.skipif(sys.platform != "linux", reason="no limit of memory")


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(eval, 1) as made:
        yield made


def test_results_come_from_other_processes(pool: Pool) -> None:
    found = {pool.submit("__import__('os').getpid()").result(PATIENT) for _ in range(3)}
    assert len(found) == 1
    assert os.getpid() not in found


# A sum over a range is a single call: no signal handler of Python's would be run before it ends.
@pytest.mark.parametrize("endless", ["__import__('time').sleep(1000)", "sum(range(10**15))"])
def test_what_takes_too_long_is_ended_and_nothing_else(pool: Pool, endless: str) -> None:
    first, late, last = (pool.submit(text, 2.0) for text in ("1 + 1", endless, "2 + 2"))
    with pytest.raises(Stopped, match="took longer than 2 s") as caught:
        late.result(PATIENT)
    assert caught.value.exit_code == 3
    assert "--timeout" in str(caught.value.hint)
    assert (first.result(PATIENT), last.result(PATIENT)) == (2, 4)


@LIMITED
def test_memory_has_a_limit_and_so_has_every_process_after() -> None:
    with Pool(eval, 1, memory=0.5) as pool:
        large, small, again = (pool.submit(f"len(bytearray({size}))") for size in (1 << 30, 1 << 20, 1 << 30))
        for future in (large, again):
            with pytest.raises(Stopped, match=r"more memory than the limit of 0\.5 GiB"):
                future.result(PATIENT)
        assert small.result(PATIENT) == 1 << 20


@LIMITED
def test_a_process_that_was_short_of_memory_is_not_used_again() -> None:
    # Had it been in the middle of an import, the next computation would find half a module.
    with Pool(eval, 1, memory=0.5) as pool:
        before, large, after = (
            pool.submit(text)
            for text in ("__import__('os').getpid()", "bytearray(1 << 30)", "__import__('os').getpid()")
        )
        with pytest.raises(Stopped):
            large.result(PATIENT)
        assert before.result(PATIENT) != after.result(PATIENT)


@POSIX
def test_a_process_killed_again_and_again_costs_its_own_result(pool: Pool) -> None:
    first, lost, last = (pool.submit(text) for text in ("1 + 1", KILLED, "2 + 2"))
    with pytest.raises(Stopped, match=r"ended early, twice: signal 9") as caught:
        lost.result(PATIENT)
    assert caught.value.exit_code == 3
    assert (first.result(PATIENT), last.result(PATIENT)) == (2, 4)


@POSIX
def test_a_process_killed_once_costs_nothing(pool: Pool, tmp_path: Path) -> None:
    there = str(tmp_path / "there")
    text = f"__import__('os').path.exists({there!r}) or (open({there!r}, 'w').close(), {KILLED})"
    assert pool.submit(text).result(PATIENT) is True


@POSIX
@pytest.mark.parametrize(("lost", "why"), [("__import__('time').sleep(1000)", "took longer"), (KILLED, "ended early")])
def test_of_many_that_travel_together_one_alone_is_lost(pool: Pool, lost: str, why: str) -> None:
    texts = [lost if number == 250 else f"({number}, __import__('os').getpid())" for number in range(300)]
    futures = [pool.submit(text, 2.0) for text in texts]
    with pytest.raises(Stopped, match=why):
        futures.pop(250).result(PATIENT)
    results = [future.result(PATIENT) for future in futures]
    assert [number for number, _ in results] == [number for number in range(300) if number != 250]
    assert 2 <= len({process for _, process in results}) <= 4


@LIMITED
def test_of_many_that_travel_together_one_alone_is_short_of_memory() -> None:
    with Pool(eval, 1, memory=0.5) as pool:
        futures = [pool.submit("bytearray(1 << 30)" if number == 250 else str(number)) for number in range(300)]
        with pytest.raises(Stopped, match="more memory"):
            futures.pop(250).result(PATIENT)
        assert [future.result(PATIENT) for future in futures] == [number for number in range(300) if number != 250]


def test_what_is_printed_does_not_mix_with_the_answers(pool: Pool) -> None:
    assert pool.submit("print('x' * 100, flush=True)").result(PATIENT) is None
    assert pool.submit("__import__('sys').stdin.read()").result(PATIENT) == ""


def test_neither_the_folder_nor_the_environment_says_where_modules_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steered = tmp_path / "site-packages"
    steered.mkdir()
    for folder in (tmp_path, steered):
        for name in ("selectors", "pickle", "json", "sitecustomize", "absent"):
            (folder / f"{name}.py").write_text("import os; os._exit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", "site-packages", str(tmp_path))))
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(steered))
    monkeypatch.syspath_prepend("")
    with Pool(eval, 1) as pool:
        found = pool.submit("__import__('sys').path").result(PATIENT)
        assert not {"", str(tmp_path), str(steered)} & set(found)
        assert pool.submit("[__import__(name).__name__ for name in ('selectors', 'json')]").result(PATIENT)
        with pytest.raises(Stopped, match="ended early"):  # as it is not there, the process fails
            pool.submit("__import__('absent')").result(PATIENT)
        location = pool.submit("__import__('dpcalc').__file__").result(PATIENT)
    assert location == dpcalc.__file__


def test_packages_found_in_another_folder_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "vendored.py").write_text("VALUE = 5\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    with Pool(eval, 1) as pool:
        assert pool.submit("__import__('vendored').VALUE").result(PATIENT) == 5


@pytest.mark.parametrize("executable", ["", "/no/such/python"])
def test_without_an_interpreter_nothing_is_computed(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    with Pool(eval, 1) as pool, pytest.raises(Stopped, match="ended early, twice"):
        pool.submit("1 + 1").result(PATIENT)


def test_leaving_ends_what_still_runs() -> None:
    with Pool(eval, 2) as pool:
        left = [pool.submit("__import__('time').sleep(1000)") for _ in range(5)]
    assert all(future.done() for future in left)


@pytest.fixture
def slow(write: Any) -> Any:
    """Return a function that writes a recipe of four cases, the second of which takes long."""
    given = (
        "command: multi-epoch, algorithm: noisy-sgd, batch_size: 1, noise_std: 1.5, records: 1e5, epsilon: 1, "
        "solve: steps, assert: steps >= 1"
    )

    def written(more: str = "", head: str = "") -> str:
        text = f"""\
            a: {{command: rdp, noise_std: 2, assert: epsilon <= 5}}
            slow: {{{given}{more}}}
            b: {{command: rdp, noise_std: 2, assert: epsilon <= 4}}
            c: {{command: rdp, noise_std: 2, assert: epsilon <= cases.slow.epsilon}}
        """
        path: str = write(text)
        if head:
            Path(path).write_text(Path(path).read_text().replace("delta: 1e-6}", f"delta: 1e-6, {head}}}"))
        return path

    return written


def verdicts(path: str, **options: Any) -> list[tuple[str, int, str]]:
    checks = [case.check for case in dpcalc.check(path, **options).cases if case.check]
    return [(check.status, check.exit_code, (check.message or "").partition(" does not hold")[0]) for check in checks]


LATE = "took longer than 2 s"
EXPECTED = [
    ("passed", 0, ""),
    ("error", 3, LATE),
    ("failed", 1, "epsilon <= 4"),
    ("error", 3, f"case slow, compared with, has no answer: {LATE}"),
]


@pytest.mark.parametrize(
    ("more", "head", "options"),
    [
        ("", "", {"timeout": 2}),
        pytest.param("", "", {"timeout": 2, "jobs": 2}, marks=pytest.mark.campaign),
        (", timeout: 8/4", "", {}),
        pytest.param("", "timeout: 2", {"memory_limit": 2}, marks=pytest.mark.campaign),
        pytest.param(", timeout: 2", "timeout: 50", {"timeout": 40}, marks=pytest.mark.campaign),
        (", timeout: 50", "", {"timeout": 2}),  # who runs the check has the last word
    ],
)
def test_a_case_that_takes_too_long_is_an_error_of_its_own(
    slow: Any, more: str, head: str, options: dict[str, Any]
) -> None:
    assert verdicts(slow(more, head), **options) == EXPECTED


@LIMITED
def test_a_case_that_needs_too_much_memory_is_an_error_of_its_own(write: Any) -> None:
    path = write(
        """\
        a: {command: rdp, noise_std: 2, assert: epsilon <= 5}
        large: {command: train, synthetic: logistic, records: 1e6, dimension: 300, seed: 1, epsilon: 1, radius: 5,
                lipschitz: null, smoothness: null, step_size: null}
        b: {command: rdp, noise_std: 2, assert: epsilon <= 5}
        """
    )
    found = verdicts(path, memory_limit=1)
    assert [code for _, code, _ in found] == [0, 3, 0]
    assert found[1][2] == "needed more memory than the limit of 1 GiB"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e6])
def test_a_time_limit_that_is_none(slow: Any, seconds: float) -> None:
    with pytest.raises(dpcalc.SpecError, match="a time limit of"):
        dpcalc.check(slow(), timeout=seconds)


@pytest.mark.parametrize("gib", [0, -1, 0.1, float("nan"), float("inf")])
def test_a_memory_limit_that_is_none(slow: Any, gib: float) -> None:
    with pytest.raises(dpcalc.SpecError, match="a memory limit of"):
        dpcalc.check(slow(), memory_limit=gib)


@pytest.mark.parametrize("typed", ["0", "-1", "inf", "1e9", "true", "soon", "[1, 2]", "{from: 'a.yaml#/b'}"])
@pytest.mark.parametrize("where", ["case", "defaults"])
def test_a_time_limit_of_a_recipe_that_is_none(slow: Any, typed: str, where: str) -> None:
    limit = f"timeout: {typed}"
    with pytest.raises(dpcalc.SpecError, match="timeout"):
        dpcalc.check(slow(f", {limit}") if where == "case" else slow(head=limit))


def test_the_time_of_a_case_is_no_parameter_of_it(write: Any) -> None:
    with pytest.raises(dpcalc.SpecError, match="rdp takes no 'timeout'"):
        dpcalc.check(write("a: {command: rdp, matrix: {timeout: [1, 2]}, noise_std: 2}"))


@pytest.mark.parametrize("how", [{"timeout": 50, "memory_limit": 3}, {"jobs": 2}])
def test_limits_and_processes_change_no_answer(write: Any, how: dict[str, Any]) -> None:
    path = write("""\
        s: {command: rdp, matrix: {noise_std: 1:9:1}, assert: epsilon <= 1}
        t: {command: rdp, noise_std: 2, skip: not yet}
        u: {command: rdp, assert: epsilon <= 1}
        v: {command: shuffle, noise_std: 2, assert: "epsilon <= cases.s[noise_std=1].epsilon"}
    """)
    assert dpcalc.check(path, **how).to_dict() == dpcalc.check(path).to_dict()


def test_a_case_compared_with_is_limited_too_where_it_was_not_chosen(slow: Any) -> None:
    assert verdicts(slow(), run="^c$", timeout=2) == EXPECTED[3:]
