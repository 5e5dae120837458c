"""Machine code (x86-64) and static ELF files, without a compiler."""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["Code", "Segment", "elf_file"]

_PAGE = 0x1000
_ELF_HEADER_BYTES = 64
_PROGRAM_HEADER_BYTES = 56
_X86_64 = 62
_LOAD = 1
_READ, _WRITE, _EXECUTE = 4, 2, 1


class Code:
    """Bytes of code with labels; jumps to labels have 32-bit displacements.

    Parameters
    ----------
    address : int
        Of the first byte.
    """

    def __init__(self, address: int) -> None:
        self._address = address
        self._bytes = bytearray()
        self._labels: dict[str, int] = {}
        self._displacements: list[tuple[int, str]] = []
        self._addresses: list[tuple[int, str]] = []
        self._fresh = 0

    @property
    def here(self) -> int:
        """The address of the next byte."""
        return self._address + len(self._bytes)

    def add(self, *parts: bytes) -> None:
        """Add bytes."""
        for part in parts:
            self._bytes += part

    def label(self, name: str) -> None:
        """Name the next byte."""
        self._labels[name] = self.here

    def fresh(self, name: str) -> str:
        """Make up a label that no other code has."""
        self._fresh += 1
        return f"{name}.{self._fresh}"

    def to(self, opcode: bytes, name: str) -> None:
        """Add an instruction that ends in the displacement of a label: a jump, a call, a LEA."""
        self.add(opcode)
        self._displacements.append((len(self._bytes), name))
        self.add(bytes(4))

    def address_of(self, name: str) -> None:
        """Add the 64-bit address of a label."""
        self._addresses.append((len(self._bytes), name))
        self.add(bytes(8))

    def jump(self, name: str) -> None:
        """Add a JMP."""
        self.to(b"\xe9", name)

    def call(self, name: str) -> None:
        """Add a CALL."""
        self.to(b"\xe8", name)

    def jump_if(self, condition: int, name: str) -> None:
        """Add a Jcc; the condition is the low half of its opcode, such as 5 (not zero)."""
        self.to(bytes([0x0F, 0x80 | condition]), name)

    def finish(self) -> tuple[bytes, dict[str, int]]:
        """Return the bytes, and the addresses of the labels."""
        for at, name in self._displacements:
            end = self._address + at + 4
            struct.pack_into("<i", self._bytes, at, self._labels[name] - end)
        for at, name in self._addresses:
            struct.pack_into("<Q", self._bytes, at, self._labels[name])
        return bytes(self._bytes), dict(self._labels)


@dataclass(frozen=True)
class Segment:
    """A part of a program in memory.

    Attributes
    ----------
    address : int
        A multiple of 4096.
    content : bytes
        Bytes that are loaded.
    size : int
        Bytes in memory; those after the content are zero.
    writable : bool
        Data; otherwise code.
    """

    address: int
    content: bytes
    size: int
    writable: bool = False


def elf_file(entry: int, segments: list[Segment]) -> bytes:
    """Make a static ELF64 program (System V ABI, AMD64 supplement).

    Parameters
    ----------
    entry : int
        The address of the first instruction.
    segments : list of Segment
        By address.
    """
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack(
        "<HHIQQQIHHHHHH", 2, _X86_64, 1, entry, _ELF_HEADER_BYTES, 0, 0,
        _ELF_HEADER_BYTES, _PROGRAM_HEADER_BYTES, len(segments), 0, 0, 0,
    )  # fmt: skip
    body = b""
    for segment in segments:
        offset = _PAGE + len(body)
        access = _READ | (_WRITE if segment.writable else _EXECUTE)
        header += struct.pack(
            "<IIQQQQQQ", _LOAD, access, offset, segment.address, segment.address,
            len(segment.content), segment.size, _PAGE,
        )  # fmt: skip
        body += segment.content + bytes(-len(segment.content) % _PAGE)
    return header.ljust(_PAGE, b"\0") + body
