"""``--json`` prints JSON, also of what is text by itself, and what once failed on tiny numbers answers."""

import json
import shlex
import warnings

import pytest

from dpcalc.cli.main import main

RUN = "--algorithm shuffled -n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6"


def ran(line: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    return int(stop.value.code or 0)


@pytest.mark.parametrize(
    "line", ["explain iteration.pnsgd", f"explain {RUN}", "cite iteration.pnsgd", "cite", f"cite {RUN}"]
)
def test_json_is_json(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(f"{line} --json") == 0
    assert json.loads(capsys.readouterr().out)


def test_a_displacement_beyond_all_numbers_is_refused() -> None:
    line = "hockey-stick -n 100 -L 1 --loss-class lipschitz --eta .1 --laplace-scale 1 -D 1e-320 -d 1e-3"
    assert ran(line) == 2


@pytest.mark.campaign
def test_noise_that_fades_away_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line = "shuffle -n 1e6 -L 10 --smoothness 1 --eta 0.1 -D 1.08e-57 --c1 1 --c2 1e-300 -d 1e-6"
        assert ran(line) == 0


@pytest.mark.parametrize(
    ("line", "code"),
    [
        # 7e-324 is the double 4.9e-324: epsilon would be 4.89 where what was typed has 7.21.
        ("rdp -n 10 -L 7e-324 --smoothness 1 --eta 1 --noise-std 2.3e-308 -d 1e-6", 2),
        ("rdp -n 10 -L 1 --smoothness 1 --eta 1 --noise-std 5e-324 -d 1e-6", 2),
        ("utility --records 1000 -L 1 --smoothness 1 --radius 1 --dimension 5 -e 1.7e308 -d 1e-6", 0),
        ("shuffle -n 9 -L 1 --smoothness 1 --eta 0.5 --sigma 1 --group-size 3 -e 1.7e308", 0),
    ],
)
def test_the_ends_of_the_doubles(line: str, code: int) -> None:
    assert ran(f"{line} --json") == code
