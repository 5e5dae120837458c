"""The records of a PDB as llvm-pdbutil reads them: the reference for ptkit's reader."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from windows_programs import needs


@dataclass(frozen=True)
class DumpedSymbol:
    """A function in the first section."""

    name: str
    offset: int
    size: int


def procedures(pdb: Path) -> list[DumpedSymbol]:
    """Procedures of all modules."""
    form = r"S_[GL]PROC32(?:_ID)? .*`(.*)`\n.*addr = 0001:(\d+), code size = (\d+)"
    return [
        DumpedSymbol(name, int(at), int(size)) for name, at, size in re.findall(form, dump(pdb, "-symbols"))
    ]


def publics(pdb: Path) -> list[DumpedSymbol]:
    """Public symbols of code; their size is not known."""
    form = r"S_PUB32 .*`(.*)`\n.*flags = .*function.*, addr = 0001:(\d+)"
    return [DumpedSymbol(name, int(at), 0) for name, at in re.findall(form, dump(pdb, "-publics"))]


def first_lines(pdb: Path) -> dict[int, tuple[str, int]]:
    """By offset in the first section, file and line, where one line alone begins."""
    found: dict[int, list[tuple[str, int]]] = {}
    path = ""
    for text in dump(pdb, "-l").splitlines():
        if match := re.fullmatch(r"(.*) \((?:MD5|SHA|no checksum).*\)", text):
            path = match[1]
        entries = text if text.startswith("    ") else ""
        for line, offset in re.findall(r"(\d+) ([0-9A-F]{8})(?: !|\s)", entries):
            found.setdefault(int(offset, 16), []).append((path, int(line)))
    return {offset: lines[0] for offset, lines in found.items() if len(lines) == 1}


def dump(pdb: Path, *parts: str) -> str:
    """The output of `llvm-pdbutil dump`."""
    needs("llvm-pdbutil")
    command = ["llvm-pdbutil", "dump", *parts, str(pdb)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
