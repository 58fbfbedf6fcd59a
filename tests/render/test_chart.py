"""Charts against the numbers of the reports they are drawn from."""

import math
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

import dpcalc
from dpcalc.engine.ask import ask
from dpcalc.errors import SpecError
from dpcalc.model.question import Question
from dpcalc.render.chart import MAX_SERIES, Axis, Chart, Panel, Series, chart, figure, terminal
from dpcalc.render.chart.bounds import DECADES, KINDS
from dpcalc.render.chart.figure import limits
from dpcalc.report import Case, Report, Result
from dpcalc.theorems.record import all_bounds

BASE = Result("a.one", "One", "epsilon", 1.0, "upper", epsilon=1.0, delta=1e-6, log_delta=math.log(1e-6), best=True)


def result(bound: str, value: float, kind: str = "upper", *, best: bool = False) -> Result:
    return BASE._replace(bound=bound, value=value, epsilon=value, kind=kind, best=best)


def delta(bound: str, log: float, kind: str = "upper", *, best: bool = False) -> Result:
    value = math.exp(log)
    return Result(bound, bound, "delta", value, kind, epsilon=1.0, delta=value, log_delta=log, best=best)


def case(results: tuple[Result, ...], algorithm: str = "pnsgd", **inputs: Any) -> Case:
    return Case(algorithm, {name: (value, "flag") for name, value in inputs.items()}, results)


def along(*columns: tuple[Result, ...], **fixed: Any) -> Report:
    return Report("rdp", tuple(case(rows, records=10**k, **fixed) for k, rows in enumerate(columns, 1)))


def curves(found: Chart, panel: int = 0) -> dict[str, Series]:
    return {series.label: series for series in found.panels[panel].series}


# What is drawn.


def test_every_bound_is_a_curve_and_the_best_is_marked() -> None:
    report = along(
        (result("a.one", 1.0, best=True), result("a.two", 2.0), result("a.low", 0.5, "lower")),
        (result("a.one", 3.0, best=True), result("a.low", 0.25, "lower")),
        lipschitz=1.0,
    )
    found = chart(report)
    [panel] = found.panels
    assert (panel.x.label, panel.y.label) == ("records n", "epsilon (nats)")
    assert curves(found) == {
        "a.one": Series("a.one", (10, 100), (1.0, 3.0), "upper", True),
        "a.two": Series("a.two", (10, 100), (2.0, None)),  # a gap where it gave nothing
        "a.low (lower bound)": Series("a.low (lower bound)", (10, 100), (0.5, 0.25), "lower"),
    }
    assert "lipschitz L = 1" in found.subtitle


def test_the_envelope_is_drawn_where_no_bound_is_always_best() -> None:
    report = along(
        (result("a.one", 1.0, best=True), result("a.two", 2.0)), (result("a.one", 5.0), result("a.two", 3.0, best=True))
    )
    found = curves(chart(report))
    assert found["best guarantee"].ys == (1.0, 3.0)
    assert found["best guarantee"].best
    assert not found["a.one"].best


def test_what_is_no_guarantee_is_dashed_and_says_what_it_is() -> None:
    kinds = ("asymptotic", "lower", "conditional", "published", "heuristic")
    rows = tuple(result(f"a.{kind}", 0.1 * k, kind) for k, kind in enumerate(kinds, 1))
    found = chart(along((result("a.one", 2.0, best=True), *rows), (result("a.one", 2.0, best=True), *rows)))
    for series in found.panels[0].series:
        assert series.dashed == (series.label != "a.one")
        assert (figure.DASHES[series.kind] == "-") == (not series.dashed)
    assert {series.label for series in found.panels[0].series if series.dashed} == {
        f"a.{kind} ({KINDS[kind]})" for kind in kinds
    }


def test_two_parameters_give_a_curve_a_combination_and_limits_once() -> None:
    rows = []
    for records in (10, 20, 30):
        for rate in (0.1, 0.2):
            best = result("a.one", records * rate, best=True)
            other = result("a.two", 99.0 * (1.0 + rate))._replace(title="Two")
            rows.append(case((best, other, result("a.end", 7.0, "asymptotic")), records=records, step_size=rate))
    found = curves(chart(Report("rdp", tuple(rows))))
    assert list(found) == ["eta = 0.1", "eta = 0.2", "a.end (limit)"]
    assert found["eta = 0.1"].ys == pytest.approx((1.0, 2.0, 3.0))
    chosen = curves(chart(Report("rdp", tuple(rows)), ["a.two"]))
    assert list(chosen) == ["Two, eta = 0.1", "Two, eta = 0.2"]
    with pytest.raises(SpecError, match=r"a\.none"):
        chart(Report("rdp", tuple(rows)), ["a.none"])


def test_the_algorithm_tells_curves_apart() -> None:
    rows = [
        case((result("a.one", n * share, best=True),), algorithm, records=n)
        for n in (1, 2)
        for algorithm, share in (("stop", 1.0), ("skip", 2.0))
    ]
    assert list(curves(chart(Report("rdp", tuple(rows))))) == ["stop", "skip"]


def test_curves_that_coincide_are_one_with_all_their_names() -> None:
    def rows(n: float) -> tuple[Result, ...]:
        near = result("a.near", n * 1.001)._replace(title="Near")
        low = result("a.low", n, "lower")._replace(title="Below")
        return result("a.one", n, best=True), near, result("a.far", n * 1.01)._replace(title="Far"), low

    found = curves(chart(along(rows(1.0), rows(2.0))))
    assert list(found) == ["One; the same line: Near; Below (lower bound)", "Far"]
    first = found["One; the same line: Near; Below (lower bound)"]
    assert (first.ys, first.kind, first.best) == ((1.0, 2.0), "upper", True)


def test_two_bounds_that_are_best_in_turn_and_coincide_need_no_envelope() -> None:
    columns = [
        (result("a.one", n, best=first), result("a.two", n * 1.0001, best=not first))
        for n, first in ((1.0, True), (2.0, False))
    ]
    found = curves(chart(along(*columns)))
    assert list(found) == ["a.one; the same line: a.two"]
    assert found["a.one; the same line: a.two"].best


def test_a_curve_has_gaps_only_where_it_was_asked_for_and_gave_nothing() -> None:
    """The combinations have values of x of their own, as where records and steps vary together."""
    rows = [case((result("a.one", n, best=True),), "stop", records=n) for n in (1, 3, 5)]
    rows += [case((result("a.one", 2.0 * n, best=True),), "skip", records=n) for n in (2, 6)]
    rows += [case((), "skip", records=4)]
    found = curves(chart(Report("rdp", tuple(rows))))
    assert (found["stop"].xs, found["stop"].ys) == ((1, 3, 5), (1.0, 3.0, 5.0))
    assert (found["skip"].xs, found["skip"].ys) == ((2, 4, 6), (4.0, None, 12.0))


def test_the_best_of_many_combinations_is_drawn() -> None:
    rows = [
        case((result("a.one", n * (20.0 - rate), best=True),), records=n, step_size=float(rate))
        for n in range(1, 14)
        for rate in range(12)
    ]
    found = chart(Report("rdp", tuple(rows)))
    assert len(found.panels[0].series) == MAX_SERIES
    assert "eta = 11" in curves(found)
    assert any("eta = 10" in note for note in found.notes)


def test_a_point_between_gaps_is_marked() -> None:
    alone = Series("a", tuple(range(50)), (1.0, None, 2.0, None, *[3.0] * 46))
    assert figure._marked(alone, 3) == (0, 1)
    assert figure._marked(alone._replace(ys=(1.0,) * 50), 3) == (3, 4)


def test_the_terminal_has_lines_and_leaves_gaps() -> None:
    def rows(ys: tuple[float | None, ...]) -> int:
        drawn = Chart("t", "", (Panel("", Axis("x"), Axis("y"), (Series("a", (0, 1, 2, 3), ys, best=True),)),))
        text = terminal.draw(drawn, 80)
        assert "* a: the best guarantee" in text
        return sum(line.partition("|")[2].count("*") for line in text.splitlines())

    assert rows((0.0, 1.0, 2.0, 3.0)) > 40
    assert rows((0.0, None, 2.0, None)) == 2


def test_orders_are_a_sweep() -> None:
    rows = tuple(BASE._replace(quantity="rdp", value=order / 2, order=order, epsilon=None) for order in (2.0, 4.0, 8.0))
    found = chart(Report("rdp", (case(rows, records=5),)))
    assert found.panels[0].x.label == "order alpha"
    assert curves(found)["One"].ys == (1.0, 2.0, 4.0)


def test_at_most_eight_curves_and_the_others_are_named() -> None:
    rows = tuple(result(f"a.b{chr(97 + k)}", 1.0 + k, best=k == 0) for k in range(12))
    found = chart(along(rows, rows))
    assert len(found.panels[0].series) == MAX_SERIES
    assert any("a.bl" in note for note in found.notes)


@pytest.mark.parametrize(
    "report",
    [Report("rdp", ()), along((BASE,)), Report("rdp", tuple(case((BASE,), a) for a in ("stop", "skip")))],
    ids=["nothing", "one case", "no number"],
)
def test_nothing_to_draw_is_refused_with_an_example(report: Report) -> None:
    with pytest.raises(SpecError) as refused:
        chart(report)
    assert refused.value.hint
    assert ":" in refused.value.hint


# Axes.


@pytest.mark.parametrize(
    ("values", "log"), [((1.0, 99.0), False), ((1.0, 100.0), True), ((0.0, 100.0), False), ((0.001, 3.0), True)]
)
def test_an_axis_is_logarithmic_over_two_decades(values: tuple[float, ...], log: bool) -> None:
    found = chart(along(*((result("a.one", value, best=True),) for value in values)))
    assert found.panels[0].y.log is log


def test_even_steps_stay_linear() -> None:
    rows = tuple(case((BASE,), noise_std=k / 10) for k in range(1, 200))
    assert not chart(Report("rdp", rows)).panels[0].x.log
    rows = tuple(case((BASE,), noise_std=2.0**k) for k in range(10))
    assert chart(Report("rdp", rows)).panels[0].x.log


def test_delta_is_drawn_over_thirty_decades_and_the_rest_is_said() -> None:
    shallow = [math.log(1e-3), math.log(1e-5)]
    deep = [-1000.0, -5000.0]
    found = chart(
        along(*((delta("a.deep", d, best=True), delta("a.shallow", s)) for d, s in zip(deep, shallow, strict=True)))
    )
    axis = found.panels[0].y
    assert axis.log
    assert axis.low == pytest.approx(1e-5)
    assert axis.low > 1e-3 / 10.0**DECADES
    assert set(curves(found)) == {"a.deep (below the axis)", "a.shallow"}
    assert any("10^-2171" in note for note in found.notes)


def test_a_delta_below_any_double_is_drawn_by_its_logarithm() -> None:
    found = chart(along((delta("a.one", -1000.0, best=True),), (delta("a.one", -5000.0, best=True),)))
    assert found.panels[0].y.label == "log10 delta"
    assert curves(found)["a.one"].ys == pytest.approx((-1000.0 / math.log(10), -5000.0 / math.log(10)), rel=1e-15)
    assert not found.panels[0].y.log


def test_a_delta_of_zero_is_a_gap() -> None:
    found = chart(along((delta("a.one", -3.0, best=True),), (delta("a.one", -math.inf, best=True),)))
    assert curves(found)["a.one"].ys == (math.exp(-3.0), None)
    assert any("exactly 0" in note for note in found.notes)


def test_delta_along_x() -> None:
    rows = tuple(case((BASE._replace(delta=10.0**-k, log_delta=-k * math.log(10)),), delta=10.0**-k) for k in (9, 6, 3))
    [panel] = chart(Report("rdp", rows)).panels
    assert panel.x == Axis("delta", True)
    assert panel.series[0].xs == pytest.approx((1e-9, 1e-6, 1e-3), rel=1e-12)
    rows = tuple(case((BASE._replace(delta=5e-324, log_delta=-k),), delta=f"10^-{k}") for k in (9000.0, 8000.0))
    [panel] = chart(Report("rdp", rows)).panels
    assert panel.x == Axis("log10 delta")
    assert panel.series[0].xs == pytest.approx((-9000.0 / math.log(10), -8000.0 / math.log(10)), rel=1e-12)


# Real reports.


def test_the_limits_are_those_of_the_registry() -> None:
    kinds = {name: bound.kind for name, bound in all_bounds().items()}
    for limit, (own, _) in limits().items():
        assert kinds[limit] == "asymptotic"
        assert kinds[own] in ("upper", "exact")


def tuned(noise: str) -> Report:
    fixed = {
        "lipschitz": 10.0, "smoothness": 0.5, "step_size": 0.1, "diameter": 1.0, "c1": 1e5, "c2": 2.0, "noise": noise,
    }  # fmt: skip
    cases = []
    for records in (10**6, 10**7, 10**8, 10**9):
        given = {**fixed, "records": records}
        cases.append(ask("shuffle", given, Question(epsilon=1.0), sources=dict.fromkeys(given, "flag"), notes=False))
    return Report("shuffle", tuple(cases))


def test_the_rate_of_sordello_figure_2() -> None:
    """1/|delta - delta*| grows like n: delta(n) and delta* as computed with 50 digits from the printed formulas."""
    report = tuned("laplace")
    found = chart(report)
    titles = {name: all_bounds()[name].title for name in ("shuffle.product", "shuffle.limit")}
    product = curves(found)[titles["shuffle.product"]].ys
    limit = curves(found)[titles["shuffle.limit"] + " (limit)"].ys
    assert product[:3] == pytest.approx((7.195035e-6, 6.185632e-6, 6.077427e-6), rel=1e-6)
    assert limit == pytest.approx([6.065307e-6] * 4, rel=1e-6)
    _, rate, noise = found.panels
    [line] = [series for series in rate.series if series.label.startswith(titles["shuffle.product"])]
    assert line.label.endswith("n^1.00 at the end")
    assert rate.y.log
    assert line.ys[0] == pytest.approx(1.0 / (7.195035e-6 - 6.065307e-6), rel=1e-5)
    assert noise.series[0].ys[:2] == pytest.approx((2.0121, 1.0811), rel=1e-4)
    for number, series in enumerate(found.panels[0].series):
        assert number < MAX_SERIES
        bound = series.label.partition(" (")[0]
        for x, y in zip(series.xs, series.ys, strict=True):
            [own] = [c for c in report.cases if c.inputs["records"][0] == x]
            values = {r.title: r.value for r in own.results}
            assert own.best is not None
            assert y == (own.best.value if bound == "best guarantee" else values[bound])


def test_a_logarithmic_rate_is_a_straight_line_over_ln_n() -> None:
    rate = chart(tuned("gaussian")).panels[1]
    assert not rate.y.log
    assert not any("grows" in series.label for series in rate.series)


def test_the_allocation_of_a_single_chain() -> None:
    report = dpcalc.shifted(steps=50, shift=0.1, contraction=0.9, step_size=1, noise_std=3, delta=1e-6)
    found = chart(report)
    best = report.cases[0].best
    assert best is not None
    allocation = (best.details or {})["allocation"]
    first, second = found.panels
    assert first.series[0].xs == tuple(range(1, 51))
    assert list(first.series[0].ys) == allocation["a"]
    assert list(second.series[0].ys) == allocation["z"]


def test_a_long_allocation_is_sampled() -> None:
    report = dpcalc.shifted(steps=200_000, shift=0.1, contraction=0.9, step_size=1, noise_std=3, delta=1e-6)
    best = report.cases[0].best
    assert best is not None
    allocation = (best.details or {})["allocation"]
    assert "a" not in allocation
    steps = allocation["sampled"]["steps"]
    assert (steps[0], steps[-1]) == (1, 200_000)
    assert steps == sorted(set(steps))
    assert len(steps) == len(allocation["sampled"]["a"]) == len(allocation["sampled"]["z"]) <= 1100
    assert chart(report).panels[0].series[0].xs == tuple(steps)


# The drawing.

DRAWN = Chart(
    "title$of$_one_word",
    "fixed",
    (
        Panel("", Axis("x", True), Axis("delta", True, 1e-9), (
            Series("a", (1, 10, 1000), (1e-3, None, 1e-9), "upper", True),
            Series("b (limit)", (1, 10, 1000), (1e-3, 0.0, 1e-300), "asymptotic"),
        )),
        Panel("second", Axis("x"), Axis("y"), (Series("a: more", (1, 2), (0.0, 0.0)),)),
        Panel("third", Axis("x"), Axis("log10 delta", False, -400.0), (Series("c", (1, 2), (-310.0, -1e200)),)),
    ),
    ("a remark",),
)  # fmt: skip
MAGIC = {"svg": b"<?xml", "png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-"}


@pytest.mark.parametrize("format", ["svg", "png", pytest.param("pdf", marks=pytest.mark.campaign)])
def test_files_are_what_they_say_and_the_same_every_time(format: str) -> None:
    data = figure.draw(DRAWN, format)
    assert data.startswith(MAGIC[format])
    assert figure.draw(DRAWN, format) == data
    assert not re.search(rb"20\d\d-\d\d-\d\dT", data)
    if format == "svg":
        assert ElementTree.fromstring(data).tag.endswith("svg")


def test_powers_of_ten_are_set_as_such_and_dollars_as_dollars() -> None:
    """A text is a comment with its source, then its glyphs one by one: 10^3 has three, a title all its characters."""
    text = figure.draw(DRAWN, "svg").decode()
    texts = dict(re.findall(r"<!-- (.*?) -->(.*?)(?=<!--|\Z)", text, re.DOTALL))
    assert texts[r"$\mathdefault{10^{3}}$"].count('<use xlink:href="#DejaVu') == 3
    [title] = [source for source in texts if source.startswith("title")]
    assert texts[title].count('<use xlink:href="#DejaVu') == len(DRAWN.title)


def test_a_users_settings_change_nothing() -> None:
    import matplotlib

    data = figure.draw(DRAWN, "svg")
    with matplotlib.rc_context({"lines.linewidth": 9.0, "font.size": 30.0, "svg.hashsalt": None}):
        assert figure.draw(DRAWN, "svg") == data
        assert matplotlib.rcParams["font.size"] == 30.0


def test_curves_differ_without_colour() -> None:
    assert len(set(figure.MARKERS)) == len(set(figure.COLOURS)) == len(set(terminal.MARKS)) == MAX_SERIES


def test_the_terminal_is_ascii_and_as_wide_as_asked() -> None:
    text = terminal.draw(DRAWN, 60)
    assert text.isascii()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 60
    assert "\x1b[" in terminal.draw(DRAWN, 60, color=True)
    assert not terminal.draw(DRAWN, 60, unicode=True).isascii()
    first = text.partition("second:")[0]
    rows = [line.partition("|")[2].removesuffix("|") for line in first.splitlines() if line.count("|") == 2]
    assert rows[0][0] == "*"  # the largest, at the left
    assert rows[-1].endswith("*")  # the least, at the right
    assert sum(row.count("*") for row in rows) == 2  # with a gap between them
