#!/usr/bin/env python3
"""Makes the recordings that benchmarks decode: gzip, CPython, a compiler and smaller tools in the emulator.

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


DASH = "x=0\nfor i in {}; do case $i in *7) x=$((x+i));; *) y=a$x;; esac; done\necho $x\n"
LUA = 'local t = {{}} for i = 1, {} do t[i] = ("x" .. i):rep(2):gsub("x", "y") end print(#t)\n'
PERL = (
    'my %h; for my $i (1..{}) {{ $h{{$i % 17}} .= "v$i" if "line $i" =~ /(\\d+)5$/ }} print scalar keys %h;\n'
)

Make = Callable[[Path, int], list[str]]


def tool(name: str, *options: str) -> Make:
    """A program that reads text of `size` characters."""

    def make(folder: Path, size: int) -> list[str]:
        return [_program(name), *options, kept(folder / f"text-{size}", text(size))]

    return make


def script(name: str, form: str, *options: str) -> Make:
    """An interpreter with a program that goes around `size` / 20 times."""

    def make(folder: Path, size: int) -> list[str]:
        rounds = size // 20
        content = form.format(" ".join(map(str, range(rounds))) if form is DASH else rounds)
        return [_program(name), *options, kept(folder / f"{name}-{size}.txt", content)]

    return make


def binary(name: str, option: str) -> Make:
    """A tool that reads an object file of `size` / 6000 functions."""

    def make(folder: Path, size: int) -> list[str]:
        functions = max(size // 6000, 1)
        path, made = kept(folder / f"source-{functions}.c", source(functions)), folder / f"{functions}.o"
        subprocess.run(["gcc", "-c", "-O1", path, "-o", str(made)], check=True)
        return [_program(name), option, str(made)]

    return make


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        sys.exit(f"{name} is not installed: give --program without it")
    return str(Path(found).resolve())


# As fuzzers have them: some 20 to 200 KB of trace, and some hundreds of KB or MB.
FUZZED = {"short": 600, "long": 40_000}

# Program -> its start function, and sizes for some MB of trace, tens of MB, and at least 200 MB.
PROGRAMS: dict[str, tuple[Make, dict[str, int]]] = {
    "gzip": (gzip, {**FUZZED, "quick": 600_000, "middle": 3_000_000, "big": 34_000_000}),
    "python": (python, {"quick": 2, "middle": 60, "big": 700}),
    "gcc": (gcc, {"quick": 1, "middle": 30, "big": 200}),
    "bzip2": (tool("bzip2", "-c"), FUZZED),
    "xz": (tool("xz", "-c", "-T1"), FUZZED),
    "mawk": (tool("mawk", "{n[$3] += NF; if ($0 ~ /fox 1/) c++} END {print c}"), FUZZED),
    "sed": (tool("sed", "-E", r"s/(quick|brown) ([0-9]+)/\2-\1/g; /fox 3/d"), FUZZED),
    "grep": (tool("grep", "-cE", "(fox [12]+|the [0-9]*7 )"), FUZZED),
    "sort": (tool("sort", "-k3"), FUZZED),
    "dash": (script("dash", DASH), FUZZED),
    "perl": (script("perl", PERL), FUZZED),
    "luajit": (script("luajit", LUA, "-joff"), FUZZED),
    "objdump": (binary("objdump", "-d"), FUZZED),
    "readelf": (binary("readelf", "-a"), FUZZED),
}
SCALES = ("short", "long", "quick", "middle", "big")


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


def kinds_of(program: str, scale: str) -> list[str]:
    """What is recorded of a program unless it is said."""
    if scale in FUZZED:
        return ["tips"]  # libxdc takes no other packets
    # One recording with a TIP for every RET is enough.
    return [kind for kind in KINDS if kind != "tips" or program == "gzip"]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="where they are kept; what is there is not made again")
    parser.add_argument("--program", action="append", choices=sorted(PROGRAMS), help="only this one")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this one")
    parser.add_argument("--scale", choices=SCALES, default="quick", help="default: quick")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    scale = arguments.scale
    for program in arguments.program or [name for name, (_, sizes) in PROGRAMS.items() if scale in sizes]:
        if scale not in PROGRAMS[program][1]:
            sys.exit(f"{program} has no scale {scale}: {', '.join(PROGRAMS[program][1])}")
        for kind in arguments.kind or kinds_of(program, scale):
            known = load(folder)
            name = f"{program}-{kind}-{scale}"
            size = PROGRAMS[program][1][scale]
            if name not in known or known[name].size != size or not (folder / known[name].path).exists():
                known[name] = record(folder, program, kind, scale)
                entries = [asdict(known[key]) for key in sorted(known)]
                (folder / INDEX).write_text(json.dumps(entries, indent=1) + "\n")
            one = known[name]
            megabytes, millions = one.trace_bytes / 1e6, one.instructions / 1e6
            print(f"{name}: {megabytes:.1f} MB of trace, {millions:.0f} M instructions")


if __name__ == "__main__":
    main()
