"""The plugin for QEMU lies beside `ptkit._core` and needs nothing but the C library and QEMU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ptkit import _core

PLUGIN = Path(_core.__file__).with_name("libptkit_qemu.so")

# Before glibc 2.34 these were libraries of their own.
C_LIBRARY = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    if shutil.which("readelf") is None or shutil.which("nm") is None:
        pytest.skip("binutils are missing")


def lines(*command: str | Path) -> list[list[str]]:
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split() for line in text.splitlines()]


def test_plugin_needs_only_the_c_library() -> None:
    needed = {words[-1].strip("[]") for words in lines("readelf", "-dW", PLUGIN) if "(NEEDED)" in words}
    assert needed <= C_LIBRARY


def test_undefined_symbols_of_the_plugin_come_from_the_c_library_or_qemu() -> None:
    undefined = [words[-1] for words in lines("nm", "-D", PLUGIN) if words[-2] == "U"]
    assert undefined
    foreign = [name for name in undefined if not name.startswith("qemu_plugin_") and "@GLIBC_" not in name]
    assert foreign == []


def test_plugin_exports_the_symbols_that_qemu_looks_for() -> None:
    defined = {words[-1] for words in lines("nm", "-D", "--defined-only", PLUGIN)}
    assert {"qemu_plugin_install", "qemu_plugin_version"} <= defined
