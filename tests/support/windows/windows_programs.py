"""Programs for Windows with a PDB, made by clang and LLVM's linker."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

LOAD = 0x7FF6_0000_0000
#: The code of the fixture `loop`, which is of line 2.
LOOP_SOURCE = (
    '__attribute__((naked)) int start(void) {\n  __asm__("1: dec %ecx\\n jnz 1b\\n jmp *%rax");\n}\n'
)


@dataclass
class WindowsProgram:
    """A PE file and its PDB."""

    path: Path
    pdb: Path

    @property
    def is_32_bit(self) -> bool:
        """Whether it is for 32-bit x86."""
        return bool(struct.unpack_from("<H", self._optional, 0)[0] == 0x10B)

    @property
    def linked_base(self) -> int:
        """The address that it was linked for."""
        form, at = ("<I", 28) if self.is_32_bit else ("<Q", 24)
        return int(struct.unpack_from(form, self._optional, at)[0])

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
    folder: Path,
    name: str,
    sources: dict[str, str],
    *flags: str,
    entry: str = "start",
    target: str = "x86_64-w64-windows-gnu",
) -> WindowsProgram:
    """Compile and link sources by name; `entry`: the function that begins the program."""
    needs("clang", "lld-link")
    objects = []
    for source, text in sources.items():
        (folder / source).write_text(text)
        if not source.endswith((".c", ".cpp")):
            continue
        objects.append(f"{source}.o")
        command = ["clang", f"--target={target}", "-g", "-gcodeview", "-ffreestanding", *flags]
        _run([*command, "-c", source, "-o", objects[-1]], folder)
    _link(folder, name, objects, f"/entry:{entry}", "/debug", f"/pdb:{name}.pdb")
    return WindowsProgram(folder / f"{name}.exe", folder / f"{name}.pdb")


def dwarf_twin(program: WindowsProgram, entry: str = "start") -> Path:
    """The program without a PDB: with the DWARF of its objects, which `-gdwarf` had made."""
    folder = program.path.parent
    objects = sorted(path.name for path in folder.glob("*.o"))
    name = f"{program.path.stem}-dwarf"
    _link(folder, name, objects, f"/entry:{entry}", "/debug:dwarf")
    return folder / f"{name}.exe"


def instructions(path: Path) -> list[int]:
    """Addresses of all instructions, as the program was linked."""
    command = ["llvm-objdump", "-d", "--no-show-raw-insn", path.name]
    listing = _run(command, path.parent)
    found = re.findall(r"^ *([0-9a-f]+):", listing, re.MULTILINE)
    return [int(address, 16) for address in found]


def _link(folder: Path, name: str, objects: list[str], *options: str) -> None:
    common = ["/subsystem:console", "/nodefaultlib", f"/out:{name}.exe"]
    _run(["lld-link", *common, *options, *objects], folder)


def _run(command: list[str], folder: Path) -> str:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        pytest.fail(f"{' '.join(command)}: {result.stderr.strip()[-1000:]}", pytrace=False)
    return result.stdout
