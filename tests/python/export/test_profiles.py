"""Folded stacks, and profiles of pprof and Callgrind: their readers show the sums of functions()."""

from __future__ import annotations

import gzip
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build, compiled_by
from executed_parts import executed_part
from profile_files import (
    GO,
    Callgrind,
    annotated,
    go_top,
    needs_annotate,
    needs_go,
    read_callgrind,
    read_folded,
    read_pprof,
)
from rounds import needs_emulator
from small_elf import elf

import ptkit
from ptkit.cli import main
from ptkit.export import frame_rows
from ptkit.export.contexts import contexts_of
from ptkit.export.function_names import distinct
from ptkit.export.protobuf import varint, varint_field

# Recursion; inlined functions; exceptions; threads; JIT code; coroutines.
PROGRAMS = ["recursion", "inlines", "unwind", "threads", "jit", "coroutines"]
FORMATS = ["folded", "pprof", "callgrind"]


@pytest.fixture(scope="module", params=PROGRAMS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording of a program with debug information, made by the emulator."""
    folder = tmp_path_factory.mktemp(request.param)
    program = build(request.param, folder, "-g")
    argv = [program, folder / "counts"] if request.param == "inlines" else [program]
    trace = ptkit.record(argv, output=folder / "out.ptk", backend="emulator", quiet=True)
    assert len(trace.errors) == 0
    return trace


def sums_of(functions: ptkit.Table, *columns: str) -> Counter[tuple[Any, ...]]:
    """Rows of a table of functions by full name and columns: functions may have equal names."""
    names = ("function_full", *columns)
    return Counter(zip(*(functions[name].tolist() for name in names), strict=True))


def undecided(notes: Sequence[str]) -> bool:
    """Whether the only note of a profile is that numbers may be wrong; there may be none."""
    assert all("undecided frames (count_exact is False)" in note for note in notes)
    return bool(notes)


# ---- folded


@needs_emulator
@pytest.mark.parametrize("inlines", [False, True])
def test_folded_stacks_are_the_call_tree(recording: ptkit.Trace, tmp_path: Path, inlines: bool) -> None:
    tree = recording.call_tree(inlines=inlines)
    parents = np.where(tree["parent_known"], tree["parent"].astype(np.int64), -1).tolist()
    for of, column in (("instructions", "self_instructions"), ("calls", "count")):
        path = tmp_path / f"{of}.folded"
        done = recording.export(path, of=of, names="full", inlines=inlines)
        found = read_folded(path)
        assert done.bytes == path.stat().st_size
        assert undecided(done.notes) == (not tree["count_exact"].all())
        assert sum(found.values()) == int(tree[column].sum())
        assert sorted(found.values()) == sorted(tree[column][tree[column] != 0].tolist())
        wholes: list[tuple[str, ...]] = []
        for name, inside, parent in zip(
            tree["function_full"].tolist(), tree["is_inlined"].tolist(), parents, strict=True
        ):
            shown = f"{name} [inlined]" if inside else name
            wholes.append((*(wholes[parent] if parent >= 0 else ()), shown))
        # Functions with equal names have more after them in the file.
        told = {name for stack in found for name in stack}
        expected = {
            stack: number
            for stack, number in zip(wholes, tree[column].tolist(), strict=True)
            if number and told.issuperset(stack)
        }
        assert len(expected) > len(found) / 2
        assert {stack: found.get(stack) for stack in expected} == expected


@needs_emulator
def test_folded_times_add_up(recording: ptkit.Trace, tmp_path: Path) -> None:
    done = recording.export(tmp_path / "out.folded", of="time")
    assert done.notes[-1] == "emulated: compare instructions, not durations"
    calls = recording.calls()
    known = calls["time_known"] & calls["end_time_known"]
    outermost = known & ~calls["parent_known"]
    length_ns = recording.open_parts.context.length_ns
    assert length_ns is not None
    ticks = (calls["end_tsc"] - calls["tsc"])[outermost].astype(np.int64)
    total = int(length_ns(ticks).sum())
    found = sum(read_folded(tmp_path / "out.folded").values())
    # Contexts are rounded. Calls may end after their callers, as far as times are known.
    assert total - len(recording.call_tree()) <= found
    assert found <= 1.00001 * total or bool((calls["switched"] > 0).any())


# ---- pprof


@needs_emulator
@pytest.mark.parametrize("inlines", [False, True])
def test_pprof_has_the_sums_of_functions(recording: ptkit.Trace, tmp_path: Path, inlines: bool) -> None:
    path = tmp_path / "out.pb.gz"
    done = recording.export(path, inlines=inlines)
    assert done.bytes == path.stat().st_size
    tree = recording.call_tree(inlines=inlines)
    assert undecided(done.notes) == (not tree["count_exact"].all())
    found = read_pprof(path)
    assert found.types == [("instructions", "count"), ("calls", "count"), ("samples", "count")]
    own, whole = found.sums("instructions")
    count, _ = found.sums("calls")
    assert found.sums("samples") == (own, whole)
    rows = Counter(
        (system, own[number], whole[number], count[number])
        for number, (_, system, _, _) in found.functions.items()
        if whole[number] or count[number]
    )
    functions = recording.functions(inlines=inlines)
    expected = sums_of(functions, "self_instructions", "instructions", "count")
    assert rows == Counter({row: n for row, n in expected.items() if row[2] or row[3]})
    names = {name for name, *_ in found.functions.values()}
    if inlines:  # functions that are called and inlined have one name
        assert len(names) >= len({system for _, system, _, _ in found.functions.values()})
    else:
        assert len(names) == len(found.functions)


@needs_emulator
def test_pprof_has_files_lines_and_call_sites(recording: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    recording.export(path)
    found = read_pprof(path)
    files = dict(recording.info.files)
    mapped = {name: build_id for name, build_id, _, _ in found.mappings.values()}
    assert {name: build_id for name, build_id in mapped.items() if not name.startswith("[anon")} == files
    for mapping, address, _, _ in found.locations.values():
        if mapping:
            _, _, begin, end = found.mappings[mapping]
            assert begin <= address < end
    calls = recording.calls()
    known = calls["call_known"] & calls["parent_known"]
    above = {one for locations, _ in found.samples for one in locations[1:]}
    sites = {found.locations[one][1] for one in above}
    assert set(calls["call_ip"][known].tolist()) <= sites
    with_line = 0
    for one in sorted(above):
        _, address, function, line = found.locations[one]
        chain = recording.inlines(address) if address else []
        if chain and chain[-1].line:
            assert line == chain[-1].line
            assert chain[-1].file is not None
            with_line += 1
        assert found.functions[function][1]
    assert with_line > 10


@needs_emulator
@needs_go
def test_go_tool_pprof_shows_the_sums(recording: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    recording.export(path, names="full")
    profile = read_pprof(path)
    for type in ("instructions", "calls", "samples"):
        own, whole = profile.sums(type)
        expected = Counter((own[n], whole[n]) for n in profile.functions if whole[n])
        assert Counter(row for row in go_top(path, type).values() if row[1]) == expected
    functions = recording.functions()
    found = go_top(path, "instructions")
    assert sum(own for own, _ in found.values()) == int(functions["self_instructions"].sum())
    main_row = functions[functions["function"] == "main"]
    assert found["main"] == (int(main_row["self_instructions"][0]), int(main_row["instructions"][0]))


@needs_emulator
@needs_go
def test_go_builds_with_the_profile(tmp_path: Path) -> None:
    """`go build -pgo` takes the profile, and its edges have the lines of calls."""
    assert GO is not None
    program = compiled_by("go", "workers.go", tmp_path, "build")
    trace = ptkit.record([program], output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    trace.export(tmp_path / "out.pgo")
    edges = tmp_path / "edges"
    command = [GO, "tool", "preprofile", "-i", str(tmp_path / "out.pgo"), "-o", str(edges)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = edges.read_text().splitlines()
    assert lines[0] == "GO PREPROFILE V1"
    found = {
        (caller, callee, int(numbers.split()[0])): int(numbers.split()[1])
        for caller, callee, numbers in zip(lines[1::3], lines[2::3], lines[3::3], strict=True)
    }
    source = next(path for path in Path(__file__).parents[2].joinpath("programs").rglob("workers.go"))
    text = source.read_text().splitlines()
    begin = text.index("func worker(in chan int, out chan int, all *sync.WaitGroup) {")
    call = next(at for at, line in enumerate(text) if at > begin and "spin(sum)" in line)
    calls = trace.calls()
    parents = calls["entry_symbol"][np.searchsorted(calls["id"], calls["parent"]) % len(calls)]
    of_spin = (calls["entry_symbol"] == "main.spin") & calls["call_known"] & (parents == "main.worker")
    total = int(calls["instructions"][of_spin].sum())
    profile = read_pprof(tmp_path / "out.pgo")
    by_line: Counter[int] = Counter()
    for number, (locations, values) in enumerate(profile.samples):
        names = profile.names(number)
        if "main.spin" in names and "main.worker" in (above := names[names.index("main.spin") + 1 :])[:1]:
            by_line[profile.locations[locations[len(names) - len(above)]][3]] += values[0]
    assert by_line[call + 1] == total > 10**6
    # Go leaves out a few samples.
    assert 0.999 * total < found["main.worker", "main.spin", call - begin] <= total
    again = tmp_path / "again"
    command = [GO, "build", f"-pgo={tmp_path / 'out.pgo'}", "-o", str(again), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert again.exists()


# ---- Callgrind


def by_function(found: Callgrind) -> Counter[tuple[str, int, int, int]]:
    """Name, own instructions, instructions with what it called, and calls of each function."""
    counts, costs = found.called()
    return Counter(
        (function[1], found.own[function], costs[function], counts[function])
        for function in found.own.keys() | costs.keys()
        if function[1] != "[root]"
    )


@needs_emulator
def test_callgrind_has_the_sums_of_functions(recording: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "out.callgrind"
    done = recording.export(path, names="full")
    assert done.bytes == path.stat().st_size
    found = read_callgrind(path)
    functions = recording.functions()
    total = int(functions["self_instructions"].sum())
    assert found.head["totals"] == found.head["summary"] == str(total)
    assert sum(found.own.values()) == total
    counts, costs = found.called()
    rows = Counter(
        (found.own[one], costs[one]) for one in found.own.keys() | costs.keys() if one[1] != "[root]"
    )
    expected = Counter(
        zip(functions["self_instructions"].tolist(), functions["instructions"].tolist(), strict=True)
    )
    assert rows == expected
    # Calls without a begin count as one for each call site.
    unseen = int(counts.total() - functions["count"].sum())
    assert 0 <= unseen <= int(functions["begin_unseen"].sum())
    assert any("written as 1 call" in note for note in done.notes) == (unseen > 0)


@needs_emulator
def test_callgrind_has_the_counts_of_lines(recording: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "out.callgrind"
    recording.export(path)
    found = read_callgrind(path)
    lines = recording.functions(by="line", columns=["source", "line", "self_instructions"])
    expected: Counter[tuple[str, int]] = Counter()
    known = np.array([one is not None for one in lines["source"]]) & (lines["line"] > 0)
    for source, line, count in zip(
        *(lines[name][known].tolist() for name in ("source", "line", "self_instructions")), strict=True
    ):
        expected[source, line] += count
    assert {key: count for key, count in found.lines.items() if key[1]} == dict(expected)
    # By address, as instructions were executed: in files by RVA.
    instructions = recording.instructions(columns=["ip", "space"])
    ips, counts = np.unique(instructions["ip"], return_counts=True)
    where = recording.locate(ips)
    by_address: Counter[tuple[str, int]] = Counter()
    for file, rva, ip, number in zip(
        where.file, where.rva.tolist(), ips.tolist(), counts.tolist(), strict=True
    ):
        by_address["", rva if file else ip] += number
    ours: Counter[tuple[str, int]] = Counter()
    for (_, address), count in found.addresses.items():
        ours["", address] += count
    # A few instructions of the kernel's memory or of no function may have no address.
    missing = {key: number - ours[key] for key, number in by_address.items() if number != ours[key]}
    assert sum(missing.values()) <= found.addresses.get(("???", 0), 0)


@needs_emulator
def test_callgrind_has_call_sites(recording: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "out.callgrind"
    recording.export(path, names="full")
    found = read_callgrind(path)
    calls = recording.calls()
    known = calls["call_known"] & calls["parent_known"]
    ips = np.unique(calls["call_ip"][known])
    where = recording.locate(ips)
    expected = {
        rva if file else ip
        for file, rva, ip in zip(where.file, where.rva.tolist(), ips.tolist(), strict=True)
    }
    assert {address for _, address, _ in found.calls} - {0} == expected - {0}


@needs_emulator
@needs_annotate
def test_callgrind_annotate_shows_the_sums(recording: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "out.callgrind"
    recording.export(path, names="full")
    functions = recording.functions()
    read = read_callgrind(path)
    total, own = annotated(path, inclusive=False)
    assert total == int(functions["self_instructions"].sum()) == sum(own.values())
    by_name: Counter[str] = Counter()
    for (_, name), cost in own.items():  # it has a row for each source file of a function
        by_name[name] += cost
    expected: Counter[str] = Counter()
    for (_, name), cost in read.own.items():
        expected[name] += cost
    assert {name: cost for name, cost in by_name.items() if cost} == {
        name: cost for name, cost in expected.items() if cost
    }
    total, whole = annotated(path, inclusive=True)
    _, costs = read.called()
    for function, cost in costs.items():
        if cost:
            assert whole[function] == cost, function
    rows = functions[functions["function"] == "main"]
    assert [cost for (_, name), cost in whole.items() if name == "main"] == rows["instructions"].tolist()


# ---- all of them


@needs_emulator
def test_parts_export_their_own_sums(recording: ptkit.Trace, tmp_path: Path) -> None:
    half = executed_part(recording, 0, 50)
    expected = int(half.functions()["self_instructions"].sum())
    assert 0 < expected < int(recording.functions()["self_instructions"].sum())
    half.export(tmp_path / "out.folded")
    assert sum(read_folded(tmp_path / "out.folded").values()) == expected
    half.export(tmp_path / "out.pb.gz")
    own, _ = read_pprof(tmp_path / "out.pb.gz").sums("instructions")
    assert own.total() == expected
    half.export(tmp_path / "out.callgrind")
    assert sum(read_callgrind(tmp_path / "out.callgrind").own.values()) == expected
    recording.export(tmp_path / "all.folded", time=half._bound["time"])
    assert (tmp_path / "all.folded").read_bytes() == (tmp_path / "out.folded").read_bytes()


@needs_emulator
def test_selected_functions_keep_their_sums(recording: ptkit.Trace, tmp_path: Path) -> None:
    functions = recording.functions(symbol="main")
    own, whole = int(functions["self_instructions"].sum()), int(functions["instructions"].sum())
    recording.export(tmp_path / "out.folded", symbol="main")
    assert list(read_folded(tmp_path / "out.folded").values()) == [own]
    recording.export(tmp_path / "out.callgrind", symbol="main")
    found = read_callgrind(tmp_path / "out.callgrind")
    assert by_function(found) == Counter([("main", own, whole, 1)])


@needs_emulator
def test_redacted_profiles_have_no_paths(recording: ptkit.Trace, tmp_path: Path) -> None:
    program = Path(recording.info.recording["command"][0])
    for name in ("out.folded", "out.pb.gz", "out.callgrind"):
        recording.export(tmp_path / name, redact=True)
        text = (
            "\n".join(read_pprof(tmp_path / name).strings)
            if name.endswith("gz")
            else (tmp_path / name).read_text("utf-8")
        )
        assert str(program.parent) not in text
        assert "/usr/lib" not in text
        assert re.search(r"\.(c|h|S|cpp)\b", text) is None
        assert "main" in text


@needs_emulator
def test_deep_contexts_count_for_their_callers(tmp_path: Path, rounds: Path) -> None:
    trace = ptkit.record([rounds, "100"], output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    total = int(trace.functions()["self_instructions"].sum())
    for depth in (0, 3):
        done = trace.export(tmp_path / "out.folded", depth=depth)
        found = read_folded(tmp_path / "out.folded")
        assert max(len(stack) for stack in found) == depth + 1
        assert sum(found.values()) == total
        assert f"with more than {depth} callers: counted for the caller" in done.notes[0]
        trace.export(tmp_path / "out.pb.gz", depth=depth)
        own, whole = read_pprof(tmp_path / "out.pb.gz").sums("instructions")
        assert own.total() == total
        assert max(whole.values()) == total


@needs_emulator
def test_many_calls_have_no_call_sites(tmp_path: Path, rounds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = ptkit.record([rounds, "100"], output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    with_sites = contexts_of(trace)
    trace.export(tmp_path / "with.callgrind")
    monkeypatch.setattr(frame_rows, "MOST_FRAMES", 100)
    without = contexts_of(trace)
    assert "call sites of more than 100 are left out" in without.notes[0]
    assert not without.site_known.any()
    assert with_sites.site_known.any()
    for contexts in (with_sites, without):
        rows = Counter(
            (contexts.functions.full[number], int(own), int(count))
            for number, own, count in zip(
                range(len(contexts.functions)),
                np.bincount(contexts.function, contexts.own, len(contexts.functions)),
                np.bincount(contexts.function, contexts.count, len(contexts.functions)),
                strict=True,
            )
            if own or count
        )
        functions = trace.functions()
        expected = Counter(
            row
            for row in zip(
                *(functions[name].tolist() for name in ("function_full", "self_instructions", "count")),
                strict=True,
            )
            if row[1] or row[2]
        )
        assert rows == expected
    done = trace.export(tmp_path / "without.callgrind")
    assert "call sites" in done.notes[0]
    assert by_function(read_callgrind(tmp_path / "without.callgrind")) == by_function(
        read_callgrind(tmp_path / "with.callgrind")
    )
    with pytest.raises(ptkit.ConfigError, match=r"of='time'.*100 are left out; select fewer; or use of="):
        trace.export(tmp_path / "out.folded", of="time")


# ---- made by hand

HOSTILE = "a;b c (4)\n=1\x1b[31m\t7"
ESCAPED = "a;b c (4)\\x0a=1\\x1b[31m\\x097"


@pytest.fixture
def hostile(tmp_path: Path, loop: Any, open_trace: Any) -> ptkit.Trace:
    """A trace of a function and a file with hostile names."""
    path = tmp_path / "x;y\n(1) z"
    path.write_bytes(elf(loop.CODE, loop.BASE, HOSTILE))
    trace: ptkit.Trace = open_trace(loop.stream(9), images=[path])
    return trace


def test_hostile_names_stay_in_their_place(hostile: ptkit.Trace, tmp_path: Path) -> None:
    total = int(hostile.functions()["self_instructions"].sum())
    hostile.export(tmp_path / "out.folded")
    found = read_folded(tmp_path / "out.folded")
    assert set(found) == {(ESCAPED.replace(";", "\\x3b"),)}
    assert sum(found.values()) == total > 0
    hostile.export(tmp_path / "out.pb.gz")
    profile = read_pprof(tmp_path / "out.pb.gz")
    assert [name for name, *_ in profile.functions.values() if name.startswith("a")] == [ESCAPED]
    assert [path for path, *_ in profile.mappings.values()] == [f"{tmp_path}/x;y\\x0a(1) z"]
    hostile.export(tmp_path / "out.callgrind")
    read = read_callgrind(tmp_path / "out.callgrind")
    assert read.own == {("???", ESCAPED): total}
    assert read.objects["???", ESCAPED] == f"{tmp_path}/x;y\\x0a(1) z"


def test_names_that_are_no_utf8_are_escaped(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    path = tmp_path / "image"
    path.write_bytes(elf(loop.CODE, loop.BASE, "f_QQ").replace(b"f_QQ", b"f_\xff\xc3"))
    trace = open_trace(loop.stream(9), images=[path])
    shown = "f_\\xff\\xc3"
    trace.export(tmp_path / "out.folded")
    assert set(read_folded(tmp_path / "out.folded")) == {(shown,)}
    trace.export(tmp_path / "out.pb.gz")
    assert shown in read_pprof(tmp_path / "out.pb.gz").strings
    trace.export(tmp_path / "out.callgrind")
    assert set(read_callgrind(tmp_path / "out.callgrind").own) == {("???", shown)}


@needs_go
def test_go_tool_pprof_reads_hostile_names(hostile: ptkit.Trace, tmp_path: Path) -> None:
    hostile.export(tmp_path / "out.pb.gz")
    total = int(hostile.functions()["self_instructions"].sum())
    # It takes parentheses for those of parameters.
    assert go_top(tmp_path / "out.pb.gz", "instructions") == {ESCAPED.replace("(4)", ""): (total, total)}


@needs_annotate
def test_callgrind_annotate_reads_hostile_names(hostile: ptkit.Trace, tmp_path: Path) -> None:
    hostile.export(tmp_path / "out.callgrind")
    total = int(hostile.functions()["self_instructions"].sum())
    assert annotated(tmp_path / "out.callgrind", inclusive=False)[0] == total


def test_errors_and_gaps_are_said(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    trace = open_trace(loop.stream(2))  # without code
    for format in FORMATS:
        done = trace.export(tmp_path / "out", format)
        assert done.notes[0].startswith("1 error and 1 gap: instructions and calls may be missing")
        data = (tmp_path / "out").read_bytes()
        if format != "folded":  # which holds nothing but stacks
            assert done.notes[0].encode() in (gzip.decompress(data) if format == "pprof" else data)
    assert sum(read_callgrind(tmp_path / "out").own.values()) == 0


def test_traces_without_rows_export(tmp_path: Path, packets: Any, open_trace: Any) -> None:
    trace = open_trace(packets.PSB + packets.PSBEND)
    for format in FORMATS:
        trace.export(tmp_path / format, format)
    assert (tmp_path / "folded").read_bytes() == b""
    assert read_pprof(tmp_path / "pprof").samples == []
    assert read_callgrind(tmp_path / "callgrind").head["totals"] == "0"


def test_times_are_refused_where_there_is_no_clock(tmp_path: Path, loop_trace: Any) -> None:
    with pytest.raises(ptkit.ConfigError, match="no times of which the clock is known"):
        loop_trace.export(tmp_path / "out.folded", of="time")
    loop_trace.export(tmp_path / "out.pb.gz")
    assert [name for name, _ in read_pprof(tmp_path / "out.pb.gz").types] == [
        "instructions",
        "calls",
        "samples",
    ]


def test_real_times_are_a_sample_type(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    trace = open_trace(loop.stream(200), images=loop.images(), tsc_hz=1_000_000_000)
    trace.export(tmp_path / "out.pb.gz")
    found = read_pprof(tmp_path / "out.pb.gz")
    assert found.types[2] == ("time", "nanoseconds")
    calls = trace.calls()
    outermost = ~calls["parent_known"] & calls["end_time_known"]
    expected = int((calls["end_tsc"] - calls["tsc"])[outermost].sum())
    assert found.sums("time")[0].total() == expected > 10_000


@pytest.mark.parametrize("format", FORMATS)
def test_what_does_not_select_calls_is_refused(tmp_path: Path, loop_trace: Any, format: str) -> None:
    for name, value in (
        ("kind", "CALL"),
        ("taken", True),
        ("offset", (0, 10)),
        ("order", "time"),
        ("columns", ["id"]),
    ):
        with pytest.raises(ptkit.ConfigError, match=f"{name} does not select calls"):
            loop_trace.export(tmp_path / "out", format, **{name: value})
    with pytest.raises(ptkit.ConfigError, match="names='long'"):
        loop_trace.export(tmp_path / "out", format, names="long")
    assert not (tmp_path / "out").exists()


def test_costs_of_addresses_have_native_frames(tmp_path: Path, loop_trace: Any) -> None:
    for name, value in (("inlines", True), ("frames", "python"), ("whole_calls", True)):
        with pytest.raises(ptkit.ConfigError, match=f"{name}: costs are those of addresses"):
            loop_trace.export(tmp_path / "out.callgrind", **{name: value})


@pytest.mark.parametrize("format", FORMATS)
def test_full_disk_leaves_no_profile(tmp_path: Path, hostile: ptkit.Trace, format: str) -> None:
    there = sorted(tmp_path.iterdir())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(ptkit.OpenError, match=r"out: cannot write: File too large"):
            hostile.export(tmp_path / "out", format)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert sorted(tmp_path.iterdir()) == there


def test_the_verb_writes_profiles(tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    raw, code = tmp_path / "loop.pt", tmp_path / "code.bin"
    raw.write_bytes(loop.stream(20))
    code.write_bytes(loop.CODE)
    source = ["export", str(raw), "--code", f"{code}@{loop.BASE:#x}", "--processor", "6/142/9"]
    out = str(tmp_path / "out")
    assert main([*source, "-o", f"{out}.folded", "--of", "calls", "--names", "full", "--depth", "5"]) == 0
    assert main([*source, "-o", f"{out}.pb.gz", "--inlines"]) == 0
    assert f"go tool pprof -top -sample_index=instructions {out}.pb.gz" in capsys.readouterr().out
    assert main([*source, "-o", f"{out}.callgrind"]) == 0
    assert f"callgrind_annotate --inclusive=yes {out}.callgrind" in capsys.readouterr().out
    assert main([*source, "-o", f"{out}.callgrind", "--of", "calls"]) == 2
    assert "--of is for --format " in capsys.readouterr().err
    # Files of the format are replaced, others are not.
    assert main([*source, "-o", f"{out}.callgrind"]) == 0
    Path(f"{out}.callgrind").write_text("precious\n")
    assert main([*source, "-o", f"{out}.callgrind"]) == 2
    assert Path(f"{out}.callgrind").read_text() == "precious\n"


def test_equal_names_are_told_apart() -> None:
    assert distinct(["f", "g"], ["a", "b"], [1, 2]) == ["f", "g"]
    assert distinct(["f", "f", "g"], ["a", "b", "b"], [1, 2, 3]) == ["f (a)", "f (b)", "g"]
    assert distinct(["f", "f", "f"], ["a", "a", "b"], [1, 2, 2]) == ["f (a+0x1)", "f (a+0x2)", "f (b)"]
    assert distinct(["f", "f"], [None, None], [1, 1]) == ["f (0x1) #2", "f (0x1) #3"]
    assert distinct(["f", "f", "f (a)"], ["a", "b", "a"], [1, 2, 3]) == ["f (a+0x1)", "f (b)", "f (a)"]


def test_integers_of_protocol_buffers() -> None:
    assert [varint(value).hex() for value in (0, 1, 127, 128, 300)] == ["00", "01", "7f", "8001", "ac02"]
    assert varint(-1) == b"\xff" * 9 + b"\x01"
    assert varint_field(1, 0) == b""
    assert varint_field(3, 150).hex() == "189601"


def test_writers_are_imported_when_they_are_used() -> None:
    code = "import sys, ptkit; sys.exit('ptkit.export.contexts' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
