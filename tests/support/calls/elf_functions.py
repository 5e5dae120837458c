"""Where functions begin in ELF64 files: by symbols, and by `.eh_frame_hdr` where a file has none.

Read without ptkit, as tests judge ptkit by it (TIS ELF 1.2; LSB 5.0 Core, 10.6.2 for `.eh_frame_hdr`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SECTION = np.dtype(
    [("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"),
     ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entry", "<u8")]
)  # fmt: skip
_SEGMENT = np.dtype(
    [("type", "<u4"), ("flags", "<u4"), ("offset", "<u8"), ("address", "<u8"), ("physical", "<u8"),
     ("file_bytes", "<u8"), ("memory_bytes", "<u8"), ("align", "<u8")]
)  # fmt: skip
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_PT_LOAD = 1
_SYMBOL_TABLES = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_SORTED_TABLE = 0x3B  # DW_EH_PE_datarel | DW_EH_PE_sdata4
_PUSH = b"\xff\x35"  # of the first entry of a PLT; others begin with a jump
_STUBS = (".plt", ".plt.sec", ".plt.got", ".iplt")

Addresses = NDArray[np.uint64]


@dataclass(frozen=True)
class Functions:
    """Of one file; all addresses are those that the file states."""

    starts: Addresses  # sorted
    ends: Addresses  # where code ends that is known to be in functions
    names: dict[int, str]  # by start
    stubs: tuple[tuple[int, int], ...]  # ranges of the PLT
    lazy: tuple[int, ...]  # first entries of a PLT, which jump to the resolver
    segments: NDArray[Any]  # PT_LOAD

    def bias(self, address: int, offset: int) -> int:
        """The distance to add to the file's addresses when `offset` of the file is mapped at `address`."""
        # Mappings begin with pages; a page may have the end of a segment and the begin of the next one.
        for segment in self.segments[::-1]:
            first = int(segment["offset"]) & ~0xFFF
            if first <= offset < int(segment["offset"]) + int(segment["file_bytes"]):
                return address - (offset - int(segment["offset"]) + int(segment["address"]))
        raise ValueError(f"no segment of the file has offset {offset:#x}")


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")


def _symbols(data: bytes, sections: NDArray[Any]) -> tuple[dict[int, str], list[tuple[int, int]]]:
    """Functions by address, with the first name of each; begin and end of each."""
    names: dict[int, str] = {}
    extents: list[tuple[int, int]] = []
    for table in sections[np.isin(sections["type"], _SYMBOL_TABLES)]:
        at, size = int(table["offset"]), int(table["size"])
        texts = int(sections[int(table["link"])]["offset"])
        symbols = np.frombuffer(data, _SYMBOL, size // _SYMBOL.itemsize, at)
        named = symbols[np.isin(symbols["info"] & 15, _FUNCTIONS) & (symbols["section"] != 0)]
        for symbol in named:
            names.setdefault(int(symbol["value"]), _text(data, texts + int(symbol["name"])))
            extents.append((int(symbol["value"]), int(symbol["value"]) + int(symbol["size"])))
    return names, extents


def _unwinding(data: bytes, header: NDArray[Any], frames: NDArray[Any]) -> NDArray[np.int64]:
    """Begin and end of each function that `.eh_frame_hdr` lists."""
    at, address = int(header["offset"]), int(header["address"])
    if data[at] != 1 or data[at + 3] != _SORTED_TABLE:
        return np.zeros((0, 2), np.int64)
    count = int(np.frombuffer(data, "<u4", 1, at + 8)[0])
    table = np.frombuffer(data, "<i4", 2 * count, at + 12).reshape(-1, 2).astype(np.int64) + address
    # An FDE: length, CIE pointer, begin, size; four bytes each in all programs that compilers make.
    sizes_at = table[:, 1] - int(frames["address"]) + int(frames["offset"]) + 12
    octets = np.frombuffer(data, np.uint8)[sizes_at[:, None] + np.arange(4)]
    sizes = octets.view("<u4")[:, 0].astype(np.int64)
    return np.stack([table[:, 0], table[:, 0] + sizes], axis=1)


def _ends(extents: NDArray[np.int64]) -> Addresses:
    """Ends behind which no known function goes on; extents may overlap."""
    if len(extents) == 0:
        return np.zeros(0, np.uint64)
    extents = extents[np.argsort(extents[:, 0], kind="stable")]
    reached = np.maximum.accumulate(extents[:, 1])
    followed = np.append(extents[1:, 0] <= reached[:-1], False)
    return reached[~followed].astype(np.uint64)


@cache
def functions_of(path: Path) -> Functions:
    """Functions of an ELF64 file. A part that the compiler split off (`f.cold`) is none."""
    data = path.read_bytes()
    program_at, sections_at = (int(word) for word in np.frombuffer(data, "<u8", 2, 32))
    _, _, segments, _, count, names_in = (int(word) for word in np.frombuffer(data, "<u2", 6, 52))
    loads = np.frombuffer(data, _SEGMENT, segments, program_at)
    sections = np.frombuffer(data, _SECTION, count, sections_at)
    texts = int(sections[names_in]["offset"])
    by_name = {_text(data, texts + int(one["name"])): one for one in sections}
    stubs = [by_name[name] for name in _STUBS if name in by_name]
    ranges = tuple((int(one["address"]), int(one["address"]) + int(one["size"])) for one in stubs)
    lazy = [one for one in stubs if data[int(one["offset"]) :][:2] == _PUSH]
    names, by_symbol = _symbols(data, sections)
    extents = np.array(by_symbol, np.int64).reshape(-1, 2)
    cold = {address for address, name in names.items() if name.endswith(".cold")}
    starts = set(names)
    if ".eh_frame_hdr" in by_name:
        unwinding = _unwinding(data, by_name[".eh_frame_hdr"], by_name[".eh_frame"])
        starts.update(unwinding[:, 0].tolist())
        extents = np.concatenate([extents, unwinding])
    # The dynamic linker calls these; stripped files have no symbol of them.
    whole = [by_name[name] for name in (".init", ".fini") if name in by_name]
    starts.update(int(one["address"]) for one in whole)
    ends = [(int(one["address"]), int(one["address"]) + int(one["size"])) for one in whole]
    extents = np.concatenate([extents, np.array(ends, np.int64).reshape(-1, 2)])
    starts -= cold
    starts = {one for one in starts if not any(first <= one < last for first, last in ranges)}
    return Functions(
        np.array(sorted(starts), dtype=np.uint64),
        _ends(extents),
        names,
        ranges,
        tuple(int(one["address"]) for one in lazy),
        loads[loads["type"] == _PT_LOAD],
    )
