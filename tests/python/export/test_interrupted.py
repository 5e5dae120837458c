"""Exports that do not come to their end: nothing is under the final name, nor beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from small_elf import elf

import ptkit
from ptkit.export.registry import _OWN

WITH_PYARROW = ("arrow", "parquet")
FORMATS = [one.name for one in _OWN if one.name not in WITH_PYARROW or find_spec("pyarrow")]

SCRIPT = """
import sys, ptkit
trace = ptkit.open("loop.pt", images=["program"], cpu="6/142/9")
print("ready", flush=True)
trace.export(sys.argv[2], sys.argv[1])
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory, loop: Any) -> Path:
    """A folder with a recording of two million branches."""
    folder = tmp_path_factory.mktemp("long")
    (folder / "program").write_bytes(elf(loop.CODE, loop.BASE, "again"))
    (folder / "loop.pt").write_bytes(loop.stream(300_000))
    return folder


@pytest.fixture
def out(long: Path, tmp_path: Path) -> Iterator[Path]:
    """Where to write: in a folder of its own."""
    yield tmp_path / "out"
    assert not list(tmp_path.glob(".*"))


def started(long: Path, name: str, out: Path, *, limit: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", limit + SCRIPT, name, str(out)]
    environment = {**os.environ, "PYTHONPATH": str(Path(ptkit.__file__).parents[1])}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=long, env=environment
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The core writes perf.data as a whole: test_export.py interrupts it with a recording of 512 MB.
@pytest.mark.parametrize("name", [name for name in FORMATS if name != "perf.data"])
def test_ctrl_c_leaves_nothing_of_any_format(name: str, long: Path, out: Path) -> None:
    with started(long, name, out) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 0.1  # formats of sums begin their file at the end
        while not list(out.parent.glob(".*")) and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        done, said = process.communicate(timeout=60)
    assert "done" in done or "KeyboardInterrupt" in said
    if out.exists():  # a small file was written before the signal
        interrupted = contents(out.parent)
        with started(long, name, out) as process:
            assert process.wait(timeout=60) == 0
        assert interrupted == contents(out.parent)
    else:
        assert "done" not in done
        assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("name", FORMATS)
def test_a_full_disk_leaves_nothing_of_any_format(name: str, long: Path, out: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))\n"
    with started(long, name, out, limit=limit) as process:
        done, said = process.communicate(timeout=120)
    assert "OpenError" in said, said
    assert "cannot write" in said.splitlines()[-1]
    assert "done" not in done
    assert list(out.parent.iterdir()) == []


@pytest.mark.parametrize("name", FORMATS)
def test_an_earlier_export_stays_until_the_end(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, loop: Any, open_trace: Any
) -> None:
    first, program = tmp_path / "out", tmp_path_factory.mktemp("image") / "program"
    program.write_bytes(elf(loop.CODE, loop.BASE, "again"))
    trace = open_trace(loop.stream(200), images=[str(program)])
    trace.export(first, name)

    before = contents(tmp_path)
    assert before
    trace.export(first, name)
    assert set(contents(tmp_path)) == set(before)
