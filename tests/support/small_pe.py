"""PE files of one section."""

from __future__ import annotations

import struct


def pe(code: bytes, base: int) -> bytes:
    """A program for Windows: one section at base + 0x1000, which lies at 0x200 in the file."""
    coff = struct.pack("<4sHHIIIHH", b"PE\0\0", 0x8664, 1, 0, 0, 0, 240, 0x22)
    optional = struct.pack("<H22xQ", 0x20B, base).ljust(60, b"\0") + struct.pack("<I", 0x200)
    optional = (optional.ljust(108, b"\0") + struct.pack("<I", 16)).ljust(240, b"\0")
    section = struct.pack("<8sIIII", b".text", len(code), 0x1000, 0x200, 0x200).ljust(36, b"\0")
    section += struct.pack("<I", 0x60000020)  # code: execute, read
    dos = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    return (dos + coff + optional + section).ljust(0x200, b"\0") + code.ljust(0x200, b"\0")
