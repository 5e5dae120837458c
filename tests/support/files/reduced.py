"""Recordings of the emulated machine, reduced to what decoding takes: packed code, and what was executed.

Of the code only branches, and what else decoders look at, are kept as they were. All other instructions are
replaced by NOPs of the same size, so that no program's code is carried along, and little space is taken.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PAGE = 4096
_NOPS = [
    bytes.fromhex(nop)
    for nop in (
        "90", "6690", "0f1f00", "0f1f4000", "0f1f440000", "660f1f440000", "0f1f8000000000",
        "0f1f840000000000", "660f1f840000000000",
    )
]  # fmt: skip
_PREFIXES = frozenset(bytes.fromhex("2636 2e3e 6465 6667 f0f2f3".replace(" ", "")))
_SHORT_JUMPS = frozenset(range(0x70, 0x80)) | {0xE0, 0xE1, 0xE2, 0xE3, 0xEB}
_NEAR = frozenset(bytes.fromhex("c2c3e8e9"))
_FAR = frozenset(bytes.fromhex("9acacbcccdcecfeaf1"))
# SYSCALL, SYSRET, UD2, WRMSR, SYSENTER, SYSEXIT, MOV to and from control registers, groups 7 and 15.
_TWO_BYTES = frozenset(range(0x80, 0x90)) | frozenset(bytes.fromhex("05070b303435202201ae"))


@dataclass(frozen=True)
class Reduced:
    """A recording's code and truth.

    Attributes
    ----------
    streams
        By CPU and thread, as perf_data.aux_streams() has them, the address of every executed instruction.
    images
        Pages of code, by address.
    """

    streams: dict[tuple[int, int], NDArray[np.uint64]]
    images: dict[int, bytes]


def is_looked_at(instruction: bytes) -> bool:
    """Whether a decoder of traces has to know more of an instruction than its size."""
    rest = instruction.lstrip(bytes(_PREFIXES))
    if len(rest) > 1 and 0x40 <= rest[0] < 0x50:  # REX, or INC and DEC, which are alone
        rest = rest[1:]
    if rest[0] == 0x0F:
        return rest[1] in _TWO_BYTES
    if rest[0] in {0xC6, 0xC7}:  # XABORT, XBEGIN
        return rest[1] == 0xF8
    indirect = rest[0] == 0xFF and 2 <= rest[1] >> 3 & 7 <= 5
    return indirect or rest[0] in _SHORT_JUMPS or rest[0] in _NEAR or rest[0] in _FAR


def pack(
    streams: dict[tuple[int, int], tuple[NDArray[np.uint64], NDArray[np.uint8]]], code: dict[int, bytes]
) -> bytes:
    """The file's bytes.

    Parameters
    ----------
    streams
        Addresses and sizes of what was executed.
    code
        Pages of code, by address.
    """
    ips = np.concatenate([ip for ip, _ in streams.values()])
    addresses, firsts = np.unique(ips, return_index=True)
    sizes = np.concatenate([size for _, size in streams.values()])[firsts]
    instructions = [
        _read(code, ip, size) for ip, size in zip(addresses.tolist(), sizes.tolist(), strict=True)
    ]
    kept = np.array([is_looked_at(instruction) for instruction in instructions])
    overlap = np.flatnonzero(addresses[:-1] + sizes[:-1] > addresses[1:])  # some are entered after a prefix
    kept[overlap] = kept[overlap + 1] = True
    packed = {
        "streams": np.array(list(streams), dtype=np.int64),
        "gaps": np.diff(addresses, prepend=np.uint64(0)),
        "sizes": sizes,
        "kept": np.packbits(kept),
        "bytes": np.frombuffer(
            b"".join(instructions[index] for index in np.flatnonzero(kept)), dtype=np.uint8
        ),
    }
    for number, (ip, _) in enumerate(streams.values()):
        cells = np.searchsorted(addresses, ip)
        starts = np.flatnonzero(np.diff(cells, prepend=-2) != 1)
        packed[f"starts{number}"] = np.diff(cells[starts], prepend=0).astype(np.int32)
        packed[f"counts{number}"] = np.diff(starts, append=len(cells)).astype(np.uint32)
    file = io.BytesIO()
    np.savez_compressed(file, **packed)
    return file.getvalue()


def unpack(path: Path) -> Reduced:
    """Read the result of pack()."""
    with np.load(path) as packed:
        addresses = np.cumsum(packed["gaps"], dtype=np.uint64)
        kept = np.unpackbits(packed["kept"], count=len(addresses)).astype(np.bool_)
        images = _images(addresses, packed["sizes"], kept, packed["bytes"].tobytes())
        streams = {}
        for number, (cpu, tid) in enumerate(packed["streams"].tolist()):
            counts = packed[f"counts{number}"].astype(np.int64)
            starts = np.cumsum(packed[f"starts{number}"], dtype=np.int64)
            steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            streams[cpu, tid] = addresses[np.repeat(starts, counts) + steps]
    return Reduced(streams, images)


def _images(
    addresses: NDArray[np.uint64], sizes: NDArray[np.uint8], kept: NDArray[np.bool_], data: bytes
) -> dict[int, bytes]:
    pages: dict[int, bytearray] = {}
    offset = 0
    for ip, size, keep in zip(addresses.tolist(), sizes.tolist(), kept.tolist(), strict=True):
        instruction = data[offset : offset + size] if keep else _nop(size)
        offset += size if keep else 0
        for address, byte in enumerate(instruction, ip):
            page = pages.setdefault(address & ~(PAGE - 1), bytearray(PAGE))
            page[address % PAGE] = byte
    return {address: bytes(page) for address, page in pages.items()}


def _nop(size: int) -> bytes:
    more = max(0, size - len(_NOPS))
    return b"\x66" * more + _NOPS[size - more - 1]


def _read(code: dict[int, bytes], ip: int, size: int) -> bytes:
    page, offset = ip & ~(PAGE - 1), ip % PAGE
    found = code[page][offset : offset + size]
    return found if len(found) == size else found + code[page + PAGE][: size - len(found)]
