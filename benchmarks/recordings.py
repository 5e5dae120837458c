#!/usr/bin/env python3
"""Makes the recordings that benchmarks decode: gzip, CPython and a compiler in the emulator.

Needs ptkit (installed, or by PYTHONPATH) with its emulator back end. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

INDEX = "recordings.json"

# What is recorded with each program: options of `ptkit.record`.
KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "plain": {"timing": ()},
    "cyc": {"timing": ("tsc", "mtc", "cyc")},
    "tips": {"timing": (), "return_compression": False},
}

WORK = """
import json, re, sys

def walk(value, depth=0):
    if isinstance(value, dict):
        return sum(walk(item, depth + 1) for item in value.values()) + depth
    if isinstance(value, list):
        return sum(walk(item, depth + 1) for item in value)
    return len(str(value))

class Account:
    def __init__(self, name):
        self.name, self.lines = name, []

    def add(self, amount):
        self.lines.append(amount)
        return self

total, words = 0, re.compile("[a-z]+")
for turn in range(int(sys.argv[1])):
    accounts = {f"n{i}": Account(f"n{i}").add(i * turn).add(i % 7) for i in range(40)}
    text = json.dumps({name: {"lines": one.lines, "odd": turn % 2} for name, one in accounts.items()})
    total += walk(json.loads(text)) + len(words.findall(text))
    total += sum(sorted(accounts, key=lambda name: accounts[name].lines[0] % 11).index(n) for n in accounts)
print(total)
"""


@dataclass(frozen=True)
class Recording:
    """One recording: the program and its files."""

    name: str
    program: str
    kind: str
    size: int  # of the program's work
    path: str
    argv: list[str]
    instructions: int
    trace_bytes: int


def text(size: int) -> str:
    """Text of `size` characters that compresses like a log. It is always the same."""
    line, value, lines, left = 0, 1, [], size
    while left > 0:
        value = value * 1103515245 + 12345 & 0x7FFFFFFF
        lines.append(f"{line} the {value % 9973} quick {value >> 16} brown fox {value % 31}\n")
        left -= len(lines[-1])
        line += 1
    return "".join(lines)[:size]


def source(functions: int) -> str:
    """C source with so many different functions."""
    bodies = (
        f"int f{i}(int x, int *y) {{\n"
        f"  int sum = {i};\n"
        f"  for (int j = x; j > 0; --j) {{\n"
        f"    if (y[j] % {i % 13 + 2}) y[j] ^= x * {i}; else sum += y[{i % 7}];\n  }}\n"
        f"  switch (x & 7) {{ case {i % 5}: return sum; case 6: return f{max(i - 1, 0)}(x - 1, y); }}\n"
        f"  return sum + x / {i + 1};\n}}\n"
        for i in range(functions)
    )
    return "".join(bodies)


def kept(path: Path, content: str) -> str:
    """The path of a file with this content."""
    if not path.exists() or path.read_text() != content:
        path.write_text(content)
    return str(path)


def gzip(folder: Path, size: int) -> list[str]:
    """gzip of `size` bytes."""
    return [shutil.which("gzip") or "gzip", "-c", kept(folder / f"text-{size}", text(size))]


def python(folder: Path, size: int) -> list[str]:
    """CPython: objects, dictionaries, JSON, regular expressions, `size` times."""
    # The program itself: python3 may be a script.
    interpreter = Path(sys.executable).resolve()
    return [str(interpreter), "-I", "-S", kept(folder / "work.py", WORK), str(size)]


def gcc(folder: Path, size: int) -> list[str]:
    """cc1 for `size` functions: one process, so that the trace is one stream."""
    asked = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True)
    path = kept(folder / f"source-{size}.c", source(size))
    return [asked.stdout.strip(), "-quiet", "-O2", path, "-o", "/dev/null"]


# Program -> its start function, and sizes for some MB of trace, tens of MB, and at least 200 MB.
PROGRAMS: dict[str, tuple[Callable[[Path, int], list[str]], dict[str, int]]] = {
    "gzip": (gzip, {"quick": 600_000, "middle": 3_000_000, "big": 34_000_000}),
    "python": (python, {"quick": 2, "middle": 60, "big": 700}),
    "gcc": (gcc, {"quick": 1, "middle": 30, "big": 200}),
}


def load(folder: Path) -> dict[str, Recording]:
    """The recordings of a folder, by name."""
    index = folder / INDEX
    if not index.exists():
        return {}
    return {entry["name"]: Recording(**entry) for entry in json.loads(index.read_text())}


def record(folder: Path, program: str, kind: str, scale: str) -> Recording:
    """Record once."""
    import ptkit

    make, sizes = PROGRAMS[program]
    argv = make(folder, sizes[scale])
    name = f"{program}-{kind}-{scale}"
    path = folder / f"{name}.ptk"
    trace = ptkit.record(argv, output=path, backend="emulator", quiet=True, **KINDS[kind])
    facts = trace.recording
    if facts is None or facts.exit_status != 0 or len(trace.streams) != 1:
        sys.exit(f"{name}: {' '.join(argv)} failed, or has more than one stream; see {path}")
    return Recording(
        name, program, kind, sizes[scale], path.name, argv, facts.instructions, facts.trace_bytes
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="where they are kept; what is there is not made again")
    parser.add_argument("--program", action="append", choices=sorted(PROGRAMS), help="only this one")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this one")
    parser.add_argument("--scale", choices=("quick", "middle", "big"), default="quick", help="default: quick")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for program in arguments.program or PROGRAMS:
        # One recording with a TIP for every RET is enough.
        kinds = arguments.kind or [kind for kind in KINDS if kind != "tips" or program == "gzip"]
        for kind in kinds:
            known = load(folder)
            name = f"{program}-{kind}-{arguments.scale}"
            size = PROGRAMS[program][1][arguments.scale]
            if name not in known or known[name].size != size or not (folder / known[name].path).exists():
                known[name] = record(folder, program, kind, arguments.scale)
                entries = [asdict(known[key]) for key in sorted(known)]
                (folder / INDEX).write_text(json.dumps(entries, indent=1) + "\n")
            one = known[name]
            megabytes, millions = one.trace_bytes / 1e6, one.instructions / 1e6
            print(f"{name}: {megabytes:.1f} MB of trace, {millions:.0f} M instructions")


if __name__ == "__main__":
    main()
