"""ptkit.sys as `make windows` makes it.

What it imports, that nothing of the tests is in it, and what Windows' loader and memory integrity ask for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
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

NATIVE = 1
HIGH_ENTROPY_VA, DYNAMIC_BASE, NX_COMPAT = 0x20, 0x40, 0x100
EXECUTABLE, WRITABLE = 0x20000000, 0x80000000
PAGE = 4096


@dataclass(frozen=True)
class Image:
    """The fields of a PE32+ file that matter here."""

    bytes: bytes

    @property
    def header(self) -> int:
        """Where the optional header begins."""
        return int.from_bytes(self.bytes[0x3C:0x40], "little") + 24

    def field(self, offset: int, size: int) -> int:
        """A field of the optional header."""
        return int.from_bytes(self.bytes[self.header + offset : self.header + offset + size], "little")

    def word(self, offset: int) -> int:
        """32 bits."""
        return int.from_bytes(self.bytes[offset : offset + 4], "little")

    def sections(self) -> dict[str, tuple[int, int]]:
        """Address and characteristics by name."""
        begin = self.header + int.from_bytes(self.bytes[self.header - 4 : self.header - 2], "little")
        count = int.from_bytes(self.bytes[self.header - 18 : self.header - 16], "little")
        found = {}
        for offset in range(begin, begin + 40 * count, 40):
            name = self.bytes[offset : offset + 8].rstrip(b"\0").decode()
            address, characteristics = (self.word(offset + at) for at in (12, 36))
            found[name] = (address, characteristics)
        return found


def checksum(image: Image) -> int:
    """The sum of all 16-bit words with carries, without the field itself, and the size."""
    offset = image.header + 64
    data = image.bytes[:offset] + bytes(4) + image.bytes[offset + 4 :]
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[offset : offset + 2], "little") for offset in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total + len(image.bytes)


@pytest.fixture(scope="module")
def image(shipped_driver: Path) -> Image:
    """Fields of the file."""
    return Image(shipped_driver.read_bytes())


def shims() -> set[str]:
    """The calls that shims.c and memory_shims.c replace."""
    text = "".join(path.read_text() for path in (TESTS / "kernel").glob("*shims.c"))
    return set(re.findall(r"^SHIM\((\w+)\);", text, re.MULTILINE))


def test_driver_imports_functions_of_windows_10_and_11_alone(shipped_driver: Path) -> None:
    imported = imports_of(shipped_driver)
    assert set(imported) == set(IMAGES)
    for image, names in imported.items():
        assert names - exports_of_library(IMAGES[image]) == set()
    assert set(UNDOCUMENTED) <= imported["ntoskrnl.exe"]


def test_shipped_driver_has_no_symbols_of_tests(shipped_driver: Path, model_driver: Path) -> None:
    symbols = symbols_of(shipped_driver)
    assert "DriverEntry" in symbols
    assert [symbol for symbol in symbols if OF_TESTS.search(symbol)] == []
    assert {f"shim_{name}" for name in shims()} <= symbols_of(model_driver)


def test_each_shim_is_of_a_call_that_the_driver_makes(shipped_driver: Path) -> None:
    assert shims() <= imports_of(shipped_driver)["ntoskrnl.exe"]


def test_documentation_lists_each_shim() -> None:
    page = (TESTS.parents[2] / "docs" / "windows-tests.md").read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert rows == shims()


def test_header_is_that_of_a_driver_for_windows_10(image: Image) -> None:
    assert image.field(68, 2) == NATIVE
    assert (image.field(48, 2), image.field(50, 2)) == (10, 0)
    wanted = HIGH_ENTROPY_VA | DYNAMIC_BASE | NX_COMPAT
    assert image.field(70, 2) & wanted == wanted


def test_checksum_of_the_driver_is_right(image: Image) -> None:
    assert image.field(64, 4) == checksum(image)


def test_memory_integrity_accepts_its_sections(image: Image) -> None:
    sections = image.sections()
    assert sections[".text"][1] & EXECUTABLE
    for name, (address, characteristics) in sections.items():
        assert address % PAGE == 0, name
        assert not (characteristics & EXECUTABLE and characteristics & WRITABLE), name


def test_driver_has_a_version(image: Image) -> None:
    assert ".rsrc" in image.sections()
    assert "OriginalFilename".encode("utf-16-le") in image.bytes
