"""PE files of one section."""

from __future__ import annotations

import struct


def pe(code: bytes, base: int, image_bytes: int = 0) -> bytes:
    """A program for Windows: one section at base + 0x1000, which lies at 0x200 in the file.

    `image_bytes` is its size in memory; 0: it does not say.
    """
    size = max(0x200, -(-len(code) // 0x200) * 0x200)
    coff = struct.pack("<4sHHIIIHH", b"PE\0\0", 0x8664, 1, 0, 0, 0, 240, 0x22)
    optional = struct.pack("<H22xQ", 0x20B, base).ljust(56, b"\0") + struct.pack("<II", image_bytes, 0x200)
    optional = (optional.ljust(108, b"\0") + struct.pack("<I", 16)).ljust(240, b"\0")
    section = struct.pack("<8sIIII", b".text", len(code), 0x1000, size, 0x200).ljust(36, b"\0")
    section += struct.pack("<I", 0x60000020)  # code: execute, read
    dos = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    return (dos + coff + optional + section).ljust(0x200, b"\0") + code.ljust(size, b"\0")


def pe_with_import(code: bytes, base: int, function: str) -> bytes:
    """The same, with a function that it imports: its slot lies at RVA 0x1100."""
    dll, names, slots, row = 0x1140, 0x10F0, 0x1100, 0x10C0
    tables = struct.pack("<IIIII", names, 0, 0, dll, slots).ljust(names - row, b"\0")
    tables += struct.pack("<QQ", 0x1160, 0) * 2  # names and slots are equal before the file is loaded
    tables = tables.ljust(dll - row, b"\0") + b"NTOSKRNL.exe".ljust(0x20, b"\0")
    tables += b"\0\0" + function.encode() + b"\0"
    image = bytearray(pe(code.ljust(row - 0x1000, b"\xcc") + tables, base))
    struct.pack_into("<II", image, 0x40 + 24 + 112 + 8, row, 40)
    return bytes(image)
