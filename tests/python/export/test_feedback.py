"""Profiles for compilers: counts of runs and branches equal those of the tables and what programs do."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from branch_records import records
from compiling import build
from executed_parts import time_at
from feedback_files import calls_of, executions, read_autofdo, read_bolt, read_llvm
from rounds import needs_emulator
from small_elf import elf
from small_pe import pe

import ptkit
from ptkit import _core
from ptkit.cli import main
from ptkit.decode import Query
from ptkit.export import feedback
from ptkit.export.hits import executions as hits
from ptkit.export.module_runs import module_runs

# Recursion; exceptions; threads; JIT code; signals; processes of one program; libraries that come and go.
PROGRAMS = ["recursion", "unwind", "threads", "jit", "signals", "forks", "plugins"]
FORMATS = {"autofdo": read_autofdo, "llvm": read_llvm, "bolt": read_bolt, "bolt-traces": read_bolt}
NO_INSTRUCTION = ("ASYNC", "TX_ABORT", "UNKNOWN")
ROUNDS = 40


@pytest.fixture(scope="module", params=PROGRAMS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording of a program, made by the emulator."""
    folder = tmp_path_factory.mktemp(request.param)
    program = build(request.param, folder, "-g", "-ldl")
    argv: list[Any] = [program]
    if request.param == "plugins":
        argv += [build("brief", folder, "-shared", "-fPIC", "-nostdlib")]
    return ptkit.record(argv, output=folder / "out.ptk", backend="emulator", quiet=True)


@pytest.fixture(scope="module", params=["pie", "fixed"])
def loops(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ptkit.Trace, Path, dict[str, int]]:
    """A recording of counted loops, the program, and the linked addresses of its functions."""
    folder = tmp_path_factory.mktemp(request.param)
    flags = ["-no-pie"] if request.param == "fixed" else ["-fPIE", "-pie"]
    program = build("counted_loops", folder, "-Wl,--build-id", *flags)
    argv = [program, str(ROUNDS)]
    trace = ptkit.record(argv, output=folder / "out.ptk", backend="emulator", quiet=True)
    base = 0x400000 if request.param == "fixed" else 0
    load = next(one.base for one in trace.info.modules if one.path == str(program))
    names = ("leaf", "odd", "work", "by_value", "main")
    return trace, program, {name: trace.symbols(name)[0][1] - load + base for name in names}


def counts(runs: Any, *columns: str) -> Counter[tuple[int, ...]]:
    """Executions by some columns."""
    found: Counter[tuple[int, ...]] = Counter()
    rows = zip(*(runs.columns[name].tolist() for name in (*columns, "count")), strict=True)
    for *key, count in rows:
        found[tuple(key)] += count
    return found


def first_files(trace: ptkit.Trace) -> list[int]:
    """For each file the first one that is the same program or library."""
    first: dict[tuple[bool, str], int] = {}
    return [
        first.setdefault((bool(build_id), build_id or path), number)
        for number, (path, build_id) in enumerate(trace.info.files)
    ]


def located(trace: ptkit.Trace, ips: Any, spaces: Any) -> list[tuple[int, int]]:
    """File and RVA of addresses; files with one build-id are one."""
    files, rvas = _core.name_files(trace.opened.session, ips, spaces, None, None, True, True)
    same = first_files(trace)
    return [
        (same[file], rva) if 0 <= file < len(same) else (-1, 0)
        for file, rva in zip(files.tolist(), rvas.tolist(), strict=True)
    ]


# ---- the counts


@needs_emulator
def test_runs_have_every_instruction(recording: ptkit.Trace) -> None:
    runs = recording._runs(Query())
    total = len(recording.instructions(columns=["cls"]))
    own = int((runs.columns["instructions"] * runs.columns["count"]).sum())
    left = sum(count for name, count in runs.totals.items() if name.endswith("_instructions"))
    assert runs.totals["instructions"] == total == own + left
    assert runs.totals["unknown_instructions"] == runs.totals["unselected_instructions"] == 0
    assert own > total / 2
    if "jit" in recording.source:
        assert runs.totals["outside_instructions"] > 0


@needs_emulator
def test_runs_are_executions_of_each_instruction(recording: ptkit.Trace) -> None:
    runs = recording._runs(Query())
    first = first_files(recording)
    expected: Counter[tuple[int, int]] = Counter()
    for (file, rva), count in hits(recording, file_offsets=False).items():
        if 0 <= file < len(first):
            expected[first[file], rva] += count
    found: Counter[tuple[int, int]] = Counter()
    addresses: dict[int, list[int]] = {}
    for file, rva in sorted(expected):
        addresses.setdefault(file, []).append(rva)
    columns = ("file", "begin", "end", "instructions")
    for (file, begin, end, instructions), count in counts(runs, *columns).items():
        if not instructions:
            continue
        low, high = np.searchsorted(addresses[file], [begin, end + 1])
        inside = addresses[file][low:high]
        assert (inside[0], inside[-1]) == (begin, end)
        for rva in inside:
            found[file, rva] += count
    # A prefix may be jumped over: then two instructions overlap.
    differ = {key for key in expected if found[key] != expected[key]}
    assert len(differ) <= len(expected) / 500
    assert set(found) == set(expected)


# Libraries of `plugins` take each other's addresses, and edges have no times.
@needs_emulator
@pytest.mark.parametrize("recording", PROGRAMS[:-1], indirect=True)
def test_runs_have_the_taken_edges(recording: ptkit.Trace) -> None:
    edges = recording.edges(taken=True)
    wanted = edges["to_known"] & ~np.isin(
        edges["kind"], [int(ptkit.BranchKind[one]) for one in NO_INSTRUCTION]
    )
    edges = edges[wanted]
    spaces = np.asarray(edges["space"])
    begins = located(recording, np.asarray(edges["from_ip"]), spaces)
    ends = located(recording, np.asarray(edges["to_ip"]), spaces)
    expected: Counter[tuple[int, ...]] = Counter()
    for begin, end, kind, count in zip(
        begins, ends, edges["kind"].tolist(), edges["count"].tolist(), strict=True
    ):
        if begin[0] >= 0 and end[0] >= 0:
            expected[(*begin, *end, kind)] += count
    runs = recording._runs(Query())
    both = _core.RUN_FROM | _core.RUN_BEGIN
    found: Counter[tuple[int, ...]] = Counter()
    columns = ("from_file", "from", "file", "begin", "kind", "flags")
    for (from_file, origin, file, begin, kind, flags), count in counts(runs, *columns).items():
        if flags & both == both and from_file >= 0:
            found[from_file, origin, file, begin, kind] += count
    assert found == expected
    assert runs.totals["branches"] >= sum(expected.values()) > 0


@needs_emulator
def test_runs_do_not_depend_on_threads(recording: ptkit.Trace) -> None:
    expected = recording._runs(Query(threads=1))
    for threads in (2, 4):
        found = recording._runs(Query(threads=threads))
        assert found.totals == expected.totals
        for name, column in expected.columns.items():
            assert np.array_equal(found.columns[name], column), name


@needs_emulator
def test_parts_and_selections_add_up(recording: ptkit.Trace) -> None:
    whole = recording._runs(Query())
    tids = [tid for _, tid, _ in recording.info.threads if tid is not None]
    each = [recording._runs(Query(tid=tid)) for tid in tids]
    assert sum(one.totals["instructions"] for one in each) == whole.totals["instructions"]
    assert sum((counts(one, "file", "begin", "end") for one in each), Counter()) == counts(
        whole, "file", "begin", "end"
    )
    parts = [recording.between(percent=part)._runs(Query()) for part in ((0, 40), (40, 100))]
    branches = sum(one.totals["branches"] for one in parts)
    assert 0.9 * whole.totals["branches"] <= branches <= whole.totals["branches"]


# ---- the files


@needs_emulator
@pytest.mark.parametrize("name", FORMATS)
def test_files_have_the_counts_of_the_program(
    loops: tuple[ptkit.Trace, Path, dict[str, int]], tmp_path: Path, name: str
) -> None:
    trace, program, at = loops
    done = trace.export(tmp_path / "out", name)
    assert done.bytes == (tmp_path / "out").stat().st_size
    base = 0x400000 if name == "autofdo" and at["leaf"] > 0x400000 else 0
    profile = FORMATS[name](tmp_path / "out").shifted(base)
    assert executions(profile, at["work"]) == ROUNDS
    assert executions(profile, at["leaf"]) == 100 * ROUNDS
    assert executions(profile, at["odd"]) == 34 * ROUNDS
    assert executions(profile, at["main"]) == 1
    compared = int(output_of(program)[1])
    assert executions(profile, at["by_value"]) == compared
    calls = {one: calls_of(profile, at[one]) for one in at}
    assert (calls["work"], calls["leaf"], calls["odd"]) == (ROUNDS, 100 * ROUNDS, 34 * ROUNDS)
    # AutoFDO's text has no branches from other code, such as the C library's calls.
    assert calls["by_value"] == (0 if name == "autofdo" else compared)
    assert any(str(program) in note and "--module exports another file: " in note for note in done.notes)
    assert any("mispredictions are 0" in note for note in done.notes) == name.startswith("bolt")


def output_of(program: Path) -> list[str]:
    """What the program prints."""
    return subprocess.run([program, str(ROUNDS)], capture_output=True, text=True).stdout.split()


@needs_emulator
def test_the_files_of_all_formats_agree(
    loops: tuple[ptkit.Trace, Path, dict[str, int]], tmp_path: Path
) -> None:
    trace, _, at = loops
    for name in FORMATS:
        trace.export(tmp_path / name, name)
    found = {name: read(tmp_path / name) for name, read in FORMATS.items()}
    base = 0x400000 if at["leaf"] > 0x400000 else 0
    assert found["llvm"].ranges == found["autofdo"].shifted(base).ranges == found["bolt-traces"].ranges
    # The format bolt has no runs of PLT stubs.
    stubs = found["bolt-traces"].ranges - found["bolt"].ranges
    assert found["bolt"].ranges == found["bolt-traces"].ranges - stubs
    assert {end for _, end in stubs} <= {origin for origin, _ in found["bolt"].branches}
    assert 2 <= len(stubs) < 30
    assert found["bolt-traces"].branches == found["bolt"].branches
    inner = Counter({key: n for key, n in found["bolt"].branches.items() if None not in key})
    assert found["autofdo"].shifted(base).branches == inner
    assert Counter({key: n for key, n in found["bolt"].branches.items() if key[1] is not None}) == (
        found["llvm"].branches
    )
    assert any(origin is None for origin, _ in found["bolt"].branches)
    assert any(target is None for _, target in found["bolt"].branches)
    assert sum(found["bolt"].after_returns.values()) >= 100 * ROUNDS
    runs = module_runs(trace)
    total = sum(int(n) for n in (runs.instructions * runs.count).tolist())
    assert f"{total:,} of " in runs.notes[0]


@needs_emulator
def test_another_file_is_chosen_by_its_name_or_build_id(
    loops: tuple[ptkit.Trace, Path, dict[str, int]], tmp_path: Path
) -> None:
    trace, program, at = loops
    build_id = dict(trace.info.files)[str(program)]
    trace.export(tmp_path / "a", "llvm")
    trace.export(tmp_path / "b", "llvm", build_id=build_id[:12].upper())
    trace.export(tmp_path / "c", "llvm", module=str(program))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    done = trace.export(tmp_path / "d", "llvm", module="libc.so.6")
    assert "libc.so.6; --module exports another file: " in done.notes[0]
    assert read_llvm(tmp_path / "d").ranges != read_llvm(tmp_path / "a").ranges
    with pytest.raises(ptkit.ConfigError, match=r"code of 2 files was executed: choose one by --module NAME"):
        trace.export(tmp_path / "e", "llvm", module=["libc.so.6", program.name])
    with pytest.raises(ptkit.ConfigError, match=r"no code of an ELF file that is chosen was executed"):
        trace.export(tmp_path / "e", "llvm", build_id="0" * 40)
    assert not (tmp_path / "e").exists()
    done = trace.export(tmp_path / "f", "bolt", symbol="work")
    profile = read_bolt(tmp_path / "f")
    assert executions(profile, at["work"]) == ROUNDS
    assert executions(profile, at["leaf"]) == 0
    assert calls_of(profile, at["leaf"]) == 100 * ROUNDS


@needs_emulator
def test_parts_of_a_trace_export(loops: tuple[ptkit.Trace, Path, dict[str, int]], tmp_path: Path) -> None:
    trace, program, at = loops
    middle = int(trace.calls(symbol="work")["tsc"][ROUNDS // 2])
    profiles = []
    for number, time in enumerate(((None, middle), (middle, None))):
        trace.export(tmp_path / str(number), "bolt-traces", time=time)
        profiles.append(read_bolt(tmp_path / str(number)))
    called = [executions(one, at["work"]) for one in profiles]
    assert sum(called) == ROUNDS
    assert min(called) >= ROUNDS // 2 - 2
    assert sum(executions(one, at["leaf"]) for one in profiles) == 100 * ROUNDS
    events = trace.events()
    trace.slice(after=events[:1]).export(tmp_path / "slice", "bolt-traces")
    assert executions(read_bolt(tmp_path / "slice"), at["leaf"]) == 100 * ROUNDS
    trace.between(time_at(trace, 1)).export(tmp_path / "between", "bolt-traces")
    assert executions(read_bolt(tmp_path / "between"), at["leaf"]) == 100 * ROUNDS
    # A redacted copy has no command.
    trace.export(tmp_path / "redacted", "bolt-traces", redact=True, module=program.name)
    trace.export(tmp_path / "whole", "bolt-traces")
    assert (tmp_path / "redacted").read_bytes() == (tmp_path / "whole").read_bytes()


@needs_emulator
def test_the_command_line_exports(
    loops: tuple[ptkit.Trace, Path, dict[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace, program, _ = loops
    out = tmp_path / "out.bolt.txt"
    assert main(["export", trace.source, "-o", str(out), "--module", program.name]) == 0
    assert f"perf2bolt PROGRAM --pa -p {out} -o program.fdata" in capsys.readouterr().out
    assert main(["export", trace.source, "-o", str(out)]) == 0  # replaces its own file
    assert main(["export", trace.source, "-o", str(out), "--format", "llvm"]) == 2
    assert "--force" in capsys.readouterr().err
    assert (
        main(["export", trace.source, "-o", str(tmp_path / "x"), "--format", "csv", "--build-id", "0"]) == 2
    )
    assert "build" in capsys.readouterr().err


def loop_of(file: Path, loop: Any, contents: bytes, **more: Any) -> ptkit.Trace:
    """The loop program as a file, executed 20 times."""
    file.write_bytes(contents)
    bundle = ptkit._core.Bundle()
    bundle.add_image(str(file))
    bundle.add_stream(loop.stream(20), **more)
    return ptkit.Trace(bundle, ptkit.decode.Settings())


def test_a_file_without_build_id_is_written_with_a_note(tmp_path: Path, loop: Any) -> None:
    trace = loop_of(tmp_path / "program", loop, elf(loop.CODE, loop.BASE, "again"))
    done = trace.export(tmp_path / "out", "bolt")
    assert [note for note in done.notes if "has no build-id" in note]
    profile = read_bolt(tmp_path / "out")
    assert profile.branches == {(loop.JNZ, loop.BASE): 100, (loop.JMP, loop.BASE): 20}
    # The trace ends at the begin of the loop.
    assert profile.ranges == {(loop.BASE, loop.JNZ): 100, (loop.BASE, loop.JMP): 20}
    again = trace.export(tmp_path / "traces", "bolt-traces")
    assert read_bolt(tmp_path / "traces") == profile
    assert again.notes[-1] == "mispredictions are 0: the trace does not have them"


def test_pe_files_and_code_of_no_file_are_left_out(tmp_path: Path, loop: Any) -> None:
    trace = loop_of(tmp_path / "driver.sys", loop, pe(loop.CODE, 0))
    with pytest.raises(
        ptkit.ConfigError, match=r"no code of an ELF file was executed; there are .*driver\.sys"
    ):
        trace.export(tmp_path / "out", "llvm")
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.add_stream(loop.stream(20))
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    with pytest.raises(ptkit.ConfigError, match=r"no code of an ELF file was executed$"):
        trace.export(tmp_path / "out", "llvm")
    assert list(tmp_path.glob("out*")) == []


def test_several_programs_have_to_be_chosen_from(spaces: Any, tmp_path: Path) -> None:
    with pytest.raises(ptkit.ConfigError, match=r"code of 3 files .* --module NAME .*alpha_fn \(\d"):
        spaces.export(tmp_path / "out", "bolt")
    done = spaces.export(tmp_path / "out", "bolt", module="alpha_fn")
    assert "alpha_fn" in done.notes[0]
    one = read_bolt(tmp_path / "out")
    assert sum(one.branches.values()) == 60
    spaces.export(tmp_path / "out", "bolt", pid=1)
    assert read_bolt(tmp_path / "out") == one


@pytest.mark.parametrize("name", ["columns", "order", "offset", "kind", "taken"])
def test_what_does_not_select_runs_is_refused(name: str, loop_trace: Any, tmp_path: Path) -> None:
    value = {"columns": ["ip"], "order": "time", "offset": (0, 1), "kind": "CALL", "taken": True}[name]
    with pytest.raises(ptkit.ConfigError, match=f"{name} does not select runs of code"):
        loop_trace.export(tmp_path / "out", "llvm", **{name: value})


def test_mispredictions_are_those_of_branch_records(tmp_path: Path, loop: Any) -> None:
    program = tmp_path / "program"
    program.write_bytes(elf(loop.CODE, loop.BASE, "again"))
    made = records([loop.JNZ, loop.JNZ, loop.JMP, loop.JNZ, loop.JNZ], [loop.BASE] * 5)
    flags = ptkit.RecordFlag
    made["flags"] = [0, flags.PREDICTED, flags.PREDICTED, 0, flags.PREDICTED]
    made["flags"] |= np.array([flags.PREDICTION_KNOWN] * 4 + [0]).astype(made["flags"].dtype)
    trace = ptkit.open_branches(made, images=[str(program)])
    done = trace.export(tmp_path / "out", "bolt")
    profile = read_bolt(tmp_path / "out")
    assert profile.branches == {(loop.JNZ, loop.BASE): 4, (loop.JMP, loop.BASE): 1}
    assert profile.mispredicted == {(loop.JNZ, loop.BASE): 2, (loop.JMP, loop.BASE): 0}
    assert "mispredictions are known of 4 of 5 branches" in done.notes
    done = trace.export(tmp_path / "out", "bolt-traces")
    assert done.notes[-1] == "T and R lines have no mispredictions: the format bolt has them"
    runs = trace._runs(Query())
    assert (
        runs.totals["instructions"]
        == len(trace.instructions(columns=["ip"]))
        == sum((runs.columns["instructions"] * runs.columns["count"]).tolist())
    )


def test_counts_end_at_what_readers_take(tmp_path: Path, loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = loop_of(tmp_path / "program", loop, elf(loop.CODE, loop.BASE, "again"))
    monkeypatch.setattr(feedback, "MOST", 50)
    for name, read in FORMATS.items():
        done = trace.export(tmp_path / "out", name)
        counts = [
            max(one.values()) for one in (read(tmp_path / "out").ranges, read(tmp_path / "out").branches)
        ]
        # Of bolt-traces, two kinds of lines add up.
        assert counts == ([70, 70] if name == "bolt-traces" else [50, 50])
        assert any(note.endswith("are written as that") for note in done.notes), name


def test_losses_are_said(tmp_path: Path, loop: Any, packets: Any) -> None:
    program = tmp_path / "program"
    program.write_bytes(elf(loop.CODE, loop.BASE, "again"))
    bundle = ptkit._core.Bundle()
    bundle.add_image(str(program))
    lost = packets.OVF + packets.fup(loop.JMP) + packets.tip(loop.BASE)
    bundle.add_stream(loop.stream(3) + packets.tnt("1") + lost + packets.tnt("110") + packets.tip(loop.BASE))
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    done = trace.export(tmp_path / "out", "bolt")
    assert [note for note in done.notes if "1 gap: code may be missing" in note]
    profile = read_bolt(tmp_path / "out")
    # No run goes from before the loss to after it: the jump after it has a run of its own.
    assert profile.ranges[loop.JMP, loop.JMP] == 1
    assert profile.branches[loop.JNZ, loop.BASE] == 3 * 5 + 1 + 2


def test_runs_are_refused_before_they_take_memory(
    tmp_path: Path, loop: Any, packets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    jumps = 120_000  # over an int3: each is a run of its own
    code = bytes.fromhex("eb01cc") * jumps + bytes.fromhex("ffe0")
    (tmp_path / "program").write_bytes(elf(code, loop.BASE, "jumps"))
    bundle = _core.Bundle()
    bundle.add_image(str(tmp_path / "program"))
    bundle.add_stream(loop.header(None, 1000) + packets.pge(loop.BASE) + packets.tip(loop.BASE))
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    assert trace.export(tmp_path / "out", "bolt") is not None
    assert len(read_bolt(tmp_path / "out").branches) == jumps + 1
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemAvailable: 8192 kB\n")
    monkeypatch.setattr("ptkit.support.memory.ROOT", str(tmp_path))
    ptkit.trim_memory(limit=0)
    with pytest.raises(
        ptkit.OutOfMemoryError,
        match=r"the runs take more than \d+\.\d MiB, and 7\.0 MiB are free \(MemAvailable\); select fewer",
    ):
        trace.export(tmp_path / "more", "bolt")
    assert not (tmp_path / "more").exists()
    monkeypatch.undo()
    ptkit.trim_memory(limit=1 << 30)
