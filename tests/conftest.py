"""Settings of all tests: property tests are derandomised, and random cases are counted for each theorem.

Three tiers: ``pytest -m quick``, ``pytest`` (all but campaigns) and ``pytest -m campaign``; CONTRIBUTING.md says more.
Of a test marked ``few(n)`` the default tier runs n of its parameters, evenly spread, and the campaign the others.
"""

import os
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from dpcalc.theorems.record import Theorem, all_bounds
from tests import spending
from tests.oracles import MANY, cases

for library in ("OPENBLAS", "OMP", "MKL"):  # every core has its own tests: threads of linear algebra would only wait
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")  # read where numpy is first imported


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr in ("", "campaign"):  # a campaign runs more random cases
        os.environ.setdefault("DPCALC_TEST_CASES", str(MANY))
    settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=max(30, cases(100)))
    settings.load_profile("repeatable")
    config.pluginmanager.register(_Spent(config))


@pytest.hookimpl(tryfirst=True)  # before the tier is chosen
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("campaign"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for instances in tests.values():
        few = next(instances[0].iter_markers("few")).args[0]
        kept = {place * len(instances) // few for place in range(few)}
        for place, item in enumerate(instances):
            if place not in kept:
                item.add_marker("campaign")


@pytest.fixture(autouse=True, scope="session")
def _count_evaluations() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Theorem, "prove", spending.counted(Theorem.prove))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Send what a test counted with its report, which reaches the terminal from every worker."""
    spending.collect()
    try:
        return (yield)
    finally:
        if spent := spending.collect():
            item.user_properties.append(("random cases", spent))


class _Spent:
    """Adds up the random cases of all reports, prints them, and fails a run of all tiers that leaves a theorem out."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.spent = config, Counter[str]()

    @property
    def campaign(self) -> bool:
        """Whether all tiers are run."""
        option = self.config.option
        chosen = option.markexpr == "" and not (option.keyword or option.collectonly)
        return chosen and self.config.args_source is pytest.Config.ArgsSource.TESTPATHS

    @property
    def neglected(self) -> list[str]:
        """The theorems that a campaign leaves out."""
        return [id for id in all_bounds() if self.campaign and self.spent[id] < spending.LEAST]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            for name, value in report.user_properties:
                if name == "random cases":
                    self.spent.update(value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        on_a_worker = hasattr(self.config, "workerinput")
        if not on_a_worker and session.exitstatus == pytest.ExitCode.OK and self.neglected:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.spent and not self.neglected:
            return
        terminalreporter.section(f"random cases: {sum(self.spent.values())}")
        for line in spending.table(self.spent):
            terminalreporter.line(line)
        if self.neglected:
            least = f"fewer than {spending.LEAST} random cases"
            terminalreporter.line(f"FAILED: the campaign spends {least} on {', '.join(self.neglected)}", red=True)
