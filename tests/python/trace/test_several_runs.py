"""Two runs of one program against each other, at other load addresses."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from compiling import PROGRAMS, compiled, line_with
from executed_parts import executed_part
from golden_recordings import FOLDER, open_recording
from interpreters import interpreter
from perf_data import aux_streams
from reduced import unpack

import ptkit

SOURCE = PROGRAMS / "branches" / "parting.c"
TEXTS = ["", *SOURCE.read_text().splitlines()]


def line(text: str) -> int:
    return line_with(SOURCE, f"/* the {text} */")


class Runs:
    """Recordings of one program; each is made once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.program = compiled(
            folder / "parting", "-g", "-O1", "-pthread", "-Wl,--build-id", "-fno-inline", SOURCE
        )
        padding = folder / "padding.c"
        padding.write_text("char padding[9000000] = {1};\n")
        self._padding = compiled(folder / "padding.so", "-shared", "-fPIC", padding)
        self.trace = cache(self._trace)

    def _trace(self, *words: str, moved: bool = False) -> ptkit.Trace:
        """A recording; moved: with another library before the C library, and a larger environment."""
        path = self._folder / f"{'-'.join(words)[:80]}{moved}.ptk"
        command = [str(self.program), *words]
        with pytest.MonkeyPatch.context() as patch:
            if moved:
                patch.setenv("LD_PRELOAD", str(self._padding))
                patch.setenv("PADDING", "x" * 40_000)
            ptkit.Recorder(command, path, backend="emulator", quiet=True).run()
        return ptkit.open(path)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("diff"))


def bases(trace: ptkit.Trace) -> dict[str, int]:
    return {Path(one.path).name: one.base for one in trace.info.modules}


def test_runs_lie_elsewhere(runs: Runs) -> None:
    here, there = bases(runs.trace()), bases(runs.trace(moved=True))
    assert here["libc.so.6"] != there["libc.so.6"]


def test_equal_runs_are_equal(runs: Runs) -> None:
    trace = runs.trace()
    found = ptkit.diff(trace, trace)
    assert found.equal is True
    assert found.unjudged == []
    assert len(found.divergences) == 0
    assert found.first() is None
    assert int(found.threads["branches"].sum()) == sum(
        int((part["kind"] != ptkit.BranchKind.ASYNC).sum()) for part in trace.iter_branches(columns=["kind"])
    )
    assert "no difference" in str(found)


def test_equal_runs_at_other_addresses(runs: Runs) -> None:
    found = ptkit.diff(runs.trace(), runs.trace(moved=True))
    assert found.equal is False  # the loader had another library to load
    assert not found.divergences["is_own"].any()
    own = ptkit.diff(runs.trace(), runs.trace(moved=True), own=True)
    assert own.equal is True
    assert ptkit.diff(runs.trace(), runs.trace(moved=True), module="parting").equal is True


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(
    ("word", "text", "function", "kind"),
    [
        ("number", "number", "step", "conditional"),
        ("signal", "signal", "main", "conditional"),
        ("sort", "order", "compare", "conditional"),
        ("exit", "exit", "main", "conditional"),
        ("trips", "trips", "counts", "conditional"),
    ],
)
def test_planted_differences(runs: Runs, word: str, text: str, function: str, kind: str, moved: bool) -> None:
    # The same number of words, and words of one length, so that all else is equal.
    found = ptkit.diff(runs.trace("x" * len(word)), runs.trace(word, moved=moved))
    assert found.equal is False
    symbols = ptkit.diff(runs.trace("x" * len(word)), runs.trace(word, moved=moved), symbol=function)
    assert len(symbols.divergences) > 0
    rows = found.divergences
    [of_line] = [
        number
        for number in range(len(rows))
        if rows["is_own"][number] and (rows["line"][number], rows["kind"][number]) == (line(text), kind)
    ][:1]
    first = found.divergence(of_line)
    assert first.row["function_full"] == function
    assert first.row["source"] == str(SOURCE)
    for stack in (first.a_stack, first.b_stack):
        assert stack[0].function == function
        assert stack[0].line == line(text)
    # Nothing but the comparison of the word itself is before it in the program's own code.
    before = rows[:of_line]
    assert set(before[before["is_own"]].named("function")) <= {"main", function}


def test_stacks_have_callers(runs: Runs) -> None:
    found = ptkit.diff(runs.trace("xxxxxx"), runs.trace("number"))
    first = ptkit.diff(runs.trace("xxxxxx"), runs.trace("number"), symbol="step").first()
    assert first is not None
    assert [frame.function for frame in first.a_stack[:2]] == ["step", "main"]
    assert [frame.line for frame in first.a_stack] == [frame.line for frame in first.b_stack]
    caller = TEXTS.index("        step(number + (number == planted) + (number == planted - 100));")
    assert first.a_stack[1].line in (caller, caller - 1)
    assert {first.row["a_target"].split()[0], first.row["b_target"].split()[0]} == {"step"}
    assert found.divergences["a_branches"].max() < 200


def test_a_signal_is_one_divergence_that_joins(runs: Runs) -> None:
    found = ptkit.diff(runs.trace("xxxxxx"), runs.trace("signal"), own=True)
    assert found.divergences.named("joined") == ["in the same frame"] * len(found.divergences)
    assert found.divergences.named("line") == [line("signal")]


def test_a_library_is_named_with_its_caller(runs: Runs) -> None:
    short, long = runs.trace("copy", "x" * 3), runs.trace("copy", "x" * 300)
    found = ptkit.diff(short, long)
    assert not found.divergences["is_own"].any()
    rows = found.divergences
    assert any(own is not None and "main" in own for own in rows.named("own"))
    first = found.first()
    assert first is not None
    assert first.row["own"] is not None  # not what the loader did with the arguments before
    assert "main" in [frame.function for frame in first.a_stack]
    assert any(frame.line == line("length") for frame in first.a_stack)


def test_threads_are_paired_by_their_first_function(runs: Runs) -> None:
    found = ptkit.diff(runs.trace("xxxxxxx"), runs.trace("threads"))
    threads = found.threads
    assert len(threads) == 4
    assert sorted(map(str, threads.named("role")[1:])) == ["counts", "waits", "waits"]
    paired = (threads["a_known"] & threads["b_known"]).tolist()
    assert paired == [True, True, True, False]
    assert threads.named("a_tid")[3] is None
    assert found.equal is False
    assert "only in b" in str(found)
    of_counts = threads.named("role").index("counts")
    assert threads["divergences"][of_counts] == 0


def test_one_thread_alone(runs: Runs) -> None:
    a, b = runs.trace("xxxxx"), runs.trace("trips")
    whole = ptkit.diff(a, b)
    tid = int(whole.threads["b_tid"][whole.threads.named("role").index("counts")])
    found = ptkit.diff(a, b, tid=tid)
    assert len(found.threads) == 1
    assert found.divergences.named("line") == [line("trips")]
    assert found.divergences.named("function") == ["counts"]
    [row] = [found.divergence(0).row]
    assert row["b_branches"] - row["a_branches"] >= 20  # ten more trips
    with pytest.raises(ptkit.ConfigError, match="tid=1: neither run has such a thread"):
        ptkit.diff(a, b, tid=1)


def test_context_is_what_ran(runs: Runs) -> None:
    a, b = runs.trace("xxxxxx"), runs.trace("number")
    found = ptkit.diff(a, b, symbol="step")
    context = found.context(0, 4)
    assert len(context.before) == len(context.after) == 4
    assert context.before[-1][0] == context.before[-1][1]
    left, right = context.after[0]
    assert left != right
    assert left.startswith("step parting.c:")
    text = str(context)
    assert text.count("|") == 10
    assert context._repr_html_().count("<tr>") == 10
    with pytest.raises(ptkit.ConfigError, match="divergence 999: there"):
        found.context(999)


def test_numbers_are_those_of_branches(runs: Runs) -> None:
    a, b = runs.trace("xxxxxx"), runs.trace("number")
    found = ptkit.diff(a, b, symbol="step")
    for side, trace in (("a", a), ("b", b)):
        tid = int(found.divergences[f"{side}_tid"][0])
        rows = trace.branches(tid=tid, columns=["from_ip", "instruction", "kind"])
        rows = rows[rows["kind"] != ptkit.BranchKind.ASYNC]
        row = int(found.divergences[f"{side}_branch"][0])
        assert rows["instruction"][row] == found.divergences[f"{side}_instruction"][0]
        located = trace.locate(rows["from_ip"][row : row + 1])
        assert located.rva[0] == found.divergences["rva"][0]


def test_time_and_parts(runs: Runs) -> None:
    a, b = runs.trace("xxxxxx"), runs.trace("number")
    assert a.info.first_tsc is not None
    assert a.info.last_tsc is not None
    span = a.info.first_tsc, a.info.last_tsc + 1
    whole = ptkit.diff(a, b)
    assert len(ptkit.diff(a, b, time=span).divergences) == len(whole.divergences)
    middle = (span[0] + span[1]) // 2
    halves = [ptkit.diff(a, b, time=time) for time in ((span[0], middle), (middle, span[1]))]
    assert sum(len(one.divergences) for one in halves) in (len(whole.divergences), len(whole.divergences) + 1)
    events = a.events(stream=0)
    for part in (
        executed_part(a, 0, 50),
        a.touching("step"),
        a.slice(after=events[:1], before=events[-1:]),
    ):
        assert ptkit.diff(part, part).equal is True
    found = ptkit.diff(executed_part(a, 0, 50), executed_part(a, 0, 60))
    assert set(found.divergences.named("a_way")) == {"end"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [(3, "a is int: diff() compares two recordings"), (np.zeros(3), "a is ndarray: diff() compares")],
)
def test_refusals(runs: Runs, wrong: object, message: str) -> None:
    with pytest.raises(ptkit.ConfigError) as caught:
        ptkit.diff(wrong, runs.trace())  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_compare_names_diff(runs: Runs) -> None:
    trace = runs.trace()
    with pytest.raises(ptkit.ConfigError, match=r"two runs are compared by ptkit\.diff\(a, b\)"):
        trace.compare(trace)  # type: ignore[arg-type]


# Recordings of perf: streams of processors, which several threads share.


def test_streams_of_processors(tmp_path: Path) -> None:
    trace = open_recording("all", tmp_path)
    found = ptkit.diff(trace, trace)
    assert found.equal is True
    assert sorted(found.threads.named("a_tid")) == [96, 97, 99]
    per_thread = {
        tid: sum(
            int(((part["from_ip"] < 2**63) & (part["kind"] != ptkit.BranchKind.ASYNC)).sum())
            for part in trace.iter_branches(tid=tid, columns=["from_ip", "kind"])
        )
        for tid in found.threads.named("a_tid")
    }
    assert dict(zip(found.threads.named("a_tid"), found.threads.named("branches"), strict=True)) == per_thread


def test_two_recordings_of_one_program(tmp_path: Path) -> None:
    traces = [open_recording(name, tmp_path) for name in ("user", "tips")]
    assert traces[0].info.modules[-1].base != traces[1].info.modules[-1].base
    found = ptkit.diff(*traces)
    assert found.equal is True
    assert int(found.threads["branches"].sum()) > 10_000


@pytest.mark.filterwarnings("ignore::ptkit.PtkitWarning")
def test_damage_is_no_divergence(tmp_path: Path) -> None:
    del tmp_path
    import lzma

    data = lzma.decompress((FOLDER / "timed.perf.data.xz").read_bytes())
    [(_, stream)] = aux_streams(data).items()
    images = [unpack(FOLDER / "timed.npz").images]
    damaged = bytearray(stream)
    begin = len(stream) // 2
    damaged[begin : begin + 200] = b"\xff" * 200
    whole, broken = (ptkit.open(bytes(one), images=images) for one in (stream, damaged))
    assert len(broken.gaps) > len(whole.gaps)
    found = ptkit.diff(whole, broken)
    assert found.equal is None
    assert len(found.divergences) == 0
    assert any("what ran there is not known" in sentence for sentence in found.unjudged)
    assert int(found.threads["branches"].sum()) > 5000
    assert int(found.threads["a_unjudged"].sum()) > 0


def test_hostile_names_do_nothing_in_a_notebook(runs: Runs, tmp_path: Path) -> None:
    name = tmp_path / "<img src=x onerror=alert(1)>\x1b[2J"
    os.link(runs.program, name)
    paths = []
    for word in ("xxxxxx", "number"):
        path = tmp_path / f"{word}.ptk"
        ptkit.Recorder([str(name), word], path, backend="emulator", quiet=True).run()
        paths.append(path)
    found = ptkit.diff(*paths)
    first = found.first()
    assert first is not None
    for shown in (found, first, found.context(0, 3), found.threads, found.divergences):
        html = shown._repr_html_()
        assert "<img" not in html
        assert "\x1b" not in html
        assert "\x1b" not in str(shown)


PYTHON_SOURCE = """\
import sys

def odd(number):
    return number * 3 + 1

def even(number):
    return number // 2

def step(number):
    if number & 1:
        return odd(number)
    return even(number)

def main(planted):
    for number in range(60):
        step(number + 1 if number == planted else number)

main(30 if sys.argv[1] == "b" else -1)
"""


def test_functions_of_python(tmp_path: Path) -> None:
    python = interpreter("3.12")
    if python is None:
        pytest.skip("python3.12 is not installed")
    script = tmp_path / "app.py"
    script.write_text(PYTHON_SOURCE)
    traces = []
    for name, word in (("one", "a"), ("same", "c"), ("other", "b")):
        path = tmp_path / f"{name}.ptk"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONHASHSEED", "0")
            patch.setenv("PADDING", name * 500)
            command = [str(python), "-X", "perf", "-S", str(script), word]
            ptkit.Recorder(command, path, backend="emulator", quiet=True).run()
        traces.append(ptkit.open(path))
    same = ptkit.diff(traces[0], traces[1], frames="python")
    assert same.equal is True
    assert int(same.threads["branches"].sum()) > 500
    found = ptkit.diff(traces[0], traces[2], frames="python")
    assert found.divergences.named("function") == ["step (app.py)"]
    assert found.divergences.named("a_target") == ["even (app.py)"]
    assert found.divergences.named("b_target") == ["odd (app.py)"]
    first = found.first()
    assert first is not None
    assert [str(frame) for frame in first.a_stack[:3]] == [
        "step (app.py)",
        "main (app.py)",
        "<module> (app.py)",
    ]
    counts = dict(zip(found.functions.named("function"), found.functions["b_count"].tolist(), strict=True))
    assert (counts["odd (app.py)"], counts["even (app.py)"]) == (31, 29)
