"""The Windows driver: as it is shipped, with model and shims for Wine, and natively under sanitizers."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mingw import compile_driver, compile_program, ddk, import_library

ROOT = Path(__file__).resolve().parents[3]
DRIVER = ROOT / "kernel" / "windows"
MODEL = ROOT / "tests" / "machines" / "model" / "windows"
TESTS = ROOT / "tests" / "machines" / "windows"
# Replaced by the model: the processors, and code that only they need.
MACHINE = ("machine.c", "tables.c")
INCLUDES = tuple(f"-I{ROOT / path}" for path in ("kernel/windows", "kernel/include", "kernel"))
TEST_INCLUDES = (f"-I{TESTS / 'kernel'}", f"-I{MODEL}", f"-I{TESTS}")
CLANG = shutil.which("clang")


def driver_sources() -> list[Path]:
    """Of ptkit.sys without the real processors."""
    own = [path for path in sorted(DRIVER.rglob("*.c")) if path.name not in MACHINE]
    return own + sorted((ROOT / "kernel" / "common").glob("*.c"))


def case_sources() -> list[Path]:
    """The cases, wherever they run."""
    return [*sorted(TESTS.glob("*_test.c")), TESTS / "fuzz.c"]


def build_shipped(folder: Path) -> Path:
    """ptkit.sys as its users have it."""
    toolchain = ROOT / "cmake" / "mingw.cmake"
    generator = "Ninja" if shutil.which("ninja") else "Unix Makefiles"
    _run("cmake", "-G", generator, "-S", str(DRIVER), "-B", str(folder), "--toolchain", str(toolchain))
    _run("cmake", "--build", str(folder))
    return folder / "ptkit.sys"


def build_with_model(folder: Path) -> Path:
    """The driver with the model of the processors and with shims, for Wine."""
    kernel = TESTS / "kernel"
    library = import_library(kernel / "kernelbase.def", folder / "libkernelbase.a")
    own = [*sorted(kernel.glob("*shims.c")), kernel / "host_windows.c"]
    sources = [*driver_sources(), *sorted(MODEL.glob("*.c")), *own]
    driver = folder / "ptkit-model.sys"
    return compile_driver(driver, *INCLUDES, *TEST_INCLUDES, *sources, library, entry="TestEntry")


def build_client(program: Path, *sources: Path) -> Path:
    """A client of the driver for Wine."""
    own = [TESTS / "session.c", TESTS / "service.c", TESTS / "device_windows.c"]
    options = ("-D__USE_MINGW_ANSI_STDIO=1", *INCLUDES, *TEST_INCLUDES)
    host = TESTS / "kernel" / "host_windows.c"
    return compile_program(program, *options, *sources, *own, host, "-ladvapi32", "-lntdll")


# clang for Windows, so that Linux gets the driver's code with the types and headers of Windows. One of their
# macros finds an offset by a null pointer.
_WINDOWS = (
    "-target", "x86_64-w64-mingw32", "-S", "-emit-llvm", "-g", "-O1", "-Xclang", "-disable-llvm-passes", "-w",
    "-std=gnu11", "-D_WIN32_WINNT=0x0A00", "-DNTDDI_VERSION=0x0A000000",
    "-DCONTAINING_RECORD(address, type, field)=((type*)((char*)(address) - __builtin_offsetof(type, field)))",
)  # fmt: skip
_LINUX = ("-target", "x86_64-linux-gnu", "-Wno-override-module", "-g", "-O1")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def build_objects(folder: Path) -> list[Path]:
    """Driver, model, shims and a small kernel for programs of Linux, under ASan and UBSan.

    clang translates what is for Windows to its intermediate code; as that of Linux it gets the calling
    convention and the sanitizers of Linux.
    """
    if CLANG is None:
        pytest.skip("clang is missing")
    kernel = TESTS / "kernel"
    own = [*sorted(kernel.glob("*shims.c")), kernel / "ntoskrnl.c"]
    windows = [*driver_sources(), *sorted(MODEL.glob("*.c")), *own]
    return [_compile_natively(folder, source) for source in windows]


def build_natively(program: Path, objects: list[Path], *sources: Path) -> Path:
    """A program for Linux with such objects, and a client in C."""
    flags = ("-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread")
    own = [TESTS / "session.c", TESTS / "kernel" / "host_posix.c"]
    # Functions of the DDK's headers are in each object.
    _run(
        str(CLANG), *flags, *SANITIZERS, "-Wl,-z,muldefs", *INCLUDES, *TEST_INCLUDES,
        *map(str, [*objects, *sources, *own]), "-o", str(program),
    )  # fmt: skip
    return program


def _compile_natively(folder: Path, source: Path) -> Path:
    code = folder / f"{source.stem}.ll"
    headers = (f"-isystem{ddk().parent}", f"-isystem{ddk()}")
    includes = (*headers, *INCLUDES, *TEST_INCLUDES)
    _run(str(CLANG), *_WINDOWS, *SANITIZERS, *includes, str(source), "-o", str(code))
    for_windows = r"^target .*\n|(?<= )dllimport |(?<= )dso_local "
    code.write_text(re.sub(for_windows, "", code.read_text(), flags=re.MULTILINE))
    output = code.with_suffix(".o")
    _run(str(CLANG), *_LINUX, *SANITIZERS, "-x", "ir", "-c", str(code), "-o", str(output))
    return output


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}", pytrace=False)
