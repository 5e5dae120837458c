"""Messages of protocol buffers, as bytes: fields of integers, bytes and messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

__all__ = ["bytes_field", "packed_field", "varint", "varint_field"]

_BYTES = 2  # wire type of what has a length


@lru_cache(1 << 16)
def varint(value: int) -> bytes:
    """An integer in groups of 7 bits, the lowest first; negative ones have 64 bits."""
    if 0 <= value <= 0x7F:
        return bytes((value,))
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def varint_field(number: int, value: int) -> bytes:
    """A field with an integer; nothing for 0, which readers take for a field that is missing."""
    return varint(number << 3) + varint(value) if value else b""


def bytes_field(number: int, data: bytes) -> bytes:
    """A field with bytes, a string or a message."""
    return b"%b%b%b" % (varint(number << 3 | _BYTES), varint(len(data)), data)


def packed_field(number: int, values: Iterable[bytes]) -> bytes:
    """A repeated field of integers, each given as `varint` makes it."""
    return bytes_field(number, b"".join(values))
