"""Timelines of calls: their readers find the calls, times, depths and names of calls()."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from compiling import build
from executed_parts import executed_part
from readers import needs_fxt, needs_trace_processor, node_package, read_fxt, trace_processor
from rounds import needs_emulator
from small_elf import elf

import ptkit
from ptkit.cli import main
from ptkit.export.timelines import AXES
from ptkit.info import EMULATED_TIMES

# Recursion; threads; exceptions; coroutines, which switch stacks; signals.
PROGRAMS = ["recursion", "threads", "unwind", "coroutines", "signals"]
FORMATS = {
    "perfetto": ".pftrace",
    "fxt": ".fxt",
    "chrome": ".trace.json",
    "speedscope": ".speedscope.json",
}
#: Of the key under which trace_processor has arguments.
PREFIX = {"perfetto": "debug.", "fxt": "", "chrome": "args."}
CHROMIUM = shutil.which("chromium")
CALLS = "from slice where ifnull(category, '') != 'band'"
ERRORS = "select name, value from stats where severity = 'error' and value > 0"
INSTRUCTIONS = "positions are instructions of each thread in its stream: 1 ns is 1 instruction"


@pytest.fixture(scope="module", params=PROGRAMS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording made by the emulator."""
    folder = tmp_path_factory.mktemp(request.param)
    program = build(request.param, folder, "-g")
    return ptkit.record([program], output=folder / "out.ptk", backend="emulator", quiet=True)


@pytest.fixture(scope="module")
def recursion(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording of one thread."""
    folder = tmp_path_factory.mktemp("one")
    program = build("recursion", folder, "-g")
    return ptkit.record([program], output=folder / "out.ptk", backend="emulator", quiet=True)


def slices_of(trace: Any, by: str, **more: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Slices of the whole timeline, with begins and ends in nanoseconds."""
    columns = dict(trace.call_timeline(by, **more).columns())
    if by == "time":
        to_ns = trace.open_parts.times.to_ns
        for name in ("begin", "end"):
            columns[name] = to_ns(columns[name])
    return columns


def length_of(columns: dict[str, np.ndarray[Any, Any]]) -> int:
    return int((columns["end"] - columns["begin"]).sum())


def names_of(trace: Any) -> Counter[str]:
    """Full names of the functions of all calls."""
    calls = trace.calls(columns=["function"])
    names = calls.function_names()
    return Counter(names[number] for number in calls["function"].tolist())


# ---- what the readers find


@needs_emulator
@needs_trace_processor
@pytest.mark.parametrize("by", AXES)
@pytest.mark.parametrize("name", ["perfetto", "fxt", "chrome"])
def test_trace_processor_finds_every_call(recording: ptkit.Trace, tmp_path: Path, name: str, by: str) -> None:
    path = tmp_path / f"out{FORMATS[name]}"
    done = recording.export(path, of=by)
    assert (done.format, done.bytes) == (name, path.stat().st_size)
    assert (INSTRUCTIONS if by == "instructions" else EMULATED_TIMES) in done.notes
    prefix = PREFIX[name]

    def argument(key: str) -> str:
        return f"extract_arg(arg_set_id, '{prefix}{key}')"

    sums_of = ", ".join(f"sum({argument(key)})" for key in ("instructions", "branches", "exact"))
    answers = trace_processor(
        path,
        ERRORS,
        f"select count(*), sum(dur), max(depth) {CALLS}",
        f"select {sums_of} {CALLS}",
        f"select {argument('how')}, count(*) {CALLS} group by 1",
        f"select {argument('end_how')}, count(*) {CALLS} group by 1",
        "select tid, name from thread where tid < 4194304 and tid > 0",
    )
    errors, totals, sums, hows, ends, threads = answers.rows
    assert errors == []
    calls, columns = recording.calls(), slices_of(recording, by)
    unknown = 0 if by == "instructions" else len(calls) - len(columns["id"])
    assert totals == [(len(calls) - unknown, length_of(columns), int(columns["depth"].max()))]
    if unknown == 0:
        exact = int(np.asarray(calls["exact"]).sum())
        assert sums == [(int(calls["instructions"].sum()), int(calls["branches"].sum()), exact)]
        assert dict(hows) == plain_kinds(calls["how"], ptkit.CallKind.CALL, ptkit.CallKind)
        assert dict(ends) == plain_kinds(calls["end_how"], ptkit.CallEnd.RETURN, ptkit.CallEnd)
    assert {tid for tid, _ in threads} == {tid for _, tid, _ in recording.info.threads} & set(
        np.asarray(calls["tid"]).tolist()
    )


def plain_kinds(column: Any, usual: Any, kinds: Any) -> dict[str | None, int]:
    """Names of kinds with their numbers; the usual kind has none."""
    numbers = Counter(np.asarray(column).tolist())
    return {None if kind == usual else kinds(kind).name: count for kind, count in numbers.items()}


@needs_emulator
@needs_trace_processor
def test_names_in_perfetto_are_full_names_of_calls(recording: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "out.pftrace"
    recording.export(path)
    full = "extract_arg(arg_set_id, 'source.function_name')"
    shown, named = trace_processor(
        path,
        f"select name, count(*) {CALLS} group by name",
        f"select coalesce({full}, name), count(*) {CALLS} group by 1",
    ).rows
    assert sorted(Counter(dict(named)).values()) == sorted(names_of(recording).values())
    assert {name for name, _ in named} <= set(names_of(recording)) | {"[unknown]"}
    assert len(shown) >= len(named)  # functions with equal names keep different ones
    assert "main" in dict(shown)


@needs_emulator
@needs_fxt
@pytest.mark.parametrize("by", AXES)
def test_the_reader_of_fxt_finds_every_call(recording: ptkit.Trace, tmp_path: Path, by: str) -> None:
    done = recording.export(tmp_path / "out.fxt", of=by)
    found = read_fxt(tmp_path / "out.fxt")
    columns = slices_of(recording, by)
    assert found["count"] == len(columns["id"])
    assert found["total"] == length_of(columns)
    assert found["deepest"] == int(columns["depth"].max())
    assert sum(one["instructions"] for one in found["arguments"]) == int(columns["instructions"].sum())
    assert any(one.startswith("positions: ") for one in found["logs"])
    has_stacks = any("several stacks" in note for note in done.notes)
    assert has_stacks or found["kinds"]["Counter"] > 0


def nested(profile: dict[str, Any]) -> tuple[int, int, int]:
    """Number of slices, their length, and the greatest depth of an evented profile, which nests."""
    stack: list[tuple[int, int]] = []
    count = total = deepest = last = 0
    for event in profile["events"]:
        assert event["at"] >= last
        last = event["at"]
        if event["type"] == "O":
            stack.append((event["frame"], event["at"]))
            deepest = max(deepest, len(stack) - 1)
        else:
            frame, begin = stack.pop()
            assert frame == event["frame"]
            count, total = count + 1, total + event["at"] - begin
    assert stack == []
    assert profile["startValue"] <= last == profile["endValue"] or not profile["events"]
    return count, total, deepest


@needs_emulator
@pytest.mark.parametrize("by", AXES)
def test_speedscope_has_every_call(recording: ptkit.Trace, tmp_path: Path, by: str) -> None:
    path = tmp_path / "out.speedscope.json"
    recording.export(path, of=by, names="full")
    document = json.loads(path.read_text("ascii"))
    columns = slices_of(recording, by)
    bands = re.compile(r": (untraced|switched out|lost)$")
    found = [nested(one) for one in document["profiles"] if not bands.search(one["name"])]
    assert sum(count for count, *_ in found) == len(columns["id"])
    assert sum(total for _, total, _ in found) == length_of(columns)
    assert max(depth for *_, depth in found) == int(columns["depth"].max())
    units = {one["unit"] for one in document["profiles"]}
    assert units == {"nanoseconds" if by == "time" else "none"}
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    assert len(set(frames)) == len(frames)
    assert "main" in frames


@needs_emulator
@pytest.mark.skipif(node_package("speedscope") is None, reason="speedscope is not installed (npm)")
def test_speedscope_fits_its_schema(recording: ptkit.Trace, tmp_path: Path) -> None:
    package = node_package("speedscope")
    assert package is not None
    schema = json.loads((package / "dist/release/file-format-schema.json").read_text())
    recording.export(tmp_path / "out.speedscope.json")
    document = json.loads((tmp_path / "out.speedscope.json").read_text())
    for profile in document["profiles"]:  # the schema takes long for each event
        profile["events"] = profile["events"][:200]
    jsonschema.validate(document, schema)


@needs_emulator
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.skipif(node_package("speedscope") is None, reason="speedscope is not installed (npm)")
def test_the_page_of_speedscope_shows_the_profile(recursion: ptkit.Trace, tmp_path: Path) -> None:
    package = node_package("speedscope")
    assert package is not None
    assert CHROMIUM is not None
    recursion.export(tmp_path / "out.speedscope.json")
    data = base64.b64encode((tmp_path / "out.speedscope.json").read_bytes()).decode()
    # As its command line gives a file to the page.
    (tmp_path / "out.js").write_text(f"speedscope.loadFileFromBase64('out.speedscope.json', '{data}')")
    options = "--headless=new --no-sandbox --use-gl=angle --use-angle=swiftshader --dump-dom"
    command = [
        *(CHROMIUM, *options.split(), "--enable-unsafe-swiftshader", "--virtual-time-budget=60000"),
        f"--user-data-dir={tmp_path}/profile",
        f"file://{package}/dist/release/index.html#localProfilePath={tmp_path}/out.js",
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300)
    text = re.sub(r"<[^>]*>", " ", said.stdout)
    assert "recursion (1 ns is 1 instruction), recursion" in text, said.stderr[-2000:]
    assert "positions: instructions" in text  # the title


# ---- parts, and what is refused


@needs_emulator
def test_parts_and_selections_have_fewer_calls(recursion: ptkit.Trace, tmp_path: Path) -> None:
    def count(trace: Any, **more: Any) -> int:
        path = tmp_path / "out.speedscope.json"
        trace.export(path, **more)
        return sum(nested(one)[0] for one in json.loads(path.read_text())["profiles"])

    assert count(recursion) == len(recursion.calls())
    for symbol in ("main", "*"):
        assert count(recursion, symbol=symbol) == len(recursion.calls(symbol=symbol))
    part = executed_part(recursion, 20, 60)
    assert 0 < count(part) == len(part.calls()) < len(recursion.calls())
    events = recursion.events()
    piece = recursion.slice(after=events[:1])
    assert count(piece) == len(piece.calls())


@needs_emulator
def test_axes_are_refused_by_name(recursion: ptkit.Trace, tmp_path: Path, loop_trace: Any) -> None:
    with pytest.raises(ptkit.ConfigError, match="of='calls' is not one of 'time', 'instructions'"):
        recursion.export(tmp_path / "out.fxt", of="calls")
    with pytest.raises(ptkit.ConfigError, match="kind does not select calls"):
        recursion.export(tmp_path / "out.fxt", kind="CALL")
    with pytest.raises(ptkit.ConfigError, match=r"of='time': the trace has no times"):
        loop_trace.export(tmp_path / "out.fxt", of="time")
    assert INSTRUCTIONS in loop_trace.export(tmp_path / "out.fxt").notes
    assert [one.name for one in tmp_path.iterdir()] == ["out.fxt"]


@needs_emulator
def test_the_command_line_writes_timelines(
    recursion: ptkit.Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.pftrace"
    assert main(["export", recursion.source, "-o", str(out), "--of", "instructions", "--size", "50k"]) == 0
    said = capsys.readouterr()
    assert "are merged into" in said.err
    assert 0.95 * (50 << 10) <= out.stat().st_size <= 50 << 10
    assert main(["export", recursion.source, "-o", str(out), "--size", "10"]) == 2
    assert "size=10: the file has at least" in capsys.readouterr().err


# ---- sizes


@needs_emulator
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_files_have_the_size_that_is_asked_for(
    recursion: ptkit.Trace, tmp_path: Path, name: str, share: float
) -> None:
    whole = recursion.export(tmp_path / "whole", name)
    assert not any("merged" in note for note in whole.notes)
    size = int(whole.bytes * share)
    part = recursion.export(tmp_path / "part", name, size=size)
    assert 0.95 * size <= part.bytes <= size
    assert part.bytes == (tmp_path / "part").stat().st_size
    assert any("merged" in note for note in part.notes)
    assert b"merged" in (tmp_path / "part").read_bytes()
    same = recursion.export(tmp_path / "same", name, size=whole.bytes)
    assert same.bytes == whole.bytes
    assert same.notes == whole.notes


@needs_emulator
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("size", [8_192, 12_102, 20_000, 50_000])
def test_small_files_have_the_size_that_is_asked_for(
    recording: ptkit.Trace, tmp_path: Path, name: str, size: int
) -> None:
    done = recording.export(tmp_path / "out", name, size=size)
    whole = done.bytes < size and not any("merged" in note for note in done.notes)
    assert whole or 0.95 * size <= done.bytes <= size


@needs_emulator
@needs_trace_processor
def test_reduced_timelines_count_every_call(recursion: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "out.pftrace"
    whole = recursion.export(path)
    done = recursion.export(path, size=whole.bytes // 2)
    calls = recursion.calls()
    merged = "extract_arg(arg_set_id, 'debug.calls')"
    full = "coalesce(extract_arg(arg_set_id, 'source.function_name'), name)"
    count, names, kept = trace_processor(
        path,
        f"select sum(ifnull({merged}, 1)), count(*) {CALLS}",
        f"select count(*) {CALLS} and {merged} > 1 and name not like 'merged: %'",
        f"select {full}, dur {CALLS} and {merged} is null",
    ).rows
    assert count[0][0] == len(calls)
    assert count[0][1] < len(calls)
    assert names == [(0,)]
    # The slowest calls of each function are whole.
    slowest = int(
        re.findall(r"the ([0-9,]+) slowest of each function", " ".join(done.notes))[0].replace(",", "")
    )
    assert slowest > 0
    timeline = recursion.call_timeline("instructions")
    columns, functions = timeline.columns(), timeline.functions.named("function_full")
    lengths: dict[str, list[int]] = {}
    for number, length in zip(
        columns["function"].tolist(), (columns["end"] - columns["begin"]).tolist(), strict=True
    ):
        lengths.setdefault(functions[number], []).append(length)
    whole_calls = Counter(kept)
    for name, all_of in lengths.items():
        for length, times in Counter(sorted(all_of, reverse=True)[:slowest]).items():
            assert whole_calls[name, length] >= times, name


# ---- names


@needs_emulator
@needs_trace_processor
def test_functions_with_equal_names_stay_apart(tmp_path: Path) -> None:
    trace = ptkit.record(
        [build("same_names", tmp_path, "-g")], output=tmp_path / "out.ptk", backend="emulator", quiet=True
    )
    trace.export(tmp_path / "out.pftrace", names="short")
    (shown,) = trace_processor(tmp_path / "out.pftrace", f"select name, count(*) {CALLS} group by name").rows
    functions = trace.functions()
    expected = (functions["count"] + functions["begin_unseen"]).tolist()
    assert sorted(count for _, count in shown) == sorted(count for count in expected if count)


@pytest.mark.parametrize("name", FORMATS)
def test_hostile_names_are_escaped(tmp_path: Path, loop: Any, open_trace: Any, name: str) -> None:
    hostile = 'a"b\\c\n\x1b[31m\xe9'
    program = tmp_path / 'x\n"y'
    program.write_bytes(elf(loop.CODE, loop.BASE, hostile))
    trace = open_trace(loop.stream(5), images=[program])
    out = tmp_path / f"out{FORMATS[name]}"
    trace.export(out)
    shown = hostile.replace("\n", "\\x0a").replace("\x1b", "\\x1b")
    if name == "speedscope":
        frames = json.loads(out.read_text())["shared"]["frames"]
        assert {frame["name"] for frame in frames} == {shown}
    elif name == "chrome":
        events = json.loads(out.read_text())["traceEvents"]
        assert {one["name"] for one in events if one["ph"] == "B"} == {shown}
    else:
        assert shown.encode() in out.read_bytes()
    assert b"\x1b[" not in out.read_bytes()
