"""Ranges of the instructions of a thread: rows are those of the whole tables, cut by hand."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_recordings import open_recording

import ptkit
from ptkit.cli import main

# Streams with one thread and with several, user code, and kernel code without a known thread.
CHOSEN = [
    ("thread", {}),
    ("timed", {"tid": 108}),
    ("all", {"tid": 99}),
    ("all", {"tid": 96, "stream": 1}),
    ("both", {"tid": 102}),
    ("both", {"space": 7}),
]
PARTS = 7


@pytest.fixture(scope="module", params=CHOSEN, ids=lambda one: f"{one[0]}-{one[1]}")
def chosen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    name, query = request.param
    return open_recording(name, tmp_path_factory.mktemp(name)), query


def limits(trace: ptkit.Trace, query: dict[str, Any]) -> list[int]:
    """Ends of adjacent ranges, which cover all: at odd places, and where others are executed."""
    before = trace.instructions(columns=["instruction"], **query)["instruction"]
    count = len(before)
    assert count > 1000
    switches = 1 + np.flatnonzero(np.diff(before) > 1)
    odd = [(count * part // PARTS) ^ 1 for part in range(1, PARTS)]
    return sorted({0, *odd, *switches[:2].tolist(), *switches[-2:].tolist(), count})


def numbers(table: Any, whole: Any) -> np.ndarray[Any, Any]:
    """How many instructions of the thread came before each row; `whole`: all of its instructions."""
    return np.searchsorted(whole["instruction"], table["instruction"])


def test_rows_are_cut_by_hand(chosen: Any) -> None:
    trace, query = chosen
    whole = trace.instructions(columns=["ip", "tsc", "instruction"], **query)
    branches = trace.branches(columns=["from_ip", "to_ip", "kind", "offset", "instruction"], **query)
    events = trace.events(columns=["kind", "offset", "instruction"], **query)
    for begin, end in zip(limits(trace, query)[:-1], limits(trace, query)[1:], strict=True):
        for view, more in (
            (trace.between(instructions=(begin, end)), {}),
            (trace, {"instructions": (begin, end)}),
        ):
            how = {**query, **more}
            found = view.instructions(columns=["ip", "tsc"], **how)
            assert found["ip"].tolist() == whole["ip"][begin:end].tolist()
            assert found["tsc"].tolist() == whole["tsc"][begin:end].tolist()
            parts = list(view.iter_instructions(columns=["ip"], rows=999, reuse=True, **how))
            assert sum(map(len, parts)) == end - begin
            inside = (numbers(branches, whole) >= begin) & (numbers(branches, whole) < end)
            of_range = view.branches(columns=["from_ip", "to_ip", "offset"], **how)
            for name in of_range.columns:
                assert of_range[name].tolist() == branches[name][inside].tolist(), name
            inside = (numbers(events, whole) >= begin) & (numbers(events, whole) < end)
            assert view.events(**how)["offset"].tolist() == events["offset"][inside].tolist()
            blocks = view.blocks(columns=["instructions"], **how)["instructions"]
            assert end - begin <= blocks.sum() <= end - begin + blocks[0] + blocks[-1]


def test_calls_and_sums_are_those_of_the_instructions(chosen: Any) -> None:
    trace, query = chosen
    of_all: dict[str, list[int]] = {}
    for begin, end in zip(limits(trace, query)[:-1], limits(trace, query)[1:], strict=True):
        view = trace.between(instructions=(begin, end))
        calls = view.calls(columns=["id", "parent", "instructions", "self_instructions"], **query)
        assert calls["self_instructions"].sum() == end - begin
        parts = view.iter_calls(columns=["self_instructions"], **query)
        assert sum(int(part["self_instructions"].sum()) for part in parts) == end - begin
        functions = view.functions(**query)
        assert view.call_tree(**query)["self_instructions"].sum() == end - begin
        assert functions["crossing"].sum() > 0
        rows = zip(functions["count"].tolist(), functions["self_instructions"].tolist(), strict=True)
        for name, sums in zip(functions["function_full"].tolist(), rows, strict=True):
            of_all[name] = [a + b for a, b in zip(of_all.get(name, [0, 0]), sums, strict=True)]
    functions = trace.functions(**query)
    expected: dict[str, list[int]] = {}
    rows = zip(functions["count"].tolist(), functions["self_instructions"].tolist(), strict=True)
    for name, sums in zip(functions["function_full"].tolist(), rows, strict=True):
        expected[name] = [a + b for a, b in zip(expected.get(name, [0, 0]), sums, strict=True)]
    assert of_all == expected


def test_edges_are_those_of_the_branches(chosen: Any) -> None:
    trace, query = chosen
    begin, end = limits(trace, query)[2:4]
    view = trace.between(instructions=(begin, end))
    names = ["from_ip", "to_ip", "kind", "space"]
    branches = view.branches(columns=[*names, "flags"], **query)
    known = branches["from_known"] & branches["to_known"]
    rows = list(zip(*(branches[name][known].tolist() for name in names), strict=True))
    edges = view.edges(**query)
    ends = zip(*(edges[name].tolist() for name in names), strict=True)
    found = dict(zip(ends, edges["count"].tolist(), strict=True))
    assert found == {one: rows.count(one) for one in set(rows)}
    assert "bin" not in edges.columns
    assert sum(int(part["count"].sum()) for part in view.iter_edges(**query)) == len(rows)


def test_ranges_that_meet_and_ranges_beyond_the_end(chosen: Any) -> None:
    trace, query = chosen
    count = limits(trace, query)[-1]
    view = trace.between(instructions=(100, None))
    found = view.instructions(columns=["ip"], instructions=(None, 150), **query)
    whole = trace.instructions(columns=["ip"], **query)
    assert found["ip"].tolist() == whole["ip"][100:150].tolist()
    for beyond in ((count + 5, None), (50, 50), (count, count + 9)):
        assert len(trace.instructions(columns=["ip"], instructions=beyond, **query)) == 0
        assert trace.functions(instructions=beyond, **query)["self_instructions"].sum() == 0
        assert trace.edges(instructions=beyond, **query)["count"].sum() == 0
    both = view.instructions(columns=["ip"], instructions=(0, 50), **query)
    assert len(both) == 0


def test_an_index_and_other_engines_change_nothing(chosen: Any, tmp_path: Path) -> None:
    trace, query = chosen
    begin, end = limits(trace, query)[2:4]
    trace.save(tmp_path / "saved.ptk")

    def found(**options: Any) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptkit.PtkitWarning)  # files are missing
            other = ptkit.open(tmp_path / "saved.ptk", **options)
        part = other.between(instructions=(begin, end))
        tables = part.functions(**query), part.branches(**query), part.edges(**query), part.blocks(**query)
        return [table[name].tolist() for table in tables for name in table.columns]

    expected = found()
    assert found(engine="simple") == expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        ptkit.open(tmp_path / "saved.ptk").index()
    assert found() == expected


@pytest.mark.parametrize("suffix", [".folded", ".pftrace", ".drcov", ".callgrind", ".pb.gz"])
def test_exports_take_a_range(suffix: str, of_processors: ptkit.Trace, tmp_path: Path) -> None:
    """Those of a part, and those of a selection, have the same bytes."""
    part, whole = tmp_path / f"part{suffix}", tmp_path / f"whole{suffix}"
    of_processors.between(instructions=(1000, 2000)).export(part, tid=99)
    of_processors.export(whole, tid=99, instructions=(1000, 2000))
    assert part.read_bytes() == whole.read_bytes()
    if suffix == ".folded":
        assert sum(int(line.rsplit(" ", 1)[1]) for line in part.read_text().splitlines()) == 1000


@pytest.fixture(scope="module")
def of_processors(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """Two processors, each with two threads, one of which is on both."""
    return open_recording("all", tmp_path_factory.mktemp("all"))


def test_each_thread_has_instructions_of_its_own(of_processors: ptkit.Trace) -> None:
    """Ranges of other threads were asked for before."""
    for query in ({"tid": 96, "stream": 0}, {"tid": 99}, {"tid": 96, "stream": 1}, {"tid": 97}):
        whole = of_processors.instructions(columns=["ip"], **query)["ip"].tolist()
        found = of_processors.instructions(columns=["ip"], instructions=(1000, 2000), **query)
        assert found["ip"].tolist() == whole[1000:2000]


def test_a_stream_of_one_thread_is_one_without_switches(loop: Any) -> None:
    """Of the streams that name their thread, the second one has another one, too; the third one could."""
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.add_stream(loop.stream(10), pid=1, tid=1)
    bundle.add_stream(loop.stream(10, psb_every=2), pid=1, tid=2, switches=[(1300, 1, 3, 0)])
    bundle.add_stream(loop.stream(10, psb_every=2), pid=1, tid=4, switches=[(1 << 40, 1, 3, 0)])
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    assert len(trace.instructions(instructions=(3, 7), stream=0)) == 4
    with pytest.raises(ptkit.ConfigError, match="stream 1 has instructions of several threads"):
        trace.instructions(instructions=(3, 7))
    whole = trace.instructions(columns=["ip"], tid=3)["ip"].tolist()
    assert len(whole) > 7
    assert trace.instructions(columns=["ip"], tid=3, instructions=(3, 7))["ip"].tolist() == whole[3:7]


@pytest.mark.parametrize(
    ("message", "read"),
    [
        ("several threads.*tid= ", lambda trace: trace.functions(instructions=(0, 9))),
        ("several threads", lambda trace: trace.between(instructions=(0, 9)).branches(stream=1)),
        ("streams 0, 1.*stream= ", lambda trace: trace.functions(instructions=(3500, 4000), tid=96)),
        ("packets are not selected", lambda trace: trace.packets(instructions=(0, 9), tid=99)),
        ("ptwrites are not", lambda trace: trace.ptwrites(instructions=(0, 9), tid=99)),
        ("times or at instructions", lambda trace: trace.calls(instructions=(0, 9), time=(0, None), tid=99)),
        ("whole_calls", lambda trace: trace.calls(instructions=(0, 9), whole_calls=True, tid=99)),
        ("has no phases", lambda trace: trace.edges(instructions=(0, 9), by="time", bins=3, tid=99)),
        ("threads have all", lambda trace: trace.threads(instructions=(0, 9))),
        ("leave it out", lambda trace: trace.compare("main", instructions=(0, 9))),
        ("around", lambda trace: trace.around(1, 1, instructions=(0, 9))),
        ("a slice has", lambda trace: part_of(trace).branches(instructions=(0, 9))),
        ("one interval", lambda trace: trace.between(0, 9, instructions=(0, 9))),
        ("must be \\(first, end\\)", lambda trace: trace.between(instructions=7)),
        ("must not be above", lambda trace: trace.between(instructions=(9, 7))),
        ("first=-1", lambda trace: trace.between(instructions=(-1, 7))),
        ("end='x'", lambda trace: trace.branches(instructions=(1, "x"))),
    ],
)
def test_what_cannot_be_selected_is_refused(message: str, read: Any, of_processors: ptkit.Trace) -> None:
    with pytest.raises(ptkit.ConfigError, match=message):
        read(of_processors)


def part_of(trace: ptkit.Trace) -> Any:
    return trace.slice(after=trace.events(stream=0)[:1])


def test_errors_and_gaps_are_those_of_the_range(loop: Any, packets: Any) -> None:
    """Two overflows among ten rounds of a loop."""
    begin = loop.header(None, 1000) + packets.pge(loop.BASE)
    rounds = (packets.tnt("111110") + packets.tip(loop.BASE)) * 5
    lost = packets.OVF + packets.fup(loop.BASE)
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.add_stream(begin + rounds + lost + rounds + lost + rounds)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    at = trace.gaps["instruction"].tolist()
    assert len(at) >= 2
    for first, end in ((0, at[-1]), (at[-1], None), (at[0] + 1, at[-1] + 1)):
        view = trace.between(instructions=(first, end))
        wanted = [one for one in at if first <= one < (end or 2**63)]
        assert view.gaps["instruction"].tolist() == wanted
        assert view.branches().gaps["instruction"].tolist() == wanted


@pytest.mark.parametrize("words", [("--tid", "99"), ("--tid", "96", "--stream", "1")])
def test_the_command_line_selects_the_same(
    words: tuple[str, ...], of_processors: ptkit.Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.ptk"
    of_processors.save(path)
    query: Any = {name[2:]: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
    view = of_processors.between(instructions=(1000, 2000))
    for verb, count in (
        ("instructions", 1000),
        ("branches", len(view.branches(**query))),
        ("events", len(view.events(**query))),
        ("edges", len(view.edges(**query))),
        ("calls", len(view.calls(**query))),
        ("functions", len(view.functions(**query))),
        ("tree", len(view.call_tree(**query))),
    ):
        more = ["--all"] if verb in ("calls", "functions", "tree") else []
        arguments = [verb, str(path), *words, "--instructions", "1,000-2000", "--json", *more]
        assert main(arguments) == 0, capsys.readouterr().err
        assert len(capsys.readouterr().out.splitlines()) == 1 + count, verb


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["functions", "--instructions", "5"], "'5' is not a range of instructions: write FROM-TO"),
        (["functions", "--instructions", "-"], "is not a range of instructions"),
        (["functions", "--instructions", "9-5"], "FROM must not be above TO"),
        (
            ["functions", "--instructions", "1-5"],
            "--instructions: stream 0 has instructions of several threads",
        ),
        (["packets", "--tid", "99", "--instructions", "1-5"], "--instructions: packets are not selected"),
        (["tree", "--tid", "99", "--instructions", "1-5", "--whole-calls"], "has parts of calls"),
        (["calls", "--around", "5", "--instructions", "1-5"], "--instructions does not go with --around"),
    ],
)
def test_the_command_line_refuses(
    arguments: list[str],
    message: str,
    of_processors: ptkit.Trace,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "all.ptk"
    of_processors.save(path)
    verb, *options = arguments
    with suppress(SystemExit):  # of what the parser refuses
        assert main([verb, str(path), *options]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if ": error: " in line]
    assert len(said) == 1
    assert message in said[0]
