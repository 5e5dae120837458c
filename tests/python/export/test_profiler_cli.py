"""Folded stacks and timelines in the Firefox Profiler, by its command line."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from readers import node_program
from rounds import needs_emulator

import ptkit

PROFILER = node_program("profiler-cli")
PATIENCE = 30  # seconds, with its process that loads a file

pytestmark = pytest.mark.skipif(
    PROFILER is None, reason="profiler-cli is not installed (npm package @firefox-devtools/profiler-cli)"
)


@pytest.fixture
def home() -> Iterator[dict[str, str]]:
    """The environment of its processes, which end with the test; paths of sockets are short."""
    assert PROFILER is not None
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOME": folder}
        yield environment
        subprocess.run([PROFILER, "stop", "--all"], env=environment, capture_output=True)


def answer(path: Path, environment: dict[str, str], *words: str) -> dict[str, Any]:
    """What a command of it prints of a file."""
    assert PROFILER is not None
    subprocess.run([PROFILER, "load", str(path)], env=environment, capture_output=True)
    command = [PROFILER, *words, "--json"]
    deadline = time.monotonic() + PATIENCE
    while True:  # on a slow machine the file is not loaded at once
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.startswith("{"):
            break
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.2)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def functions(path: Path, environment: dict[str, str]) -> Counter[tuple[str, int, int]]:
    """Name, own number and number with what it called of each function."""
    rows = answer(path, environment, "thread", "functions", "--limit", "0", "--include-idle")["functions"]
    return Counter((row["name"], row["selfSamples"], row["totalSamples"]) for row in rows)


@needs_emulator
@pytest.mark.parametrize("of", ["instructions", "calls"])
def test_the_firefox_profiler_shows_the_sums(
    rounds: Path, tmp_path: Path, home: dict[str, str], of: str
) -> None:
    trace = ptkit.record([rounds, "100"], output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    path = tmp_path / "out.folded"
    trace.export(path, of=of, names="full")
    found = functions(path, home)
    table = trace.functions()
    if of == "calls":
        assert sum(own for _, own, _ in found) == int(table["count"].sum())
        return
    columns = (table[name].tolist() for name in ("self_instructions", "instructions"))
    expected = Counter(row for row in zip(*columns, strict=True) if row[1])
    assert Counter((own, whole) for _, own, whole in found.elements()) == expected
    names = {name: row for name, *row in found}
    main = table[table["function"] == "main"]
    assert names["main"] == [int(main["self_instructions"][0]), int(main["instructions"][0])]


@needs_emulator
def test_the_firefox_profiler_shows_calls_as_markers(
    rounds: Path, tmp_path: Path, home: dict[str, str]
) -> None:
    trace = ptkit.record([rounds, "100"], output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    path = tmp_path / "out.trace.json"
    trace.export(path, names="full")
    found = answer(path, home, "thread", "markers")
    assert found["totalMarkerCount"] == len(trace.calls())
    table = trace.functions()
    expected = dict(zip(table["function"].tolist(), table["count"].tolist(), strict=True))
    counts = {row["markerName"]: row["count"] for row in found["byType"]}
    assert all(row["isInterval"] for row in found["byType"])
    assert counts["work"] == expected["work"] > 1
