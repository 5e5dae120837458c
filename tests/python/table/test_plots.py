"""Pictures: what is drawn, where, and what is said without matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ptkit


@pytest.fixture
def pyplot() -> Iterator[Any]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")  # of other tests
    yield pyplot
    pyplot.close("all")


def texts(axes: Any) -> list[str]:
    return [one.get_text() for one in axes.get_legend().get_texts()]


def heights(axes: Any, layer: int) -> Any:
    """Lower and upper limits of what is drawn in a layer, at each point."""
    corners = axes.collections[layer].get_paths()[0].vertices
    return corners[:, 1].min(), corners[:, 1].max()


def test_functions(pyplot: Any, ask: Callable[..., Any]) -> None:
    functions = ask("functions")
    axes = functions.plot()
    bars = [bar.get_width() for bar in axes.patches]
    own = np.sort(np.asarray(functions["self_instructions"]))[::-1]
    assert bars == pytest.approx((100 * own / own.sum()).tolist())
    assert [label.get_text() for label in axes.get_yticklabels()] == functions.nlargest(
        14, "self_instructions"
    ).named("function")
    assert len(pyplot.get_fignums()) == 1
    axes.figure.canvas.draw()


def test_given_axes_are_drawn_on(pyplot: Any, clocked: Any) -> None:
    _, (above, below) = pyplot.subplots(2, 1)
    assert clocked.functions().plot(above, count=1) is above
    assert len(above.patches) == 1
    assert clocked.plot(ax=below) is below
    assert len(pyplot.get_fignums()) == 1
    assert clocked.functions(by="module").plot(above).get_title("left").startswith("Hottest files")


def test_work_by_time(pyplot: Any, clocked: Any) -> None:
    axes = clocked.plot(slots=10)
    assert texts(axes) == ["100.0% again.elf"]
    assert axes.get_xlabel() == "time (s)"
    assert axes.get_ylabel() == "branches per ms"
    begin, end = clocked._span()
    assert axes.get_xlim() == pytest.approx((0, (end + 1 - begin) / 1e9))
    slot = clocked.edges(by="time", bins=10)
    most = max(slot["count"][slot["bin"] == number].sum() for number in range(10))
    widths = np.diff([begin + (end + 1 - begin) * number // 10 for number in range(11)])
    assert heights(axes, 0)[1] == pytest.approx(most * 1e6 / widths[0], rel=0.02)
    axes.figure.canvas.draw()


def test_a_part_of_the_time(pyplot: Any, clocked: Any) -> None:
    begin, end = clocked._span()
    axes = clocked.plot(time=(begin, begin + 5000))
    assert axes.get_xlim() == pytest.approx((0, 5e-6))
    assert texts(clocked.between(percent=(0, 50)).plot()) == ["100.0% again.elf"]
    with pytest.raises(ptkit.ConfigError, match=r"outside the trace|nothing is selected"):
        clocked.plot(time=(end + 10**9, end + 2 * 10**9))


def test_work_by_instructions(pyplot: Any, clocked: Any, loop_trace: Any) -> None:
    axes = clocked.plot("instructions", slots=20)
    assert heights(axes, 0) == (0, 100)
    assert axes.get_ylabel() == "% of branches"
    assert texts(loop_trace.plot(by="instructions")) == ["100.0% [anon 0x1000]"]


@pytest.mark.parametrize("by", ["time", "instructions"])
def test_slices_are_drawn_from_their_first_to_their_last_branch(pyplot: Any, clocked: Any, by: str) -> None:
    events = clocked.events()
    part = clocked.slice(after=events[1:2], before=events[len(events) - 1 :])
    branches = part.branches()
    assert 4 < len(branches) < len(clocked.branches())
    axes = part.plot(by, slots=4)
    assert texts(axes) == ["100.0% again.elf"]
    limits, edges = part._phases(by, 4, {})
    assert edges["count"].sum() == len(branches)
    assert edges["bin"].max() == 3
    if by == "time":
        begin, end = int(branches["tsc"].min()), int(branches["tsc"].max()) + 1
        assert (limits[0], limits[-1]) == (begin, end)
        assert axes.get_xlim() == pytest.approx((0, (end - begin) / 1e9))
        whole = clocked.edges(by="time", bins=limits)
        for number in range(4):
            assert (
                edges["count"][edges["bin"] == number].sum() <= whole["count"][whole["bin"] == number].sum()
            )
    with pytest.raises(ptkit.ConfigError, match="no branch of the slice is selected"):
        part.plot(by, ip=0)


def test_a_slice_without_times(pyplot: Any, loop: Any, packets: Any, open_trace: Any) -> None:
    psb = packets.PSB + packets.MODE_64 + packets.fup(loop.BASE) + packets.PSBEND
    trace = open_trace(psb + packets.pge(loop.BASE) + packets.tnt("111111") * 40, images=loop.images())
    part = trace.slice(after=trace.events()[:1])
    with pytest.raises(ptkit.ConfigError, match=r"no times .*plot\(by=\"instructions\"\)"):
        part.plot()
    assert texts(part.plot("instructions")) == ["100.0% [anon 0x1000]"]


def test_files_beyond_the_colours_are_others(pyplot: Any) -> None:
    from ptkit.trace.plots import _by_file

    names = np.array([*"abcdefgh", None], object)
    edges = {
        "to_module": names,
        "count": np.array([9, 8, 7, 6, 5, 4, 3, 2, 50]),
        "bin": np.array([0, 1, 0, 1, 0, 1, 0, 1, 1], np.uint32),
    }
    files, counts = _by_file(edges, 2)  # type: ignore[arg-type]
    assert files == list("abcdef")
    assert counts.tolist() == [[9, 0, 7, 0, 5, 0, 3], [0, 8, 0, 6, 0, 4, 52]]


def test_without_times(pyplot: Any, loop: Any, packets: Any, open_trace: Any) -> None:
    psb = packets.PSB + packets.MODE_64 + packets.fup(loop.BASE) + packets.PSBEND
    trace = open_trace(psb + packets.pge(loop.BASE) + packets.tnt("111111") * 40, images=loop.images())
    with pytest.raises(ptkit.ConfigError, match=r"no times .*plot\(by=\"instructions\"\)"):
        trace.plot()
    assert trace.plot("instructions").get_title("left") == "Work by file"


def test_without_matplotlib(clocked: Any, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot in (clocked.plot, ask("functions").plot):
        with pytest.raises(ptkit.UnsupportedError, match=r"not installed: pip install ptkit\[plot\]"):
            plot()


def test_other_tables_have_no_picture(pyplot: Any, ask: Callable[..., Any]) -> None:
    with pytest.raises(ptkit.ConfigError, match=r"edges have no picture: trace\.functions\(\)\.plot\(\)"):
        ask("edges").plot()
    with pytest.raises(ptkit.ConfigError, match="lacks the columns function and self_instructions"):
        ask("functions", ["count"]).plot()
