"""What ptkit.sys imports, and that nothing of the tests is in it."""

from __future__ import annotations

import re
from pathlib import Path

from mingw import exports_of_library, imports_of, symbols_of
from windows_driver import TESTS

# Debian's import libraries of mingw-w64 are older than Windows 10. What they have and Microsoft documents,
# Windows 10 and 11 have, too. These are not documented for drivers; Windows has exported them since
# Windows 7 at least, and other drivers and tools use them.
UNDOCUMENTED = {
    "HalDispatchTable": "ntddk.h has it, for HalSetSystemInformation",
    "ZwQuerySystemInformation": "NtQuerySystemInformation is documented",
    "__C_specific_handler": "compilers call it for __try",
}
IMAGES = {"ntoskrnl.exe": "ntoskrnl", "hal.dll": "hal"}
OF_TESTS = re.compile(r"shim|TestEntry|host_|model_|MapViewOfFile")


def shims() -> set[str]:
    """The calls that shims.c replaces."""
    return set(re.findall(r"^SHIM\((\w+)\);", (TESTS / "kernel" / "shims.c").read_text(), re.MULTILINE))


def test_it_imports_what_windows_10_and_11_export(shipped_driver: Path) -> None:
    imported = imports_of(shipped_driver)
    assert set(imported) == set(IMAGES)
    for image, names in imported.items():
        assert names - exports_of_library(IMAGES[image]) == set()
    assert set(UNDOCUMENTED) <= imported["ntoskrnl.exe"]


def test_it_has_nothing_of_the_tests(shipped_driver: Path, model_driver: Path) -> None:
    symbols = symbols_of(shipped_driver)
    assert "DriverEntry" in symbols
    assert [symbol for symbol in symbols if OF_TESTS.search(symbol)] == []
    assert {f"shim_{name}" for name in shims()} <= symbols_of(model_driver)


def test_each_shim_is_of_a_call_that_the_driver_makes(shipped_driver: Path) -> None:
    assert shims() <= imports_of(shipped_driver)["ntoskrnl.exe"]


def test_documentation_lists_each_shim() -> None:
    page = (TESTS.parents[1] / "docs" / "windows-tests.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert rows == shims()
