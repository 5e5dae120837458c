"""No file takes so long to compile that a first build waits for it.

Seconds are those of a machine that compiles an empty module of pybind11 in three.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import subprocess
from pathlib import Path

import pybind11
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PTKIT_BUILD", ROOT / "build" / "test")).resolve()
EMPTY = '#include <pybind11/pybind11.h>\nPYBIND11_MODULE(empty, module) { module.doc() = ""; }\n'
EMPTY_SECONDS = 3.0
MOST_SECONDS = 25.0
CHECKED = 1  # of each library: those with the largest objects

pytestmark = pytest.mark.slow


def seconds(command: list[str], folder: Path) -> float:
    """Processor time of a compiler, without a cache."""

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    begin = used()
    subprocess.run(command, cwd=folder, env=os.environ | {"CCACHE_DISABLE": "1"}, check=True)
    return used() - begin


def commands_of(library: str) -> dict[Path, list[str]]:
    """The compiler's commands of a library of the build, by their objects."""
    path = BUILD / "compile_commands.json"
    if not path.is_file():
        pytest.skip(f"{path} is not built (set PTKIT_BUILD to a build directory with PTKIT_TESTS=ON)")
    found = {}
    for entry in json.loads(path.read_text()):
        words = shlex.split(entry["command"])
        made = Path(entry["directory"], words[words.index("-o") + 1])
        if re.search(rf"/{library}\.dir/", str(made)) and made.is_file():
            found[made] = words
    return found


@pytest.fixture(scope="module")
def empty_seconds(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Of the empty module."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "empty.cpp").write_text(EMPTY)
    (words, *_) = commands_of("_core").values()
    compiler = next(word for word in words if re.search(r"(g\+\+|clang\+\+|c\+\+)[-.0-9]*$", word))
    includes = [words[i + 1] for i, word in enumerate(words) if word == "-isystem"]
    shown = [f"-isystem{name}" for name in (*includes, pybind11.get_include())]
    return min(
        seconds([compiler, "-O3", "-std=c++20", "-fPIC", *shown, "-c", "empty.cpp"], folder) for _ in range(2)
    )


@pytest.mark.parametrize("library", ["_core", "ptkit_core"])
def test_no_object_takes_long(library: str, empty_seconds: float, tmp_path: Path) -> None:
    commands = commands_of(library)
    assert len(commands) > CHECKED
    for made in sorted(commands, key=lambda path: -path.stat().st_size)[:CHECKED]:
        words = commands[made]
        words[words.index("-o") + 1] = str(tmp_path / "compiled.o")
        taken = seconds(words, BUILD) * EMPTY_SECONDS / empty_seconds
        assert taken < MOST_SECONDS, f"{made.name}: {taken:.0f} s"
