"""The core installs as a CMake package that others find, and it builds without exceptions up to flow."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PTKIT_BUILD", ROOT / "build" / "test")).resolve()

# Folders whose code runs in loops: they must not throw (formats and capture use libraries that
# throw).
NO_EXCEPTIONS = ("base", "code/insn", "packet", "time", "trace_unit", "flow", "../ptmodel")


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_an_installed_core_is_found(tmp_path: Path) -> None:
    if not (BUILD / "libptkit_core.a").exists():
        pytest.skip(f"no build of the core in {BUILD} (set PTKIT_BUILD)")
    if shutil.which("cmake") is None:
        pytest.skip("cmake is missing")
    run("cmake", "--install", BUILD, "--prefix", tmp_path / "prefix", "--component", "core")
    run(
        "cmake",
        "-S",
        ROOT / "tests" / "codebase" / "consumer",
        "-B",
        tmp_path / "build",
        f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}",
    )
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "consumer") == "fffff80685389310\n"


@pytest.mark.parametrize("folder", NO_EXCEPTIONS)
def test_hot_folders_compile_without_exceptions(folder: str) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    left_out = [ROOT / "src" / path for path in ("base/win32", "flow/libipt", "flow/index")]
    sources = sorted((ROOT / "src" / folder).rglob("*.cpp"))
    sources = [path for path in sources if path.parent not in left_out]
    assert sources
    # Headers take most of the time, so files are compiled as one; vector code has equal names.
    alone = [source for source in sources if "_avx" in source.name]
    together = "".join(f'#include "{source}"\n' for source in sources if source not in alone)
    command = ["c++", "-std=c++20", "-fno-exceptions", "-fsyntax-only"]
    command += [f"-I{ROOT / folder}" for folder in ("src", "kernel", "kernel/include", ".")]
    command += ["-x", "c++", "-", *map(str, alone)]
    done = subprocess.run(command, input=together, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
