"""Programs for Windows with a PDB, made by clang and LLVM's linker."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

LOAD = 0x7FF6_0000_0000


@dataclass
class WindowsProgram:
    """A PE file and its PDB."""

    path: Path
    pdb: Path

    @property
    def linked_base(self) -> int:
        """The address that it was linked for."""
        return int(struct.unpack_from("<Q", self._optional, 24)[0])

    @property
    def entry(self) -> int:
        """The RVA of its first function."""
        return int(struct.unpack_from("<I", self._optional, 16)[0])

    @property
    def pdb_id(self) -> str:
        """GUID and age of its PDB, in its debug directory."""
        data = self.path.read_bytes()
        at = data.index(b"RSDS") + 4
        first, second, third = struct.unpack_from("<IHH", data, at)
        (age,) = struct.unpack_from("<I", data, at + 16)
        return f"{first:08x}{second:04x}{third:04x}{data[at + 8 : at + 16].hex()}-{age:x}"

    @property
    def _optional(self) -> bytes:
        data = self.path.read_bytes()
        return data[struct.unpack_from("<I", data, 0x3C)[0] + 24 :]


def needs(*tools: str) -> None:
    """Skip a test where a tool is missing."""
    packages = {"clang": "", "lld-link": " (package lld)", "llvm-pdbutil": " (package llvm)"}
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip("clang is missing" if tool == "clang" else f"{tool} is not installed{packages[tool]}")


def windows_program(
    folder: Path, name: str, sources: dict[str, str], *flags: str, entry: str = "start"
) -> WindowsProgram:
    """Compile and link sources by name; `entry`: the function that begins the program."""
    needs("clang", "lld-link", "llvm-pdbutil")
    target = "x86_64-w64-windows-gnu"
    objects = []
    for source, text in sources.items():
        (folder / source).write_text(text)
        objects.append(f"{source}.o")
        command = ["clang", f"--target={target}", "-g", "-gcodeview", "-ffreestanding", *flags]
        _run([*command, "-c", source, "-o", objects[-1]], folder)
    options = ["/debug", f"/pdb:{name}.pdb", f"/entry:{entry}", "/subsystem:console", "/nodefaultlib"]
    _run(["lld-link", *options, f"/out:{name}.exe", *objects], folder)
    return WindowsProgram(folder / f"{name}.exe", folder / f"{name}.pdb")


def _run(command: list[str], folder: Path) -> None:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        pytest.fail(f"{' '.join(command)}: {result.stderr.strip()[-1000:]}", pytrace=False)
