"""Drivers and programs for Windows, made by mingw-w64."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PREFIX = "x86_64-w64-mingw32-"
COMPILER = shutil.which(f"{PREFIX}gcc")
OBJDUMP = shutil.which(f"{PREFIX}objdump")
NM = shutil.which(f"{PREFIX}nm")
FLAGS = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror")
DRIVER_FLAGS = (
    "-nostdlib", "-mno-stack-arg-probe", "-D_WIN32_WINNT=0x0A00", "-DNTDDI_VERSION=0x0A000000",
    "-Wl,--subsystem,native", "-Wl,--dynamicbase", "-Wl,--exclude-all-symbols",
)  # fmt: skip


def require_mingw() -> None:
    """Skips where mingw-w64 is not installed."""
    if COMPILER is None or OBJDUMP is None or NM is None:
        pytest.skip("mingw-w64 is not installed (package gcc-mingw-w64-x86-64)")
    if not ddk().is_dir():
        pytest.skip("headers of mingw-w64's DDK are not installed (package mingw-w64-x86-64-dev)")


def compile_program(program: Path, *arguments: str | Path) -> Path:
    """A program; `arguments` are flags, sources and libraries."""
    return _compile(program, *FLAGS, *arguments)


def compile_driver(driver: Path, *arguments: str | Path, entry: str = "DriverEntry") -> Path:
    """A WDM driver."""
    begin = ("-Wl,-e," + entry, "-isystem", ddk())
    return _compile(driver, *FLAGS, *DRIVER_FLAGS, *begin, *arguments, "-lntoskrnl", "-lhal", "-lgcc")


def import_library(definitions: Path, library: Path) -> Path:
    """A library to link with, of a .def file."""
    _run(f"{PREFIX}dlltool", "-d", str(definitions), "-l", str(library))
    return library


def imports_of(image: Path) -> dict[str, set[str]]:
    """The names that a PE file imports, by the image that exports them, in lower case."""
    found: dict[str, set[str]] = {}
    names: set[str] = set()
    for line in _run(str(OBJDUMP), "-p", str(image)).splitlines():
        if match := re.match(r"\s*DLL Name: (\S+)", line):
            names = found.setdefault(match[1].lower(), set())
        elif match := re.match(r"\s*[0-9a-f]+\s+\d+\s+(\w+)$", line):
            names.add(match[1])
        elif line.startswith("The Export Tables") or "Base Relocations" in line:
            break
    return found


def exports_of_library(name: str) -> set[str]:
    """The functions of one of mingw's import libraries, such as "ntoskrnl"."""
    path = _run(str(COMPILER), f"-print-file-name=lib{name}.a").strip()
    return set(re.findall(r" I __imp_(\w+)$", _run(str(NM), path), re.MULTILINE))


def symbols_of(image: Path) -> set[str]:
    """The symbols of a PE or object file that is not stripped."""
    return {line.split()[-1] for line in _run(str(NM), str(image)).splitlines() if line.strip()}


def strip_image(image: Path, stripped: Path) -> Path:
    """A copy without symbols."""
    _run(f"{PREFIX}strip", "-o", str(stripped), str(image))
    return stripped


def ddk() -> Path:
    """The folder of the DDK's headers."""
    library = Path(_run(str(COMPILER), "-print-file-name=libntoskrnl.a").strip()).resolve()
    folders = (library.parents[1] / "include" / "ddk", Path("/usr/share/mingw-w64/include/ddk"))
    return next((folder for folder in folders if folder.is_dir()), folders[0])


def compile_by(compiler: str, output: Path, *arguments: str | Path) -> Path:
    """As compile_program(), by another compiler and with its flags alone."""
    _run(compiler, "-o", str(output), *map(str, arguments))
    return output


def _compile(output: Path, *arguments: str | Path) -> Path:
    return compile_by(str(COMPILER), output, *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)}:\n{done.stderr[-4000:]}", pytrace=False)
    return done.stdout
