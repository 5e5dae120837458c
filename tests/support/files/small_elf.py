"""ELF files of one function, and of no function."""

from __future__ import annotations

import struct


def elf(code: bytes, address: int, name: str) -> bytes:
    """A static ELF64 program of one function (System V ABI, AMD64 supplement; TIS ELF 1.2)."""
    names = b"\0" + name.encode() + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, address, len(code))
    text_at = 0x1000
    symbols_at = text_at + len(code) + -len(code) % 8
    names_at = symbols_at + len(symbols)
    sections_at = names_at + len(names) + -len(names) % 8
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, address, 64, sections_at, 0, 64, 56, 1, 64, 4, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, text_at, address, address, len(code), len(code), 0x1000)

    def section(kind: int, flags: int, address: int, at: int, size: int, link: int, entry: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", 0, kind, flags, address, at, size, link, 1, 1, entry)

    image = (header + segment).ljust(text_at, b"\0") + code
    image = image.ljust(symbols_at, b"\0") + symbols + names
    return image.ljust(sections_at, b"\0") + b"".join(
        [
            bytes(64),
            section(1, 6, address, text_at, len(code), 0, 0),
            section(2, 0, 0, symbols_at, len(symbols), 3, 24),
            section(3, 0, 0, names_at, len(names), 0, 0),
        ]
    )


def shifted_elf(code: bytes) -> bytes:
    """A library whose code lies a page further in memory than in the file, as lld lays it out: RVA 0x1200."""
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    segments = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, 0x200, 0x200, 0x1000)
    segments += struct.pack("<IIQQQQQQ", 1, 5, 0x200, 0x1200, 0x1200, len(code), len(code), 0x1000)
    return (header + segments).ljust(0x200, b"\0") + code
