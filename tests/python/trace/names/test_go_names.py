"""Names of stripped programs of Go are those in the symbol tables of the same programs."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from compiling import PROGRAMS

# What the linker adds to the symbol table for the begin and the end of code.
MARKS = {"runtime.text", "runtime.etext"}
TARGETS = {
    "linux-amd64": ("linux", "amd64", "exe"),
    "linux-pie": ("linux", "amd64", "pie"),
    "linux-386": ("linux", "386", "exe"),
    "windows-amd64": ("windows", "amd64", "exe"),
}


def built(folder: Path, name: str, target: str, *flags: str) -> Path:
    """The program tests/programs/names/names.go for another system or processor."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    system, processor, mode = TARGETS[target]
    program = folder / name
    environment = os.environ | {"GOOS": system, "GOARCH": processor, "CGO_ENABLED": "0"}
    source = PROGRAMS / "names" / "names.go"
    command = ["go", "build", f"-buildmode={mode}", *flags, "-o", str(program), str(source)]
    subprocess.run(command, env=environment, check=True)
    return program


def symbols(program: Path) -> dict[int, set[str]]:
    """Names of functions by address, as Go's own table has them: without an ABI.

    Some versions of Go write type arguments there, others `[...]`: both are in the set.
    """
    listed = subprocess.run(["go", "tool", "nm", str(program)], check=True, capture_output=True, text=True)
    found: dict[int, set[str]] = {}
    for line in listed.stdout.splitlines():
        address, kind, name = line.split(maxsplit=2)
        if kind in "Tt" and name not in MARKS:
            name = name.removesuffix(".abi0")
            found.setdefault(int(address, 16), set()).update((name, re.sub(r"\[.*\]", "[...]", name)))
    return found


def without_sections(program: Path) -> None:
    """Remove the headers of sections, as sstrip does."""
    image = bytearray(program.read_bytes())
    struct.pack_into("<Q", image, 0x28, 0)  # e_shoff
    struct.pack_into("<HH", image, 0x3C, 0, 0)  # e_shnum, e_shstrndx
    program.write_bytes(image)


@pytest.mark.parametrize("target", TARGETS)
def test_names_are_those_of_the_symbol_table(target: str, tmp_path: Path, loop: Any, open_trace: Any) -> None:
    expected = symbols(built(tmp_path, "full", target))
    stripped = built(tmp_path, "stripped", target, "-ldflags=-s -w")
    assert {"main.main", "main.leaf", "main.twice[...]"} <= set().union(*expected.values())
    files = [stripped]
    if target in ("linux-amd64", "linux-pie"):
        files.append(tmp_path / "bare")
        shutil.copy(stripped, files[1])
        without_sections(files[1])
    addresses = sorted(expected)
    for file in files:
        trace = open_trace(loop.stream(1), images=[file])
        names = trace.symbolize(addresses, space=0, offsets=False)
        wrong = [
            (name, expected[address])
            for address, name in zip(addresses, names, strict=True)
            if (name or "").replace("\u00b7", ".")
            not in {one.replace("\u00b7", ".") for one in expected[address]}
        ]
        assert not wrong, (file.name, len(wrong), wrong[:3])
        # The bytes before a function are of another one.
        before = trace.symbolize([addresses[-1] - 1], space=0, offsets=False)
        assert before[0] not in (None, names[-1])


def test_calls_have_bounds_of_functions(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    """A function of a stripped program is selected by its name, from its first byte to its last one."""
    stripped = built(tmp_path, "stripped", "linux-amd64", "-ldflags=-s -w")
    full = symbols(built(tmp_path, "full", "linux-amd64"))
    (leaf,) = (address for address, names in full.items() if "main.leaf" in names)
    after = min(address for address in full if address > leaf)
    trace = open_trace(loop.stream(1), images=[stripped])
    assert trace.symbolize([leaf, after - 1, after], space=0)[:2] == [
        "main.leaf",
        f"main.leaf+{after - 1 - leaf:#x}",
    ]
