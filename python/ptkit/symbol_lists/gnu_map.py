"""Maps of GNU ld (-Map): output sections begin a line, symbols stand behind an address.

::

    .text           0x0000000000001040      0x1a5
     .text          0x0000000000001139       0x22 main.o
                    0x0000000000001139                main
"""

from __future__ import annotations

import numpy as np

from ptkit.support.columns import Bools, Numbers, Offsets, Words, chunks, hex_numbers, is_one_of
from ptkit.symbol_lists.found import FoundList, NoSymbols

__all__ = ["read_gnu_map"]

_BEGIN = b"Linker script and memory map"
_PROVIDED = b"PROVIDE ("
_CODE_SECTIONS = (b".init", b".fini")


def _holds_code(section: bytes) -> bool:
    return b"text" in section or section.startswith(b".plt") or section in _CODE_SECTIONS


def _names(words: Words, begin: Offsets, end: Offsets) -> Bools:
    """Return which texts behind an address are names; others are sizes, assignments, assertions."""
    letter = words.text[np.minimum(begin, len(words.text) - 1)]
    other = is_one_of(b".[", letter)
    other |= words.starts_with(b"0x", begin, end)
    other |= words.starts_with(b"ASSERT", begin, end)
    return (end > begin) & ~other


def _read_part(found: FoundList, words: Words, offset: int, is_code: bool) -> bool:
    indented = is_one_of(b" \t\r", words.text[words.start])
    sections = words.start[~indented]
    code = np.zeros(len(sections) + 1, dtype=np.bool_)
    code[0] = is_code
    code[1:] = [
        _holds_code(words.bytes_of(begin, end))
        for begin, end in zip(sections.tolist(), words.end[words.first[~indented]].tolist(), strict=True)
    ]
    rows = np.flatnonzero(indented & (words.count > 1))
    address, good = hex_numbers(words.text, words.line_begin[rows], words.end[words.first[rows]])
    rows, address = rows[good], address[good]
    begin, end = words.begin[words.first[rows] + 1], words.line_end[rows]
    equals = words.positions(b" = ")
    assigned = words.find(equals, begin, end) < end
    if assigned.any():
        _note_assignments(found, words, begin[assigned], end[assigned], address[assigned])
    found.note_bases(words.text, begin, end, address)
    kept = code[np.searchsorted(sections, words.start[rows])] & ~assigned & _names(words, begin, end)
    found.symbols.add(begin[kept] + offset, end[kept] + offset, address[kept])
    return bool(code[-1])


def _note_assignments(found: FoundList, words: Words, begin: Offsets, end: Offsets, address: Numbers) -> None:
    for first, last, value in zip(begin.tolist(), end.tolist(), address.tolist(), strict=True):
        text = words.bytes_of(first, min(last, first + 80)).removeprefix(_PROVIDED)
        if name := text.split(maxsplit=1)[:1]:
            found.note_base(name[0], value)


def read_gnu_map(text: bytes) -> FoundList | None:
    """Read such a map; None: it is none.

    Raises
    ------
    NoSymbols
        If it has no function.
    """
    begin = text.find(_BEGIN)
    if begin < 0:
        return None
    found = FoundList("map of GNU ld")
    is_code = False
    for offset, part in chunks(text, begin + len(_BEGIN)):
        words = Words(part)
        if len(words.count):
            is_code = _read_part(found, words, offset, is_code)
    if not found.symbols.count:
        raise NoSymbols("is a map of GNU ld without a function")
    return found
