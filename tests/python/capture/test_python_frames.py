"""Python functions in the emulator: as many calls as sys.setprofile counts, and none of the evaluation."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interpreters import interpreter
from rounds import needs_emulator

import ptkit
from ptkit.cli.main import main

pytestmark = needs_emulator

SCRIPT = Path(__file__).resolve().parents[2] / "programs" / "times" / "counted.py"
FILE = f" ({SCRIPT.name})"
# What stands between Python functions.
EVALUATION = {"_PyEval_EvalFrameDefault", "PyObject_Vectorcall", "_PyEval_Vector", "_PyFunction_Vectorcall"}
TRAMPOLINE = "py_trampoline_evaluator"


def has_perf(version: str) -> Path:
    found = interpreter(version)
    if found is None:
        pytest.skip(f"python{version} is not installed")
    return found


@pytest.fixture(scope="module", params=[("3.12", "perf"), ("3.13", "perf_jit")], ids=str)
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, ptkit.Trace]:
    """An interpreter, and the script's recording with it."""
    version, option = request.param
    python = has_perf(version)
    folder = tmp_path_factory.mktemp("python")
    argv = [python, "-I", "-S", "-B", "-X", option, SCRIPT]
    trace = ptkit.record(argv, output=folder / "out.ptk", backend="emulator", quiet=True)
    assert trace.recording is not None
    assert trace.recording.exit_status == 0
    for name in ("perf-{}.map", "jit-{}.dump"):
        (Path("/tmp") / name.format(trace.streams[0].pid)).unlink(missing_ok=True)
    return python, ptkit.open(folder / "out.ptk")  # the bundle alone


def counts_of(functions: ptkit.Table) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, count in zip(functions["function"].tolist(), functions["count"].tolist(), strict=True):
        counts[name] += count  # lambdas of one function have the same name
    return counts


def own(counts: Counter[str]) -> dict[str, int]:
    """Those of the script's functions, without what runs before the script counts them."""
    found = {name.removesuffix(FILE): count for name, count in counts.items() if name.endswith(FILE)}
    assert [found.pop(name) for name in ("<module>", "Shape", "decorated")] == [1, 1, 1]
    return found


def test_counts_are_those_of_setprofile(recorded: Any, tmp_path: Path) -> None:
    python, trace = recorded
    assert len(trace.errors) == 0
    subprocess.run([python, "-I", "-S", "-B", SCRIPT, tmp_path / "counts.json"], check=True)
    wanted = json.loads((tmp_path / "counts.json").read_text())
    for frames in ("python", "mixed"):
        found = own(counts_of(trace.functions(frames=frames)))
        if python.name == "python3.13":
            # Where it has seen the class, the caller's evaluator executes __init__() without a trampoline.
            assert 0 < found["Shape.__init__"] <= wanted["Shape.__init__"]
            found["Shape.__init__"] = wanted["Shape.__init__"]
        assert found == wanted


def test_a_script_is_a_module(recorded: Any) -> None:
    _, trace = recorded
    every = trace.functions(frames="python")
    for module in (SCRIPT.name, str(SCRIPT), "count*.py"):
        alone = trace.functions(frames="python", module=module)
        assert sorted(alone["function"].tolist()) == sorted(
            name for name in every["function"].tolist() if name.endswith(FILE)
        )
        assert counts_of(alone) == Counter(
            {name: count for name, count in counts_of(every).items() if name.endswith(FILE)}
        )
    assert len(trace.edges(module=SCRIPT.name)) > 0
    with pytest.raises(ptkit.ConfigError, match=r"no module 'other\.py' in this trace"):
        trace.functions(module="other.py")


def test_views_have_the_same_instructions(recorded: Any) -> None:
    trace = recorded[1]
    native, mixed, python = (trace.functions(frames=name) for name in ("native", "mixed", "python"))
    total = int(native["self_instructions"].sum())
    for table in (mixed, python):
        assert int(table["self_instructions"].sum()) == total
    names = [set(table["function"].tolist()) for table in (native, mixed, python)]
    assert {*EVALUATION, TRAMPOLINE} <= names[0]
    assert names[1] >= EVALUATION
    assert TRAMPOLINE not in names[1]
    assert not (EVALUATION | {TRAMPOLINE}) & names[2]
    assert {"builtin_sorted", "list_sort"} & names[2]
    # Functions that are shown in all views have the same instructions in all, and the evaluation's own are
    # those of Python functions above all.
    fib = [instructions_of(table, f"fib{FILE}") for table in (native, mixed, python)]
    assert fib[0][0] == fib[1][0] == fib[2][0]
    assert fib[0][1] == fib[1][1] < fib[2][1] <= fib[2][0]


def instructions_of(functions: ptkit.Table, name: str) -> tuple[int, int]:
    rows = np.array([one == name for one in functions["function"].tolist()])
    return int(functions["instructions"][rows].sum()), int(functions["self_instructions"][rows].sum())


def test_trees_and_calls_agree(recorded: Any) -> None:
    trace = recorded[1]
    functions = counts_of(trace.functions(frames="python"))
    tree = trace.call_tree(frames="python")
    assert counts_of(tree) == functions
    whole = trace.calls(frames="python")
    for decoded, summed in ((trace.functions(frames="python"), whole.functions()), (tree, whole.tree())):
        for column in ("function", "count", "instructions", "self_instructions"):
            assert decoded[column].tolist() == summed[column].tolist()
    calls = trace.calls(frames="python", columns=["id", "parent", "depth", "entry_symbol", "tsc", "flags"])
    names = calls["entry_symbol"].tolist()
    assert own(Counter(name for name in names if name is not None)) == own(functions)
    # fib() is below fib() or a genexpr of work(), whatever evaluates them.
    row_of = {id: row for row, id in enumerate(calls["id"].tolist())}
    below = Counter()
    for row in np.flatnonzero([name == f"fib{FILE}" for name in names]):
        parent = row_of[int(calls["parent"][row])]
        assert calls["depth"][row] == calls["depth"][parent] + 1
        below[names[parent]] += 1
    assert set(below) == {f"{name}{FILE}" for name in ("fib", "main", "work.<locals>.<genexpr>")}
    assert below[f"work.<locals>.<genexpr>{FILE}"] == 10


@pytest.mark.parametrize("frames", ["python", "mixed"])
def test_timelines_have_the_same_calls(recorded: Any, frames: str) -> None:
    trace = recorded[1]
    columns = ["id", "parent", "how", "flags", "instructions", "tsc"]
    calls = trace.calls(frames=frames, columns=columns)
    slices = trace.call_timeline(frames=frames).columns()
    order = np.argsort(slices["id"])
    for name in ("id", "how", "instructions"):
        assert (slices[name][order] == calls[name]).all(), name
    path: list[int] = []
    parents = {}
    for number, depth in zip(slices["id"].tolist(), slices["depth"].tolist(), strict=True):
        del path[depth:]
        parents[number] = path[-1] if path else None
        path.append(number)
    wanted = zip(*(calls[name].tolist() for name in ("id", "parent_known", "parent")), strict=True)
    assert parents == {number: parent if known else None for number, known, parent in wanted}


def test_on_the_terminal(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded[1].source
    assert main(["functions", str(path), "--frames", "python", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith(f"  fib{FILE}") for line in lines)
    assert not any("_PyEval_EvalFrameDefault" in line for line in lines)
    assert main(["tree", str(path), "--frames", "mixed", "--all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.endswith(f" fib{FILE}") for line in lines)
    assert not any(TRAMPOLINE in line for line in lines)


def test_without_python_names(tmp_path: Path) -> None:
    trace = ptkit.record(["true"], output=tmp_path / "true.ptk", backend="emulator")
    for view in (trace.functions, trace.call_tree, trace.calls):
        with pytest.raises(ptkit.ConfigError, match="-X perf"):
            view(frames="python")
    with pytest.raises(ptkit.ConfigError, match="native"):
        trace.functions(frames="interpreted")


@pytest.fixture(scope="module")
def slow_each(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A recording of Python functions of which each 100th call is slow."""
    folder = tmp_path_factory.mktemp("slow_each")
    argv = [has_perf("3.12"), "-I", "-S", "-B", "-X", "perf", SCRIPT.with_name("slow_each.py")]
    trace = ptkit.record(argv, output=folder / "out.ptk", backend="emulator", quiet=True)
    (Path("/tmp") / f"perf-{trace.streams[0].pid}.map").unlink(missing_ok=True)
    return str(folder / "out.ptk")


def test_slow_calls_of_a_python_function(slow_each: str, capsys: pytest.CaptureFixture[str]) -> None:
    trace = ptkit.open(slow_each)
    found = trace.compare("handle")
    assert (found.function, found.calls, len(found.slow)) == ("handle (slow_each.py)", 500, 5)
    load = next(one for one in found.functions if one.name == "load (slow_each.py)")
    assert (load.slow_count, load.fast_count) == (1, 0)
    assert trace.compare("handle (slow_each.py)").functions == found.functions
    assert main(["functions", slow_each, "--slow", "handle"]) == 0
    assert capsys.readouterr().out.startswith("handle (slow_each.py): 500 calls; 5 slow")
    assert main(["functions", slow_each, "--histogram", "handle"]) == 0
    bins = [line.split() for line in capsys.readouterr().out.splitlines() if "%" in line]
    assert [int(bins[-1][1]), sum(int(one[1]) for one in bins)] == [5, 500]
    for option in ("--slow", "--histogram"):
        assert main(["functions", slow_each, option, "handle*(slow_each.py)"]) == 2
        assert "'handle (slow_each.py)', 'handle_all (slow_each.py)'" in capsys.readouterr().err
