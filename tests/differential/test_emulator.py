"""Programs recorded in the emulator: what is decoded is what QEMU's own log and the recorder's say."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import qemu_log
from compiling import build
from truth import Times, check_branches, check_instructions, first_difference, resolve, surroundings

import ptkit
from ptkit import _core, capture
from ptkit.analysis.verify import verify
from ptkit.selftest.logged import LoggedRecorder

pytestmark = pytest.mark.skipif(
    not any(one.name == "emulator" and one.available for one in capture.probe()),
    reason="no emulator here: " + "; ".join(f"{one.name}: {one.detail}" for one in capture.probe()),
)

TIMINGS: dict[str, tuple[str, ...]] = {
    "untimed": (),
    "tsc": ("tsc",),
    "mtc": ("tsc", "mtc"),
    "cyc": ("tsc", "mtc", "cyc"),
}
# Return compression, PSB period, timing packets: all of 16.
FORMS: dict[str, dict[str, Any]] = {
    f"{'compressed' if compressed else 'plain'}-psb{period >> 10}k-{name}": {
        "return_compression": compressed,
        "psb_period": period,
        "timing": timing,
    }
    for (name, timing), period, compressed in itertools.product(
        TIMINGS.items(), (2 << 10, 1 << 20), (True, False)
    )
}
# Four that have each value of each at least once.
SOME = ["compressed-psb2k-mtc", "plain-psb1024k-cyc", "plain-psb2k-untimed", "compressed-psb1024k-tsc"]
LARGE = bool(os.environ.get("PTKIT_LARGE_TESTS"))
LIBIPT_INSTRUCTIONS = 10_000_000  # it takes a second for one to three millions


# Code that changes cannot be told apart without times.
COMPILING = {"luajit", "node", "jit", "selfmod"}


def form_of(name: str, number: int) -> str:
    """Each form for some programs."""
    form = SOME[number % len(SOME)]
    return "plain-psb2k-mtc" if name in COMPILING and not FORMS[form]["timing"] else form


def command(name: str, folder: Path, scale: int = 1) -> tuple[list[Any], int]:
    make, status = PROGRAMS[name]
    argv = make(folder, scale)
    if shutil.which(str(argv[0])) is None:
        pytest.skip(f"{argv[0]} is not installed")
    return argv, status


def record(argv: Sequence[Any], folder: Path, form: str, *, truth: bool = True) -> capture.Recording:
    """With the recorder's log beside the bundle; without it, blocks have no times and take a shorter way."""
    log = folder / "truth" if truth else None
    if log is not None:
        log.mkdir()
    output = folder / "out.ptk"
    return LoggedRecorder(argv, output, backend="emulator", truth=log, quiet=True, **FORMS[form]).run()


def explained(times: Times) -> str:
    return (
        f"{times.rows} branches, {times.unknown} without a time, {times.early} before and {times.late} after"
        " what is said:\n  " + "\n  ".join(times.misses)
    )


def check(recording: capture.Recording, folder: Path, form: str) -> ptkit.Trace:
    """Instructions, branches and times of all streams by the recorder's log, and libipt's view of it."""
    trace = ptkit.open(recording)
    assert check_instructions(trace, folder / "truth") == recording.instructions
    times = check_branches(trace, folder / "truth")
    assert len(trace.errors) == 0, str(trace.errors)
    if FORMS[form]["timing"]:
        check_times(times)
    return trace


def check_times(times: Times) -> None:
    """Check that every branch has its logged time in its interval."""
    assert times.early + times.late == 0, explained(times)
    assert times.unknown <= times.rows / 1000, explained(times)


def check_libipt(trace: ptkit.Trace, recording: capture.Recording) -> None:
    """libipt decodes the same."""
    if "libipt" in _core.engines() and (LARGE or recording.instructions < LIBIPT_INSTRUCTIONS):
        report = verify(trace)
        assert report.same, str(report)
        assert not any(report.unjudged.values()), str(report)


def log_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the QEMU of the next recording write its own log."""
    folder.mkdir()
    for name, value in qemu_log.environment(folder).items():
        monkeypatch.setenv(name, value)
    return folder


def check_log(trace: ptkit.Trace, runs: Sequence[qemu_log.Run]) -> int:
    """Every thread's instructions are those of QEMU's log; returns how many of its blocks were doubtful."""
    streams: dict[int, list[int]] = {}
    for number, stream in enumerate(trace.streams):
        assert stream.tid is not None
        streams.setdefault(stream.tid, []).append(number)
    # A thread that is killed early may have executed nothing.
    logs = qemu_log.by_thread([run for run in runs if run.ips or run.tid in streams])
    assert {tid: len(numbers) for tid, numbers in streams.items()} == {
        tid: len(some) for tid, some in logs.items()
    }
    doubtful = 0
    for tid, numbers in streams.items():
        for number, run in zip(numbers, logs[tid], strict=True):
            found = trace.instructions(columns=["ip"], stream=number)["ip"]
            expected, count = resolve(found, np.array(run.ips, dtype=np.uint64), run.doubts)
            doubtful += count
            at = first_difference(found, expected)
            if at is not None:
                pytest.fail(
                    f"stream {number}, thread {tid}, program {run.program}: instruction {at}\n"
                    + surroundings(found, expected, at)
                )
    return doubtful


# Name, arguments, exit status, how many blocks may be left at an instruction that the log does not show.
LOGGED = [
    ("branches", [], 0, 0),
    ("odd", [], 0, 0),
    ("strings", [], 0, 0),
    ("selfmod", [], 0, 0),
    ("jit", [], 0, 0),
    ("signals", [], 0, 3),
    ("faults", [], 0, 20),
    ("timers", ["12"], 0, 12),
    ("locks", [], 0, 4),
    ("threads", [], 0, 4),
    ("forks", [], 3, 0),
    ("spawn", [], 0, 2),
    ("killed", [], 128 + 11, 1),
    ("cut", [], 0, 24),
]


@pytest.mark.parametrize("truth", [True, False], ids=["timed", "short"])
@pytest.mark.parametrize(
    ("name", "words", "status", "doubtful", "form"),
    [(*row, form_of(row[0], number)) for number, row in enumerate(LOGGED)],
    ids=[row[0] for row in LOGGED],
)
def test_own_log_of_qemu(
    name: str,
    words: list[str],
    status: int,
    doubtful: int,
    form: str,
    truth: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = build(name, tmp_path, "-static")
    folder = log_to(tmp_path / "log", monkeypatch)
    recording = record([program, *words], tmp_path, form, truth=truth)
    assert recording.exit_status == status
    assert not recording.warnings
    trace = check(recording, tmp_path, form) if truth else ptkit.open(recording)
    assert len(trace.errors) == 0, str(trace.errors)
    check_libipt(trace, recording)
    assert check_log(trace, qemu_log.read(folder)) <= doubtful


def test_a_killed_thread_ends_before_a_branch(tmp_path: Path) -> None:
    """It is not known where the branch at the end of its last block led: the trace says where it ends."""
    recording = record([build("cut", tmp_path, "-static")], tmp_path, SOME[0], truth=False)
    assert recording.exit_status == 0
    trace = ptkit.open(recording)
    assert len(trace.streams) > 20
    ends = (ptkit.BranchKind.ASYNC, ptkit.BranchKind.SYSCALL)
    for number in range(len(trace.streams)):
        last = trace.branches(stream=number)[-1:]
        assert last["kind"][0] in ends
        assert not last["to_known"][0]


@pytest.mark.parametrize(("name", "doubtful"), [("faults", 6), ("signals", 1), ("selfmod", 0)])
def test_one_instruction_at_a_time(
    name: str, doubtful: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log then says which instruction it was that faulted, but for branches to where no code is."""
    program = build(name, tmp_path, "-static")
    folder = log_to(tmp_path / "log", monkeypatch)
    monkeypatch.setenv("QEMU_SINGLESTEP", "1")
    recording = record([program], tmp_path, SOME[0])
    assert recording.exit_status == 0
    trace = check(recording, tmp_path, SOME[0])
    check_libipt(trace, recording)
    assert check_log(trace, qemu_log.read(folder)) <= doubtful


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["branches", "signals"])
def test_recordings_of_each_form_are_the_truth(name: str, form: str, tmp_path: Path) -> None:
    recording = record([build(name, tmp_path, "-static")], tmp_path, form)
    assert recording.exit_status == 0
    check_libipt(check(recording, tmp_path, form), recording)


def _gzip(folder: Path, scale: int) -> list[Any]:
    data = folder / "data"
    lines = (f"{i * i % 9973} {i % 17} some words {i}\n" for i in range(1200 * scale))
    data.write_text("".join(lines))
    return ["gzip", "-c", data]


def _python(folder: Path, scale: int) -> list[Any]:
    code = f"print(sum(len(str(i * i)) for i in range({4000 * scale})))"
    return [sys.executable, "-S", "-E", "-c", code]


def _exceptions(folder: Path, scale: int) -> list[Any]:
    return [build("exceptions", folder)]


def _threads(folder: Path, scale: int) -> list[Any]:
    return [build("threads", folder), str(3000 * scale)]


def _gcc(folder: Path, scale: int) -> list[Any]:
    source = folder / "source.c"
    bodies = (f"int f{i}(int* y) {{ return y[{i}] > {i} ? y[0] : {i}; }}\n" for i in range(20 * scale))
    source.write_text("".join(bodies))
    return ["gcc", "-O1", "-c", "-o", folder / "source.o", source]


def _bash(folder: Path, scale: int) -> list[Any]:
    return ["bash", "-c", f"seq {300 * scale} | sed s/1/one/ | sort | uniq -c | tail -n 3; exit 5"]


def _luajit(folder: Path, scale: int) -> list[Any]:
    body = "t[i % 50] = (t[i % 50] or 0) + i; if i % 7 == 0 then s = s + #tostring(i) end"
    return ["luajit", "-e", f"local t, s = {{}}, 0 for i = 1, {20000 * scale} do {body} end print(s)"]


def _node(folder: Path, scale: int) -> list[Any]:
    loop = f"for (let i = 0; i < {10000 * scale}; i++) {{ s += String(i % 97).length * (i & 3) }}"
    return ["node", "-e", f"let s = 0; {loop} console.log(s)"]


def _static(folder: Path, scale: int) -> list[Any]:
    return [build("odd", folder, "-static"), str(500 * scale)]


# How it is made, and its exit status.
PROGRAMS: dict[str, tuple[Callable[[Path, int], list[Any]], int]] = {
    "gzip": (_gzip, 0),
    "python": (_python, 0),
    "exceptions": (_exceptions, 0),
    "threads": (_threads, 0),
    "gcc": (_gcc, 0),
    "bash": (_bash, 5),
    "static": (_static, 0),
    "luajit": (_luajit, 0),
    "node": (_node, 0),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form"),
    [(name, form_of(name, number)) for number, name in enumerate(PROGRAMS) if name != "node"],
)
def test_programs(name: str, form: str, tmp_path: Path) -> None:
    argv, status = command(name, tmp_path)
    recording = record(argv, tmp_path, form)
    assert recording.exit_status == status
    check_libipt(check(recording, tmp_path, form), recording)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form)
        for name in PROGRAMS
        for form in ("compressed-psb2k-cyc", "plain-psb1024k-cyc")
        # node's 115 million branches take a minute; luajit shows this form with JIT code.
        if (name, form) != ("node", "plain-psb1024k-cyc")
    ],
)
def test_true_times_with_cyc(
    name: str, form: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A part of benchmarks/slowdown: every logged time lies in the interval of its branch."""
    argv, status = command(name, tmp_path)
    recording = record(argv, tmp_path, form)
    assert recording.exit_status == status
    times = check_branches(ptkit.open(recording), tmp_path / "truth")
    record_property("branches", times.rows)
    assert times.rows > 0
    check_times(times)


@pytest.mark.slow
@pytest.mark.parametrize("truth", [True, False], ids=["timed", "short"])
@pytest.mark.parametrize("name", ["gzip", "exceptions", "threads", "bash", "luajit"])
def test_own_log_of_qemu_for_programs(
    name: str, truth: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv, status = command(name, tmp_path)
    folder = log_to(tmp_path / "log", monkeypatch)
    form = SOME[0] if truth else SOME[1]
    recording = record(argv, tmp_path, form, truth=truth)
    assert recording.exit_status == status
    trace = check(recording, tmp_path, form) if truth else ptkit.open(recording)
    assert len(trace.errors) == 0, str(trace.errors)
    check_log(trace, qemu_log.read(folder))


@pytest.mark.slow
@pytest.mark.parametrize("form", [SOME[0], SOME[1], SOME[3]])
@pytest.mark.parametrize("name", ["gzip", "static"])
def test_logs_of_other_runs_are_those_of_repeatable_programs(name: str, form: str, tmp_path: Path) -> None:
    """For a program that executes equal instructions in every run."""
    argv, _ = command(name, tmp_path, 5)
    (tmp_path / "other").mkdir()
    logged = record(argv, tmp_path / "other", "plain-psb1024k-untimed")
    recording = record(argv, tmp_path, form, truth=False)
    assert recording.instructions == logged.instructions
    trace = ptkit.open(recording)
    assert check_instructions(trace, tmp_path / "other" / "truth") == recording.instructions
    assert len(trace.errors) == 0, str(trace.errors)


@pytest.mark.skipif(not LARGE, reason="takes hours and 20 GB of disk: set PTKIT_LARGE_TESTS=1 to have it")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form"),
    [
        (name, form)
        for name, form in itertools.product(PROGRAMS, FORMS)
        if FORMS[form]["timing"] or name not in COMPILING
    ],
)
def test_every_program_in_every_form(name: str, form: str, tmp_path: Path) -> None:
    argv, status = command(name, tmp_path)
    recording = record(argv, tmp_path, form)
    assert recording.exit_status == status
    check_libipt(check(recording, tmp_path, form), recording)
    shutil.rmtree(tmp_path)


_COUNT = """
import pathlib, re, sys
import ptkit
trace = ptkit.open(sys.argv[1])
rows = sum(len(part) for part in trace.iter_branches(columns=["from_ip", "to_ip"], reuse=True))
# Not ru_maxrss: that begins with what the process had before it executed Python.
print(rows, re.search("VmHWM:(.*)kB", pathlib.Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
def test_fifty_million_branches(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Recorded, and counted in memory that does not grow with the trace."""
    argv, _ = command("gzip", tmp_path, 100)
    recording = ptkit.Recorder(argv, tmp_path / "out.ptk", backend="emulator", quiet=True).run()
    counted = subprocess.run(
        [sys.executable, "-c", _COUNT, str(recording.path)], capture_output=True, text=True, check=True
    )
    rows, kilobytes = map(int, counted.stdout.split())
    record_property("branches", rows)
    record_property("peak_kilobytes", kilobytes)
    print(f"{rows} branches, {recording.trace_bytes} bytes of trace, at most {kilobytes >> 10} MiB of memory")
    assert rows >= 50_000_000
    assert kilobytes << 10 < recording.trace_bytes + (400 << 20)  # of several threads
