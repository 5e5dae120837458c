"""The referee of call stacks, judged by what the programs say of themselves.

`tests/support/calls/call_truth.py` builds call trees from stack pointers. Here they are compared with the
programs' own counts, and with what `-finstrument-functions` logs of the same run.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from call_code import Code, code_of
from call_comparison import Side, differences, of_truth, report
from call_log import read_log
from call_truth import EndHow, Frames, true_frames
from compiling import PROGRAMS, build, compiled, compiled_by
from numpy.typing import NDArray

import ptkit
from ptkit import capture
from ptkit.selftest.logged import LoggedRecorder

pytestmark = pytest.mark.skipif(
    not any(one.name == "emulator" and one.available for one in capture.probe()),
    reason="no emulator here: " + "; ".join(f"{one.name}: {one.detail}" for one in capture.probe()),
)


def recorded(argv: list[str | Path], folder: Path) -> ptkit.Trace:
    """Record with the log of transfers beside the bundle; the program's output is in `folder`/out."""
    recording = LoggedRecorder(argv, folder / "out.ptk", backend="emulator", transfers=folder).run()
    assert recording.exit_status == 0
    assert not recording.warnings
    return ptkit.open(recording)


def truth(trace: ptkit.Trace, folder: Path, stream: int = 0) -> tuple[Frames, Code]:
    code = code_of(trace, trace.streams[stream].space)
    return true_frames(read_log(folder / f"stream-{stream}.transfers", code)), code


def counts(frames: Frames, code: Code) -> Counter[str]:
    """How often each function was entered."""
    return Counter(code.name(entry) for entry in frames.entry_ip.tolist() if entry)


def said(text: str) -> dict[str, int]:
    """Counts of the program: names and numbers."""
    return {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", text)}


INLINE = ("-mindirect-branch=thunk-inline",)  # retpolines within functions
_LINKS = {"links": ("first", "second", "third", "through", "conditional")}
_HANDLERS = {"inner": ("on_inner",), "alternate": ("on_alternate",), "mended": ("on_fault",)}
# Program, flags, and the functions of which the program counts frames under another name.
COUNTED: list[tuple[str, tuple[str, ...], dict[str, tuple[str, ...]]]] = [
    ("recursion", ("-O1",), {}),
    ("tails", ("-O2",), _LINKS),
    ("tails", ("-O0",), _LINKS),
    ("indirect", ("-O2",), {}),
    ("indirect", ("-O2", "-mindirect-branch=thunk"), {}),
    ("indirect", ("-O2", "-mfunction-return=thunk"), {}),
    ("indirect", ("-O1", "-mindirect-branch=thunk", "-mfunction-return=thunk"), {}),
    ("retpolines", ("-O1",), {}),
    ("retpolines", ("-O2", *INLINE, "-fjump-tables"), {}),
    ("retpolines", ("-O2", *INLINE, "-mindirect-branch-register", "-mfunction-return=thunk-inline"), {}),
    ("retpolines", ("-O0", *INLINE, "-mfunction-return=thunk"), {}),
    ("thunks", ("-O1",), {}),
    ("stubs", ("-O2", "-Wl,-z,lazy"), {}),
    ("stubs", ("-O2", "-Wl,-z,now"), {}),
    ("handlers", ("-O1",), _HANDLERS),
    ("coroutines", ("-O1",), {}),
    ("cancel", ("-O1",), {"entered": ("deep",), "cleaned": ("clean",)}),
    ("children", ("-O1",), {}),
]


# Output of programs beside numbers of frames.
NOT_FRAMES = {"plain", "left", "children", "status"}


@pytest.mark.parametrize(
    ("name", "flags", "other_names"), COUNTED, ids=[f"{name}{''.join(flags)}" for name, flags, _ in COUNTED]
)
def test_counts_of_the_program(
    name: str,
    flags: tuple[str, ...],
    other_names: dict[str, tuple[str, ...]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    program = build(f"calls/{name}", tmp_path, "-fcf-protection=none", *flags)
    trace = recorded([program], tmp_path)
    found: Counter[str] = Counter()
    for number, stream in enumerate(trace.streams):
        frames, code = truth(trace, tmp_path, number)
        assert_whole(frames)
        if stream.pid == trace.streams[0].pid:
            found += counts(frames, code)
    expected = said(capfd.readouterr().out)
    names = sorted(expected.keys() - NOT_FRAMES)
    assert names
    found_of = {name: sum(found[one] for one in other_names.get(name, (name,))) for name in names}
    assert found_of == {name: expected[name] for name in names}


def assert_whole(frames: Frames) -> None:
    """Children lie within their parents, one frame above."""
    children = np.flatnonzero(frames.parent >= 0)
    parents = frames.parent[children]
    assert ((parents < children) | (frames.depth[parents] < 0)).all()
    assert (frames.depth[children] == frames.depth[parents] + 1).all()
    assert (frames.begin[children] >= frames.begin[parents]).all()
    assert (frames.end[children] <= frames.end[parents]).all()
    assert (frames.instructions >= 0).all()


@pytest.mark.slow
def test_counts_of_goroutines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are seen in every thread; goroutines' stacks lie too near to each other to be told apart."""
    monkeypatch.setenv("GODEBUG", "asyncpreemptoff=1")
    trace = recorded([compiled_by("go", "calls/goroutines.go", tmp_path, "build")], tmp_path)
    found: Counter[str] = Counter()
    for number in range(len(trace.streams)):
        found += counts(*truth(trace, tmp_path, number))
    rounds, values, depth = 3, 5, 100
    assert found["main.leaf"] == rounds * (2 * values + 1) + rounds // 2
    # A function for which the stack has to grow is entered once more.
    assert rounds * (depth + 1) <= found["main.deep"] < 2 * rounds * (depth + 1)


def nesting(frames: Frames, own: NDArray[np.bool_]) -> list[int]:
    """How many of the chosen frames lie below each of them."""
    below = [0] * len(frames)
    for frame, parent in enumerate(frames.parent.tolist()):
        below[frame] = below[parent] + int(own[parent]) if parent >= 0 else 0
    return [below[frame] for frame in np.flatnonzero(own)]


# Whether every function that is entered logs that it is left.
INSTRUMENTED = {
    "recursion": True,
    "tails": True,
    "indirect": True,
    "stubs": True,
    "unwind": True,
    "jumps": False,
    "coroutines": False,
}


@pytest.mark.parametrize("name", INSTRUMENTED)
def test_events_of_instrumented_functions(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Functions are entered in the order, and in the frames, that the instrumented program logs."""
    source = next((PROGRAMS / "calls").glob(f"{name}.c*"))
    hooks = compiled(tmp_path / "entries.o", "-O1", "-c", PROGRAMS / "calls" / "entries.c")
    flags = ("-O1", "-fcf-protection=none", "-finstrument-functions")
    program = compiled(tmp_path / name, *flags, source, hooks)
    monkeypatch.setenv("ENTRIES", str(tmp_path / "entries"))
    frames, _ = truth(recorded([program], tmp_path), tmp_path)
    events = np.fromfile(tmp_path / "entries", np.uint64).reshape(-1, 3)
    entered = events[:, 0] == 1
    assert np.count_nonzero(entered) > 20
    own = np.isin(frames.entry_ip, np.unique(events[:, 1]))
    assert np.array_equal(frames.entry_ip[own], events[entered, 1])
    if INSTRUMENTED[name]:
        steps = np.where(entered, 1, -1)
        assert nesting(frames, own) == (np.cumsum(steps) - 1)[entered].tolist()
    assert capfd.readouterr().out


def test_differences_are_found(tmp_path: Path) -> None:
    """A frame that is missing, one that is too many, and wrong cells of two others."""
    trace = recorded([build("calls/recursion", tmp_path)], tmp_path)
    frames, code = truth(trace, tmp_path)
    true = of_truth(frames)
    assert report(true, of_truth(frames), code) == ""
    assert len(true) > 400
    # Frames without callees, so that nothing else is wrong because of them.
    leaves = np.setdiff1d(np.arange(len(true)), true.columns["parent"])
    gone, deeper, left = leaves[np.searchsorted(leaves, [100, 200, 300])].tolist()
    without = np.arange(len(true)) != gone
    new_number = np.cumsum(without) - 1
    found = Side({name: column[without].copy() for name, column in true.columns.items()})
    found.columns["parent"] = np.where(found.columns["parent"] < 0, -1, new_number[found.columns["parent"]])
    found.columns["depth"][deeper - 1] += 1
    found.columns["end_how"][left - 1] = EndHow.LEFT
    result = differences(found, true)
    assert result.kinds["frame is missing"] == 1
    assert result.kinds["depth"] == result.kinds["end_how"] == 1
    assert result.first == (gone, gone)
    assert "frame is missing" in report(found, true, code)
    assert differences(true, found).kinds["no true frame"] == 1
