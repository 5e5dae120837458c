"""Names of JIT code, from the files that programs write: kept in recordings, by time."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from rounds import needs_emulator

import ptkit

pytestmark = needs_emulator

PYTHON, OTHER = "Class.second (second.py)", "other /srv/work/other.js:12"
COUNTS = {"first": 3, PYTHON: 5, OTHER: 2}
MAPS = Path("/tmp")  # where JIT compilers write, whatever $TMPDIR is


def record(argv: list[Any], output: Path, **options: Any) -> ptkit.Trace:
    """Record a program, and open the bundle alone: the files that the program has left are removed."""
    trace = ptkit.record(argv, output=output, quiet=True, **{"backend": "emulator", **options})
    for pid in {stream.pid for stream in trace.streams}:
        (MAPS / f"perf-{pid}.map").unlink(missing_ok=True)
    assert trace.recording is not None
    assert trace.recording.exit_status == 0
    return ptkit.open(output)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("jit_names", tmp_path_factory.mktemp("jit_names"), "-static")


def counts_of(trace: ptkit.Trace) -> dict[str, int]:
    functions = trace.functions()
    return dict(zip(functions["function"].tolist(), functions["count"].tolist(), strict=True))


@pytest.mark.parametrize("backend", ["emulator", "step"])
def test_names_by_time(program: Path, tmp_path: Path, backend: str) -> None:
    trace = record([program], tmp_path / "out.ptk", backend=backend)
    pid = trace.streams[0].pid
    assert len(trace.errors) == 0
    functions = trace.functions()
    found = {name: count for name, count in counts_of(trace).items() if name in COUNTS}
    assert found == COUNTS
    jit = functions[functions["module"] == f"perf-{pid}.map"]
    assert set(jit["function"].tolist()) == set(COUNTS)
    # Two functions are at one address, and each row has the one of its time. The first branch to the second
    # one comes before that is executed.
    branches = trace.branches(columns=["to_ip", "to_symbol", "kind", "tsc"])
    calls = branches[branches["kind"] == ptkit.BranchKind.CALL_INDIRECT]
    names = [name for name in calls["to_symbol"].tolist() if name in COUNTS]
    assert names[:3] + names[4:] == ["first"] * 3 + [PYTHON] * 4 + [OTHER] * 2
    frames = trace.calls(columns=["entry_symbol", "tsc"])["entry_symbol"].tolist()
    assert [name for name in frames if name in COUNTS] == ["first"] * 3 + [PYTHON] * 5 + [OTHER] * 2
    ips = set(calls["to_ip"][[name in ("first", PYTHON) for name in calls["to_symbol"].tolist()]].tolist())
    assert len(ips) == 1
    assert [name for name, *_ in trace.symbols("Class.second")] == [PYTHON]


def test_redacted_names_have_no_path(program: Path, tmp_path: Path) -> None:
    record([program], tmp_path / "out.ptk")
    ptkit.redact(tmp_path / "out.ptk", tmp_path / "redacted.ptk")
    record([program], tmp_path / "live.ptk", redact=True)
    for path in (tmp_path / "redacted.ptk", tmp_path / "live.ptk"):
        assert b"/srv/work" not in path.read_bytes()
        names = {text for text in ptkit.open(path).functions()["function"].tolist() if text is not None}
        assert {"first", "Class.second", "other"} <= names
        assert not any("work" in name for name in names)


def test_foreign_names_are_not_taken(program: Path, tmp_path: Path) -> None:
    # Lines that an earlier process with this PID wrote, at all addresses.
    script = f'echo "1000 7ffffffe0000 stale" > /tmp/perf-$$.map; exec {program}'
    counts = counts_of(record(["sh", "-c", script], tmp_path / "stale.ptk"))
    assert "stale" not in counts
    assert {name: counts[name] for name in COUNTS} == COUNTS
    # A link to a file in another folder.
    target = tmp_path / "target"
    target.write_text("")
    script = f"ln -s {target} /tmp/perf-$$.map; exec {program}"
    with pytest.warns(ptkit.PtkitWarning, match="names of JIT code is no regular file"):
        trace = record(["sh", "-c", script], tmp_path / "link.ptk")
    assert target.read_text()
    assert not set(counts_of(trace)) & set(COUNTS)


def needs(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def test_node(tmp_path: Path) -> None:
    script = tmp_path / "script.js"
    script.write_text(
        "function inner(n) { return n * 2 + 1; }\n"
        "function outer(n) { let sum = 0; for (let i = 0; i < n; ++i) sum += inner(i); return sum; }\n"
        "%NeverOptimizeFunction(inner);\n"
        "if (outer(50) !== 2500) process.exit(1);\n"
    )
    options = ["--allow-natives-syntax", "--perf-basic-prof", "--interpreted-frames-native-stack"]
    options += ["--no-sparkplug", "--no-opt", "--single-threaded"]
    options += ["--no-logfile-per-isolate", f"--logfile={tmp_path / 'v8.log'}"]
    counts = counts_of(record([needs("node"), *options, script], tmp_path / "node.ptk"))
    inner = [name for name in counts if name is not None and re.match(r"JS:[~*^]?inner .*script\.js:1", name)]
    assert len(inner) == 1
    assert counts[inner[0]] == 50
    assert any(re.match(r"JS:[~*^]?outer .*script\.js:2", name or "") for name in counts)


def test_jvm(tmp_path: Path) -> None:
    # The JVM writes its map at its end, with the interpreter's code and the methods that it has compiled.
    options = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "-XX:TieredStopAtLevel=1"]
    options += ["-XX:+UseSerialGC", "--list-modules"]
    trace = record([needs("java"), *options], tmp_path / "java.ptk")
    assert len(trace.errors) == 0
    functions = trace.functions()
    modules = functions["module"].tolist()
    names = [
        name
        for name, module in zip(functions["function_full"].tolist(), modules, strict=True)
        if is_map(module)
    ]
    assert {"Interpreter", "StubRoutines (1)"} <= set(names)
    assert any(name.endswith(" java.lang.String.hashCode()") for name in names)


def is_map(module: str | None) -> bool:
    return re.fullmatch(r"perf-\d+\.map", module or "") is not None


def test_luajit(tmp_path: Path) -> None:
    # Traces with side exits, which jump from one to the other.
    script = (
        "local sum = 0 for i = 1, 20000 do if i % 3 == 0 then sum = sum + 1 elseif i % 5 == 0 then "
        "sum = sum + 2 end end assert(sum == 6666 + 2 * 2667)"
    )
    trace = record([needs("luajit"), "-e", script], tmp_path / "lua.ptk")
    assert len(trace.errors) == 0
    calls = trace.calls(columns=["self_instructions", "entry_symbol", "tsc"])
    instructions = len(trace.instructions(columns=["cls"]))
    assert int(calls["self_instructions"].sum()) == instructions
    assert int(trace.functions()["self_instructions"].sum()) == instructions
