"""ptkit.sys as `make windows` makes it: what Windows' loader and memory integrity ask of a driver's file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

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

    def word(self, place: int) -> int:
        """32 bits."""
        return int.from_bytes(self.bytes[place : place + 4], "little")

    def sections(self) -> dict[str, tuple[int, int]]:
        """Address and characteristics by name."""
        begin = self.header + int.from_bytes(self.bytes[self.header - 4 : self.header - 2], "little")
        count = int.from_bytes(self.bytes[self.header - 18 : self.header - 16], "little")
        found = {}
        for place in range(begin, begin + 40 * count, 40):
            name = self.bytes[place : place + 8].rstrip(b"\0").decode()
            address, characteristics = (self.word(place + at) for at in (12, 36))
            found[name] = (address, characteristics)
        return found


def checksum(image: Image) -> int:
    """The sum of all 16-bit words with carries, without the field itself, and the size."""
    place = image.header + 64
    data = image.bytes[:place] + bytes(4) + image.bytes[place + 4 :]
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[place : place + 2], "little") for place in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total + len(image.bytes)


@pytest.fixture(scope="module")
def image(shipped_driver: Path) -> Image:
    """What the file says."""
    return Image(shipped_driver.read_bytes())


def test_it_is_a_driver_for_windows_10(image: Image) -> None:
    assert image.field(68, 2) == NATIVE
    assert (image.field(48, 2), image.field(50, 2)) == (10, 0)
    wanted = HIGH_ENTROPY_VA | DYNAMIC_BASE | NX_COMPAT
    assert image.field(70, 2) & wanted == wanted


def test_its_checksum_is_right(image: Image) -> None:
    assert image.field(64, 4) == checksum(image)


def test_memory_integrity_accepts_its_sections(image: Image) -> None:
    sections = image.sections()
    assert sections[".text"][1] & EXECUTABLE
    for name, (address, characteristics) in sections.items():
        assert address % PAGE == 0, name
        assert not (characteristics & EXECUTABLE and characteristics & WRITABLE), name


def test_it_has_a_version(image: Image) -> None:
    assert ".rsrc" in image.sections()
    assert "OriginalFilename".encode("utf-16-le") in image.bytes
