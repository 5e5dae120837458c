"""PE files of one section."""

from __future__ import annotations

import struct


def pe(code: bytes, base: int, image_bytes: int = 0, time_stamp: int = 0) -> bytes:
    """A program for Windows: one section at base + 0x1000, which lies at 0x200 in the file.

    `image_bytes` is its size in memory; 0: it does not say.
    """
    size = max(0x200, -(-len(code) // 0x200) * 0x200)
    coff = struct.pack("<4sHHIIIHH", b"PE\0\0", 0x8664, 1, time_stamp, 0, 0, 240, 0x22)
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


def in_memory(file: bytes, base: int | None = None) -> bytes:
    """A file of one or more sections as a loader lays it out: headers, then sections at their RVAs.

    With a base, that of its header; addresses of the file are left as they are.
    """
    pe_header = struct.unpack_from("<I", file, 0x3C)[0]
    sections, optional_bytes = struct.unpack_from("<H12xH", file, pe_header + 6)
    image_bytes, header_bytes = struct.unpack_from("<II", file, pe_header + 24 + 56)
    rows = [
        struct.unpack_from("<8x4I", file, pe_header + 24 + optional_bytes + 40 * row)
        for row in range(sections)
    ]
    end = max(address + -(-max(size, raw) // 0x1000) * 0x1000 for size, address, raw, _ in rows)
    memory = bytearray(image_bytes or end)
    memory[:header_bytes] = file[:header_bytes]
    for size, address, raw, offset in rows:
        kept = min(size or raw, raw)
        memory[address : address + kept] = file[offset : offset + kept]
    if base is not None:
        is_64_bit = struct.unpack_from("<H", file, pe_header + 24)[0] == 0x20B
        struct.pack_into(
            "<Q" if is_64_bit else "<I", memory, pe_header + 24 + (24 if is_64_bit else 28), base
        )
    return bytes(memory)


def pe32_driver(code: bytes, base: int, relocated: tuple[int, ...]) -> bytes:
    """A 32-bit driver: .text at RVA 0x1000 and .reloc at 0x2000; `relocated`: RVAs of addresses in .text."""
    size = -(-len(code) // 0x200) * 0x200
    blocks = struct.pack("<II", 0x1000, 8 + 2 * len(relocated))
    blocks += b"".join(struct.pack("<H", 3 << 12 | rva - 0x1000) for rva in relocated)
    coff = struct.pack("<4sHHIIIHH", b"PE\0\0", 0x14C, 2, 0, 0, 0, 224, 0x102)
    optional = struct.pack("<H26xI", 0x10B, base).ljust(56, b"\0") + struct.pack("<II", 0x3000, 0x400)
    optional = optional.ljust(92, b"\0") + struct.pack("<I", 16)
    optional = (optional.ljust(96 + 40, b"\0") + struct.pack("<II", 0x2000, len(blocks))).ljust(224, b"\0")
    rows = b""
    for name, used, rva, offset, flags in (
        (b".text", len(code), 0x1000, 0x400, 0x60000020),
        (b".reloc", len(blocks), 0x2000, 0x400 + size, 0x42000040),
    ):
        raw = -(-used // 0x200) * 0x200
        rows += struct.pack("<8sIIII", name, used, rva, raw, offset).ljust(36, b"\0") + struct.pack(
            "<I", flags
        )
    dos = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    head = (dos + coff + optional + rows).ljust(0x400, b"\0")
    return head + code.ljust(size, b"\0") + blocks.ljust(0x200, b"\0")
