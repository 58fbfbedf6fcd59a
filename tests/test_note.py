"""The note on the theorems: its numbers are those of its recipe, its bounds exist, its formulas can be read."""

import re
import shlex
from pathlib import Path
from types import ModuleType

import mpmath
import pytest
import yaml

from dpcalc.cli.main import cli
from dpcalc.render.several import cited
from dpcalc.theorems.record import all_bounds
from tests.test_docs import DOCS, ROOT, loaded, loaded_module

NOTE = DOCS / "note" / "note.md"
SLOW = ("epochs", "short-batch", "random-batches")

pytestmark = pytest.mark.skipif(not NOTE.exists(), reason="the documentation is not part of this distribution")


@pytest.fixture(scope="module")
def build() -> ModuleType:
    return loaded_module("note/build")


def text() -> str:
    return NOTE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.campaign if name in SLOW else ())
        for name in (
            "one-pass",
            "epochs",
            "short-batch",
            "full-batch",
            "weakly-convex",
            "random-batches",
            "contraction",
        )
    ],
)
def test_its_tables_are_what_the_recipe_gives(build: ModuleType, name: str) -> None:
    assert build.tables(text())[name] == build.table(name), "stale: run `python docs/note/build.py`"


def test_every_table_has_runs_and_every_run_a_table(build: ModuleType) -> None:
    assert set(build.tables(text())) == set(build.TABLES)
    named = set(re.findall(r'runs\("([a-z-]+)"\)', (DOCS / "note" / "build.py").read_text(encoding="utf-8")))
    assert named == set(yaml.safe_load((ROOT / "recipes" / "note.yaml").read_text(encoding="utf-8"))["cases"])


def test_numbers_are_rounded_to_the_safe_side(build: ModuleType) -> None:
    assert [build.shown(value) for value in (0.0012301, 4.0501e-14, 26.31, 9.999, 1.0)] == [
        "0.00124", "4.06e-14", "26.4", "10.0", "1.00",
    ]  # fmt: skip
    assert build.shown(0.02599, build.ROUND_FLOOR) == "0.0259"


def test_the_exact_run_of_the_last_step_is_below_the_table(build: ModuleType) -> None:
    """Every step forgets the last one: the formula of section 9, in forty digits."""
    rows = [line.strip("| ").split(" | ") for line in build.tables(text())["one-pass"].splitlines()[4:]]
    assert len(rows) == 4
    for records, noise, published, secret, lower in rows:
        with mpmath.workdps(40):
            mu, n = 2 / mpmath.mpf(noise), int(records)
            level = mpmath.log1p(n * mpmath.expm1(1))
            exact = mpmath.ncdf(mu / 2 - level / mu) - mpmath.exp(level) * mpmath.ncdf(-mu / 2 - level / mu)
            assert float(exact / n) <= float(secret) < float(published)
            assert float(exact / n) * 0.98 <= float(lower) <= float(secret)


def test_full_batches_are_as_strong_convexity_has_it_in_forty_digits(build: ModuleType) -> None:
    rows = [line.strip("| ").split(" | ") for line in build.tables(text())["full-batch"].splitlines()[4:]]
    with mpmath.workdps(40):
        c, r = mpmath.mpf("0.975"), mpmath.mpf(2) / 50
        for steps, _, contracting, exact, _ in rows:
            mu = r * mpmath.sqrt((1 - c ** int(steps)) * (1 + c) / ((1 + c ** int(steps)) * (1 - c)))

            def delta(epsilon: str, mu: mpmath.mpf = mu) -> mpmath.mpf:
                e = mpmath.mpf(epsilon)
                return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)

            assert delta(contracting) <= mpmath.mpf("1e-6") <= delta(exact)


def test_every_bound_that_it_names_is_one_and_every_statement_has_some() -> None:
    rows = re.findall(r"^\| (.*?) \| (`.*?) \|$", text(), re.MULTILINE)
    assert len(rows) == 14
    for statement, ids in rows:
        for id in re.findall(r"`(.*?)`", ids):
            assert id in all_bounds(), id
        for name in re.findall(r"(?:Theorem|Lemma|Proposition) \w+", statement):
            assert re.search(rf"^\*\*{name}\b", text(), re.MULTILINE), name
    mapped = " ".join(statement for statement, _ in rows)
    for letter in re.findall(r"^\*\*(?:Theorem|Proposition) (\w+)", text(), re.MULTILINE):
        assert re.search(rf"\b{letter}\b", mapped), letter


def test_its_formulas_are_read_alike_everywhere() -> None:
    """A backslash before punctuation is lost in some readers, and a dollar that is not closed eats the text."""
    prose = re.sub(r"```.*?```", "", text(), flags=re.DOTALL)
    assert prose.count("$$") % 2 == 0
    formulas = re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", prose, re.DOTALL)
    assert len(formulas) > 500
    assert "$" not in re.sub(r"\$\$.+?\$\$|\$[^$\n]+\$", "", prose, flags=re.DOTALL)
    for pair in formulas:
        formula = "".join(pair)
        assert not re.search(r"\\[^A-Za-z]", formula), formula
        assert not re.search(r"<(?! )|[|*]", formula), formula
        assert formula.count("{") == formula.count("}"), formula
        assert formula.count(r"\left") == formula.count(r"\right"), formula


def test_the_site_has_its_formulas_without_scripts() -> None:
    converter = pytest.importorskip("latex2mathml.converter")
    site = loaded_module("build_site")
    page = 'a <span class="arithmatex">\\(x_1 &lt; 2\\)</span> <div class="arithmatex">\\[\ny\n\\]</div>'
    inline, block = converter.convert("x_1 < 2"), converter.convert("y", display="block")
    assert re.sub(r"</?(span|div)[^>]*>", "", site.with_formulas(page)) == f"a {inline} {block}"


def test_what_a_pdf_lacks_is_named(build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build.missing() == ["pandoc", "rsvg-convert", "one of tectonic, xelatex, lualatex"]
    for name in ("pandoc", "rsvg-convert", "xelatex"):
        (tmp_path / name).touch(mode=0o755)
    assert build.missing() == []


def test_its_figure_is_drawn_by_a_command_there_is(build: ModuleType) -> None:
    arguments = shlex.split(build.figure(text()))
    command = cli.get_command(None, arguments[0])
    assert command is not None
    command.make_context(arguments[0], arguments[1:])
    assert arguments[-2:] == ["--plot", "positions.svg"]
    assert "](positions.svg)" in text()
    assert "<svg" in (DOCS / "note" / "positions.svg").read_text(encoding="utf-8")


def test_it_is_cited() -> None:
    title = text().partition("\n")[0].removeprefix("# ")
    assert f"{{{title}}}" in cited(["dpcalc-note"])
    assert "dpcalc-note" in cited([])
    assert "docs/note/note.md" in cited(["hidden_position.shuffled"])
    assert loaded(ROOT / "CITATION.cff")["preferred-citation"]["title"] == title


def test_the_corollaries_are_least_costs() -> None:
    """Against a solver that knows nothing of hulls: cyclic passes, full batches and the pair of positions."""
    from scipy.optimize import minimize

    def least(shifts: list[float], c: float) -> float:
        def state(spent: list[float]) -> list[float]:
            z, states = 0.0, []
            for shift, a in zip(shifts, spent, strict=True):
                z = c * z + shift - a
                states.append(z)
            return states

        found = minimize(
            lambda a: sum(x * x for x in a), shifts, bounds=[(0.0, None)] * len(shifts), method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
            constraints=[
                {"type": "ineq", "fun": lambda a: state(a)[:-1]}, {"type": "eq", "fun": lambda a: state(a)[-1]},
            ],
        )  # fmt: skip
        return float(found.fun)

    c, T = 0.8, 6
    assert least([1.0] * T, c) == pytest.approx((1 - c**T) * (1 + c) / ((1 + c**T) * (1 - c)), rel=1e-5)
    assert least([0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0], 1.0) == pytest.approx(1 / 3 + 1 / 2, rel=1e-5)  # l = 3, k = 2
    one, early, late = least([1.0, 0.0, 0.0, 0.0], c), 1.0, 0.5
    assert one == pytest.approx(c**6 * (1 - c * c) / (1 - c**8), rel=1e-5)
    apart = least([early, 0.0, 0.0, late, 0.0], 1.0)
    assert apart == pytest.approx((early + late) ** 2 / 5, rel=1e-5)  # j = 5, i = 2: 1/3 > .5/2, so together
    assert least([late, 0.0, 0.0, early, 0.0], 1.0) == pytest.approx(late**2 / 3 + early**2 / 2, rel=1e-5)
    for j, i in [(4, 1), (4, 3)]:  # two epochs of four steps in one order, both branches
        uses = [1.0 if place in (j, i) else 0.0 for place in range(4, 0, -1)]
        pair = 4 / j if j < 2 * i else 1 / i + 1 / (j - i)
        assert least([*uses, *uses], 1.0) == pytest.approx(4 / 4 + pair, rel=1e-5)
