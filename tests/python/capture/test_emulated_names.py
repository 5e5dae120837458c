"""Names in recordings: functions of several programs at the same addresses, and threads over time."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import build
from perf_script import NO_CACHE, PERF, needs_perf
from rounds import needs_emulator, opened

import ptkit

pytestmark = needs_emulator

STAGES = ("first_work", "second_work", "third_work")


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A program that runs two others, which lie at the same addresses; the last one has no symbols."""
    folder = tmp_path_factory.mktemp("stages")
    programs = []
    for name in STAGES:
        (folder / name).mkdir()
        strip = ["-s"] if name == "third_work" else []
        built = build("stages", folder / name, f"-DWORK={name}", "-static", *strip)
        programs.append(built.rename(folder / name / f"run_{name}"))
    return ptkit.record(programs, output=folder / "out.ptk", backend="emulator", quiet=True)


def programs_of(table: ptkit.Table) -> list[str]:
    """What the program of each row's process calls its work."""
    pids = sorted(set(table["pid"].tolist()))
    assert len(pids) == 3
    # Before it executes its program, a child has the code of its parent.
    return [STAGES[pids.index(pid)] for pid in table["pid"].tolist()]


def test_functions_of_several_programs(stages: ptkit.Trace) -> None:
    branches = stages.branches()
    found = {text for text in branches["from_symbol"].tolist() if text in STAGES}
    assert found == {"first_work", "second_work"}
    modules = branches["from_module"].tolist()
    rows = zip(branches["from_symbol"].tolist(), modules, programs_of(branches), strict=True)
    for symbol, module, program in rows:
        if symbol in STAGES:
            assert symbol in (program, "first_work")  # a child before its exec
            assert module == f"run_{symbol}"
    assert {"run_first_work", "run_second_work", "run_third_work"} <= set(modules)
    stripped = set(branches.where(from_module="run_third_work")["from_symbol"].tolist()) - {None}
    assert stripped
    assert all(re.fullmatch(r"run_third_work!0x[0-9a-f]+", name) for name in stripped)
    counts = (
        stages.edges()
        .to_pandas(["from_symbol", "count"])
        .groupby("from_symbol", observed=True)["count"]
        .sum()
    )
    for name in STAGES[:2]:
        assert counts[name] == len(branches.where(from_symbol=name))
        assert counts[name] == len(
            stages.branches(symbol=name, columns=["from_symbol"]).where(from_symbol=name)
        )


def test_addresses_of_several_programs_need_their_space(stages: ptkit.Trace) -> None:
    edges = stages.edges()
    with pytest.raises(
        ptkit.ConfigError, match=r"in address space \d+ and .* in address space \d+: .*table\['space'\]"
    ):
        stages.symbolize(edges["from_ip"], offsets=False)
    with pytest.raises(ptkit.ConfigError, match="address space"):
        stages.modules(edges["from_ip"])
    assert (
        stages.symbolize(edges["from_ip"], space=edges["space"], offsets=False)
        == edges["from_symbol"].tolist()
    )
    assert stages.modules(edges["to_ip"], space=edges["space"]) == edges["to_module"].tolist()


def test_instructions_are_named_without_other_columns(stages: ptkit.Trace) -> None:
    whole = stages.instructions()
    for name in ("symbol", "module"):
        parts = [part[name] for part in stages.iter_instructions(columns=[name], rows=10_000)]
        assert np.concatenate(parts).tolist() == whole[name].tolist()
    assert whole["symbol"].tolist() == stages.symbolize(whole["ip"], space=whole["space"], offsets=False)


# ---- threads


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A recording of tests/programs/names/names.c, and the same as perf.data."""
    folder = tmp_path_factory.mktemp("names")
    after = build("stages", folder, "-DWORK=work").rename(folder / "after-exec")
    program = build("names", folder)
    trace = ptkit.record([program, after], output=folder / "out.ptk", backend="emulator", quiet=True)
    trace.export(folder / "out.data")
    return trace, folder / "out.data"


def names_of_streams(trace: ptkit.Trace) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for stream in trace.streams:
        match = re.fullmatch(r"thread (\d+) \((.*)\)", stream.name)
        assert match is not None
        found.setdefault(int(match[1]), []).append(match[2])
    return found


def test_threads_are_called_as_they_are_named(named: Any) -> None:
    trace, _ = named
    threads = {tid: name for _, tid, name in trace.info.threads}
    assert sorted(threads.values()) == ["after-exec", "by-another", "by-file", "by-itself", "names"]
    streams = names_of_streams(trace)
    assert streams.keys() == threads.keys()
    assert {tid: names[-1] for tid, names in streams.items()} == threads
    main = next(tid for tid, name in threads.items() if name == "after-exec")
    assert streams[main] == ["before-exec", "after-exec"]


def test_threads_that_are_named_right_before_they_end(tmp_path: Path) -> None:
    program = build("named_late", tmp_path)
    trace = ptkit.record([program], output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    threads = {tid: name for _, tid, name in trace.info.threads}
    assert sum(name.startswith("late-") for name in threads.values()) == 200
    assert {tid: names[-1] for tid, names in names_of_streams(trace).items()} == threads


def perf(*words: str | Path) -> str:
    assert PERF is not None
    command = [PERF, "--buildid-dir", NO_CACHE, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def comms(data: Path) -> list[tuple[int, str, bool]]:
    """Thread, name, and whether by exec, of each COMM record of a perf.data, by time."""
    text = perf("script", "-f", "-i", data, "--show-task-events", "--itrace=e")
    found = re.findall(r"PERF_RECORD_COMM( exec)?: (.+):\d+/(\d+)$", text, re.MULTILINE)
    return [(int(tid), name, bool(exec_)) for exec_, name, tid in found]


@needs_perf
def test_perf_has_the_names_at_their_times(named: Any) -> None:
    trace, data = named
    threads = {name: tid for _, tid, name in trace.info.threads}
    found = comms(data)
    of_main = [(name, by_exec) for tid, name, by_exec in found if tid == threads["after-exec"]]
    assert list(dict.fromkeys(of_main)) == [
        ("names", False),
        ("names", True),
        ("before-exec", False),
        ("after-exec", True),
        ("after-exec", False),
    ]
    for name in ("by-itself", "by-another", "by-file"):
        called = list(dict.fromkeys(one for tid, one, _ in found if tid == threads[name]))
        # Another thread may name one before that runs.
        assert called == ["names", name] or (name == "by-another" and called == [name])
    back, _ = opened(data)
    assert {name for _, _, name in back.info.threads} >= set(threads)


@needs_perf
def test_perf_counts_what_ran_under_each_name(named: Any) -> None:
    trace, data = named
    text = perf("script", "-f", "-i", data, "--itrace=i0ns", "-F", "comm,tid,ip")
    rows = re.findall(r"^\s*(\S+)\s+(\d+)\s+([0-9a-f]+)", text, re.MULTILINE)
    assert len(rows) == trace.recording.instructions
    functions = trace.instructions(columns=["symbol", "tid"])
    threads = {name: tid for _, tid, name in trace.info.threads}
    by_name = {name: sum(comm == name for comm, _, _ in rows) for name in {comm for comm, _, _ in rows}}
    assert by_name.keys() == {"before-exec", *threads}
    # What runs after the exec has that name, and no other.
    after = functions.where(symbol="work", tid=threads["after-exec"])
    assert len(after) > 0
    stream = [i for i, one in enumerate(trace.streams) if one.name.endswith("(after-exec)")]
    assert by_name["after-exec"] == len(trace.instructions(stream=stream, columns=["ip"]))
    # by-itself worked before it had its name, too.
    own = len(functions.where(tid=threads["by-itself"]))
    assert 0 < by_name["by-itself"] < own


@needs_perf
def test_perf_report_names_the_program_after_an_exec(tmp_path: Path) -> None:
    target = build("stages", tmp_path, "-DWORK=work", "-static").rename(tmp_path / "target")
    shell = ["/bin/sh", "-c", f"exec {target}"]
    trace = ptkit.record(shell, output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    trace.export(tmp_path / "out.data")
    names = [name for _, name, _ in comms(tmp_path / "out.data")]
    assert names[-1] == "target"
    assert "sh" not in names[names.index("target") :]
    report = perf(
        "report", "-f", "-i", tmp_path / "out.data", "--itrace=i0ns", "--sort", "comm", "--stdio", "-n"
    )
    counts = {
        name: int(count)
        for count, name in re.findall(r"^\s*[\d.]+%\s+(\d+)\s+(\S+)\s*$", report, re.MULTILINE)
    }
    stream = [i for i, one in enumerate(trace.streams) if one.name.endswith("(target)")]
    assert counts["target"] == len(trace.instructions(stream=stream, columns=["ip"]))
