"""Data of pages: what a reader finds is what the trace has."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from compiling import build
from rounds import needs_emulator
from view_pages import PageData

import ptkit
from ptkit.export.timelines import AXES
from ptkit.view.first_screen import COLUMNS, DEPTHS, NONE

# Recursion; threads; exceptions; coroutines, which switch stacks; signals.
PROGRAMS = ["recursion", "threads", "unwind", "coroutines", "signals"]
_AS_THEY_ARE = (
    *("track", "depth", "calls", "covered", "instructions", "branches", "begin_error", "end_error"),
    *("flags", "how", "end_how", "has_loss", "id"),
)


@pytest.fixture(scope="module", params=PROGRAMS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording made by the emulator."""
    folder = tmp_path_factory.mktemp(request.param)
    program = build(request.param, folder, "-g")
    return ptkit.record([program], output=folder / "out.ptk", backend="emulator", quiet=True)


@pytest.fixture(scope="module")
def recursion(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording of one thread, with its source."""
    folder = tmp_path_factory.mktemp("one")
    program = build("recursion", folder, "-g")
    return ptkit.record([program], output=folder / "out.ptk", backend="emulator", quiet=True)


@needs_emulator
@pytest.mark.parametrize("by", AXES)
def test_columns_are_those_of_the_timeline(recording: ptkit.Trace, by: str) -> None:
    timeline = recording.call_timeline(by)
    wanted, page = timeline.columns(), PageData(recording.view(of=by))
    run, found = page.runs[0], page.columns()
    origin = np.uint64(int(run["origin"]))
    for name in _AS_THEY_ARE:
        assert np.array_equal(found[name], wanted[name]), name
    assert np.array_equal(found["begin"] + origin, wanted["begin"])
    assert np.array_equal(found["duration"], wanted["end"] - wanted["begin"])
    assert int((found["begin"] + found["duration"]).max()) <= run["range"][1]
    assert run["by"] == by
    names = [name or "[unknown]" for name in timeline.functions.named("function_full")]
    functions = run["functions"]
    full = [one or name for one, name in zip(functions["full"], functions["name"], strict=True)]
    for number, of in set(zip(found["function"].tolist(), wanted["function"].tolist(), strict=True)):
        assert full[number] == names[of] or names[of] in full[number]
    assert [chunk["rows"] for chunk in run["chunks"]] == [len(found["id"])]


@needs_emulator
@pytest.mark.parametrize("by", AXES)
def test_functions_have_the_sums_of_functions(recording: ptkit.Trace, by: str) -> None:
    rows = recording.functions()
    functions = PageData(recording.view(of=by)).runs[0]["functions"]
    assert functions["calls"] == rows["count"].tolist()
    assert functions["self_instructions"] == np.asarray(rows["self_instructions"]).tolist()
    assert functions["instructions"] == rows["instructions"].tolist()
    assert functions["exact"] == np.asarray(rows["count_exact"]).astype(int).tolist()
    modules = [functions["modules"][number] if number >= 0 else None for number in functions["module"]]
    assert modules == [module or None for module in rows.named("module")]
    assert len(set(functions["name"])) == len(functions["name"])
    if by == "time":
        assert functions["least"] == functions["time_ns"] == rows.named("least_ns")
        assert functions["most"] == rows.named("most_ns")
    else:
        assert {"least", "most", "time_ns"}.isdisjoint(functions)


@needs_emulator
@pytest.mark.parametrize("by", AXES)
def test_tracks_have_threads_bands_counts_and_the_first_screen(recording: ptkit.Trace, by: str) -> None:
    timeline, page = recording.call_timeline(by), PageData(recording.view(of=by))
    run, columns = page.runs[0], page.columns()
    origin = int(run["origin"])
    assert len(run["tracks"]) == len(timeline.tracks)
    threads = [track["thread"] for track in run["tracks"]]
    assert threads == sorted(threads)
    for number, (track, of) in enumerate(zip(run["tracks"], timeline.tracks, strict=True)):
        own = columns["track"] == number
        assert [track[name] for name in ("pid", "tid", "cpu", "stream", "stack")] == [
            getattr(of, name) for name in ("pid", "tid", "cpu", "stream", "stack")
        ]
        assert track["slices"] == np.count_nonzero(own)
        assert track["depth"] == int(columns["depth"][own].max()) + 1
        begin, end = columns["begin"][own], (columns["begin"] + columns["duration"])[own]
        assert track["range"] == [int(begin.min()), int(end.max())]
        bands = zip(*(one.tolist() for one in timeline.bands(number)), strict=True)
        assert track["bands"] == [[first - origin, last - origin, kind] for first, last, kind in bands]
        position, branches = timeline.counts(number)
        assert [one[0] for one in track["counts"]] == [at - origin for at in position.tolist()]
        assert [one[1] for one in track["counts"]] == branches.tolist()
        wanted = first_screen(columns, own, run["range"][1])
        assert np.array_equal(page.cells(track), wanted[: min(track["depth"], DEPTHS)])


def first_screen(columns: dict[str, Any], own: Any, length: int) -> Any:
    """Cells with the function of the longest slice, found slice by slice."""
    cells = np.full((DEPTHS, COLUMNS), NONE, np.uint16)
    longest = np.full((DEPTHS, COLUMNS), -1)
    names = ("depth", "begin", "duration", "function")
    for depth, begin, duration, function in zip(
        *(columns[name][own].tolist() for name in names), strict=True
    ):
        if depth >= DEPTHS:
            continue
        last = begin + duration - (duration > 0)
        first, end = (min(int(at / max(length, 1) * COLUMNS), COLUMNS - 1) for at in (begin, last))
        part = slice(first, end + 1)
        longer = duration >= longest[depth, part]
        longest[depth, part][longer] = duration
        cells[depth, part][longer] = function
    return cells


# ---- details


@needs_emulator
@pytest.mark.parametrize("by", AXES)
def test_lengths_and_slowest_calls_are_those_of_calls(recording: ptkit.Trace, by: str) -> None:
    page = PageData(recording.view(of=by))
    calls = recording.calls()
    if by == "time":
        calls = calls[calls["time_known"] & calls["end_time_known"]]
    origin, functions = int(page.runs[0]["origin"]), page.runs[0]["functions"]
    details = page.details()
    assert sorted(details) == list(range(len(functions["name"])))
    numbers = Counter(calls.function_names())
    for number, detail in details.items():
        full = functions["full"][number] or functions["name"][number]
        if numbers[full] != 1:
            continue  # several functions of one name
        own = calls[calls.data.arrays["function"] == calls.function_names().index(full)]
        slowest = own.slowest(20, by)
        assert [one["id"] for one in detail["slowest"]] == slowest["id"].tolist()
        assert [one["instructions"] for one in detail["slowest"]] == slowest["instructions"].tolist()
        if by == "time":
            assert [one["duration"] for one in detail["slowest"]] == slowest.lengths(by)[0].tolist()
            assert [one["begin"] + origin for one in detail["slowest"]] == slowest["tsc"].tolist()
            assert sum(detail["histogram"]["counts"]) == len(own)
            assert detail["histogram"]["of"] == "ns"
            continue
        histogram = own.histogram()
        assert detail["histogram"] == {
            "edges": histogram.limits.tolist(),
            "counts": histogram.counts.tolist(),
            "of": "instructions",
        }


@needs_emulator
@pytest.mark.parametrize("by", AXES)
def test_slow_calls_are_compared_as_by_compare(recursion: ptkit.Trace, by: str) -> None:
    page = PageData(recursion.view(of=by))
    functions = page.runs[0]["functions"]
    compared = 0
    numbers = Counter(recursion.calls().function_names())
    for number, detail in page.details().items():
        name = functions["full"][number] or functions["name"][number]
        if detail["slow"] is None or numbers[name] != 1:
            continue  # several functions of one name are compared together
        found = recursion.compare(name, by=by, sample=0)
        compared += 1
        wanted = [one for one in found.functions if one.extra > 0]
        rows = detail["slow"]["rows"]
        assert [row["extra"] for row in rows] == pytest.approx(
            [one.extra for one in wanted[: len(rows)]], abs=0.5
        )
        assert len(rows) == min(len(wanted), 12)
        assert f"{len(found.slow):,} slow one" in detail["slow"]["text"]
        if by == "instructions":
            assert f"{found.slow_from:,} instructions or more" in detail["slow"]["text"]
    assert compared > 3


@needs_emulator
def test_code_has_the_counts_of_instructions(recursion: ptkit.Trace) -> None:
    rows = recursion.instructions(columns=["ip"])
    located = recursion.locate(rows["ip"], space=rows["space"])
    wanted = Counter(zip(located.file.tolist(), located.rva.tolist(), strict=True))
    page = PageData(recursion.view())
    functions, details = page.runs[0]["functions"], page.details()
    files = {(path or "").rsplit("/", 1)[-1]: path for path in located.file.tolist()}
    seen = 0
    for number, detail in details.items():
        if detail["code"] is None:
            continue
        path = files[functions["modules"][functions["module"][number]]]
        assert detail["code"]["bytes_missing"] == 0
        for at, text, count, _, *directions in detail["code"]["instructions"]:
            assert wanted[(path, int(at, 16))] == count
            assert text
            if directions:
                assert sum(directions) == count
            seen += count
    assert seen / len(rows) > 0.99  # PLT stubs are in no function


@needs_emulator
def test_source_lines_have_the_counts_of_lines(recursion: ptkit.Trace) -> None:
    lines = recursion.functions("line")
    wanted: Counter[tuple[str, int]] = Counter()
    for path, line, count in zip(lines.named("source"), lines.named("line"), lines["count"], strict=True):
        wanted[(path, line)] += int(count)
    page = PageData(recursion.view())
    details = page.details()
    shown = {name: details[number] for number, name in enumerate(page.runs[0]["functions"]["name"])}
    source = shown["two"]["source"]
    counted = 0
    for line, (text, count) in enumerate(
        zip(source["lines"], source["counts"], strict=True), source["first"]
    ):
        if count is not None:
            counted += 1
            assert count == wanted[(source["path"], line)], text
    assert counted > 1
    for instruction in shown["two"]["code"]["instructions"]:
        assert -1 <= instruction[3] < len(source["lines"])
        if instruction[3] >= 0:
            assert source["counts"][instruction[3]] is not None


def test_code_is_text_at_each_address(loop: Any, loop_trace: ptkit.Trace) -> None:
    session = loop_trace.opened.session
    ips = np.array([loop.JNZ, loop.BASE, loop.BASE + (1 << 30)], np.uint64)
    texts = session.disassemble(ips, np.zeros(3, np.uint32), 64)
    assert texts == [text_of(loop, loop.JNZ), text_of(loop, loop.BASE), ""]
    with pytest.raises(ValueError, match="differ in length"):
        session.disassemble(ips, np.zeros(2, np.uint32), 64)


def text_of(loop: Any, ip: int) -> str:
    return ptkit._core.disassemble(loop.CODE[ip - loop.BASE :], ip, 64)
