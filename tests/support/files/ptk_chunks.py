"""Bundles that no recorder writes, chunk by chunk, as docs/bundle-format.md has them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MAGIC = b"\x89PTK\r\n\x1a\n" + struct.pack("<HHI", 1, 3, 0)
LAST = 2**64 - 1


def _crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def chunk(kind: str, payload: bytes, number: int = 0) -> bytes:
    """A chunk about what has this number, not packed."""
    return _chunk(kind, number, 0, payload, len(payload))


def zeros(kind: str, size: int, number: int = 0, begin: int = 0) -> bytes:
    """A chunk of zeros, packed: 4 bytes for 128 KiB (RFC 8878, blocks of type RLE_Block).

    `begin` is the offset in the stream.
    """
    most = 128 << 10
    blocks = [min(most, size - begin) for begin in range(0, size, most)]
    frame = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size)
    for i, block in enumerate(blocks):
        frame += struct.pack("<I", block << 3 | 1 << 1 | (i == len(blocks) - 1))[:3] + b"\0"
    return _chunk(kind, number, 1, frame, size, begin)


def _chunk(kind: str, number: int, flags: int, stored: bytes, plain: int, begin: int = 0) -> bytes:
    size = len(stored)
    head = b"PTKC" + kind.encode()
    head += struct.pack("<IIQQQI", flags, number, begin, size, plain, _crc32c(stored))
    return head + struct.pack("<I", _crc32c(head)) + stored + bytes(-size % 8)


def words(kind: str, number: int = 0, /, **members: Any) -> bytes:
    """A chunk with a JSON object."""
    return chunk(kind, json.dumps(members).encode(), number)


def process(number: int, pid: int, tsc: int, trace: bytes) -> bytes:
    """A process that begins at a time, with a space of its own, and the trace of its only thread."""
    space = words("SPAC", number + 1, id=number + 1, pid=pid)
    begin = json.dumps([{"kind": "process", "tsc": tsc, "pid": pid, "tid": pid}])
    stream = words("STRM", number, id=number, pid=pid, tid=pid, space=number + 1)
    return space + chunk("SIDE", begin.encode()) + stream + chunk("DATA", trace, number)


def code(
    address: int,
    data: bytes,
    *,
    space: int = 0,
    times: tuple[int, int] = (0, LAST),
    file: int = -1,
    offset: int = 0,
) -> bytes:
    """Code of a space (0: all processes see it) in [begin, end), from a file or from none."""
    record = struct.pack("<QQQQQiIII", address, *times, offset, len(data), file, space, 1, 0)
    return chunk("CODE", record + data)


def file(number: int, path: str, symbol: str, offset: int, size: int) -> bytes:
    """A file that is not at hand, and its only symbol."""
    name = symbol.encode()
    return words("FILE", number, id=number, path=path) + chunk(
        "SYMB", struct.pack("<QQI", offset, size, len(name)) + name, number
    )


def write(path: Path, chunks: Iterable[bytes], **meta: Any) -> Path:
    """Write a bundle without an index, as a recorder leaves it that was killed."""
    path.write_bytes(MAGIC + words("META", **meta) + b"".join(chunks))
    return path
