"""A list of symbols as columns, which the core puts at their addresses."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptkit.support.columns import Bools, Bytes, Numbers, Offsets

__all__ = ["KERNEL_ADDRESSES", "FoundList", "NoSymbols", "SymbolColumns"]

#: Addresses from this one on are those of kernels.
KERNEL_ADDRESSES = 1 << 63
_IMAGE_BEGINS = (
    b"__executable_start",
    b"__ehdr_start",
    b"__ImageBase",
    b"___ImageBase",
    b"__image_base__",
    b"___image_base__",
)
_KERNEL_BEGIN = b"_text"


class NoSymbols(Exception):
    """A list of a known kind without symbols that can be used; says why, as the end of a sentence."""


class SymbolColumns:
    """Symbols of a text, added a part at a time: bounds of names in the text, addresses and sizes."""

    def __init__(self) -> None:
        self._parts: list[tuple[Offsets, Offsets, Numbers, Numbers]] = []
        self.count = 0
        self.highest = 0

    def add(self, begin: Offsets, end: Offsets, addresses: Numbers, sizes: Numbers | None = None) -> None:
        """Add symbols; a size of 0 is not known."""
        if not len(begin):
            return
        if sizes is None:
            sizes = np.zeros(len(begin), dtype=np.uint64)
        self._parts.append((begin, end, addresses, sizes))
        self.count += len(begin)
        self.highest = max(self.highest, int(addresses.max()))

    def columns(self) -> tuple[Offsets, Offsets, Numbers, Numbers]:
        """Return the columns, and forget the parts."""
        if not self._parts:
            none = np.zeros(0, dtype=np.int64)
            return none, none, none.astype(np.uint64), none.astype(np.uint64)
        begin, end, addresses, sizes = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        self._parts = []
        return begin, end, addresses, sizes


@dataclass
class FoundList:
    """Symbols and headings of a list, besides the text that has the names.

    Attributes
    ----------
    kind : str
        For messages: ``"output of nm"``.
    symbols : SymbolColumns
    names : bytes, optional
        Bytes in which the bounds of names are offsets; None: the text.
    modules : list of (name, begin, end)
        Modules that the list says were loaded.
    at_run_time : bool
        Addresses are those of a running system or process.
    linked_base : int, optional
        Address of the module in the list, where the list says it.
    module, guid, age : bytes, bytes, int
        Name of the module, and the identity of its PDB; may be empty.
    segments : list of (name, begin, size)
        Segments with estimated begins; empty: addresses are exact.
    """

    kind: str
    symbols: SymbolColumns = field(default_factory=SymbolColumns)
    names: bytes | None = None
    modules: list[tuple[bytes, int, int]] = field(default_factory=list)
    at_run_time: bool = False
    linked_base: int | None = None
    module: bytes = b""
    guid: bytes = b""
    age: int = 0
    segments: list[tuple[bytes, int, int]] = field(default_factory=list)

    def note_base(self, name: bytes, address: int) -> None:
        """Take the address of a symbol that linkers put at the begin of an image as the list's base."""
        if name == _KERNEL_BEGIN if address >= KERNEL_ADDRESSES else name in _IMAGE_BEGINS:
            self.linked_base = address

    def note_bases(self, text: Bytes, begin: Offsets, end: Offsets, addresses: Numbers) -> None:
        """Do so for columns."""
        for row in np.flatnonzero(_may_be_begin(text, begin, end)).tolist():
            self.note_base(text[begin[row] : end[row]].tobytes(), int(addresses[row]))


def _may_be_begin(text: Bytes, begin: Offsets, end: Offsets) -> Bools:
    lengths = np.zeros(32, dtype=np.bool_)
    lengths[[len(name) for name in (*_IMAGE_BEGINS, _KERNEL_BEGIN)]] = True
    may_be: Bools = lengths[np.clip(end - begin, 0, 31)]
    may_be[may_be] = text[begin[may_be]] == 95
    return may_be
