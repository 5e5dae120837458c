"""Bundles with more trace than should be in memory: it is unpacked into a file without a name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ptkit import _core

MIB = 1 << 20
SIZE = 100 * MIB  # of the trace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are read from /proc")

# An eighth of what the limit leaves is less than the trace.
_SCRIPT = """
import json, resource, sys, ptkit

def status(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) << 10

resource.setrlimit(resource.RLIMIT_DATA, (status("VmData") + (600 << 20),) * 2)
trace = ptkit.open(sys.argv[1])
before = status("RssAnon")
edges = trace.edges(threads=1)
first = next(iter(trace.iter_branches(rows=1000, columns=["from_ip"])))
files = [line.split()[5] for line in open("/proc/self/maps") if line.endswith(" (deleted)\\n")]
count = edges["count"].tolist(), first["from_ip"].tolist()
print(json.dumps([status("RssAnon") - before, files, count]))
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, loop: Any, packets: Any) -> tuple[Path, Any]:
    """A bundle of a hot loop, and what its tables have."""
    turn = loop.header(loop.BASE, 1000) + packets.tnt("111111") * 10_000
    start = loop.header(None, 1000) + packets.pge(loop.BASE)
    data = start + turn * (SIZE // len(turn))
    made = _core.Bundle()
    made.add_code(loop.BASE, loop.CODE)
    made.add_stream(data)
    path = tmp_path_factory.mktemp("large") / "loop.ptk"
    _core.save_bundle(made, os.fsencode(path))
    branches = (len(data) - len(start)) // len(turn) * 60_000
    return path, [[branches], [loop.JNZ] * 1000]


def reading(path: Path, folder: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": folder},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_large_trace_is_not_in_memory(bundle: tuple[Path, Any]) -> None:
    path, rows = bundle
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # /tmp may be in memory
        taken, files, found = reading(path, folder)
        assert [Path(file).parent for file in files] == [Path(folder)]
    assert found == rows
    assert taken < SIZE / 4


def test_a_disk_without_room(bundle: tuple[Path, Any]) -> None:
    path, rows = bundle
    taken, files, found = reading(path, "/does/not/exist")
    assert found == rows
    assert not files
    assert taken > SIZE * 0.9


def test_a_small_trace_is_in_memory(tmp_path: Path, loop: Any) -> None:
    made = _core.Bundle()
    made.add_code(loop.BASE, loop.CODE)
    made.add_stream(loop.stream(1000))
    _core.save_bundle(made, os.fsencode(tmp_path / "small.ptk"))
    _, files, (counts, _) = reading(tmp_path / "small.ptk", str(tmp_path))
    assert not files
    assert sum(counts) == 7 * 1000
