"""Maps with segments and "Publics by Value": of IDA, of Microsoft's linker (/MAP), of Delphi.

::

    Preferred load address is 0000000140000000                                  (linkers)
    Start         Length     Name                   Class
    0001:00000000 00001000H  .text                  CODE
     Address         Publics by Value              Rva+Base       Lib:Object    (IDA: no third column)
    0001:00000010       main                       0000000140001010 f main.obj
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.columns import Bools, Numbers, Offsets, Words, chunks, hex_numbers
from ptkit.support.text import number
from ptkit.symbol_lists.found import FoundList, NoSymbols

__all__ = ["read_segment_map"]

_SECTION_ALIGNMENT = 0x1000
_BASE_ALIGNMENT = 0x10000  # of Windows' images
_LAST_SEGMENT = 0xFFFF
_HEADINGS = (b"Preferred ", b"Start ", b"Address ")


@dataclass
class _Segment:
    name: bytes
    begin: int
    end: int
    has_code: bool = False
    address: int = 0  # of offset 0, where the segment does not say where it begins


@dataclass
class _State:
    """Facts of the headings of a map so far."""

    has_segments: bool = False
    has_symbols: bool = False
    has_addresses: bool = False
    is_in_publics: bool = False


@dataclass
class _Publics:
    """Columns of symbols; `has_address`: with Rva+Base."""

    segment: Numbers
    offset: Numbers
    begin: Offsets
    end: Offsets
    address: Numbers
    has_address: Bools


class _SegmentMap:
    def __init__(self) -> None:
        self.found = FoundList("")
        self._segments: dict[int, _Segment] = {}
        self._publics: list[_Publics] = []
        self._state = _State()

    def read(self, offset: int, words: Words) -> None:
        """Read a part of the text."""
        begin, end = words.line_begin, words.line_end
        _, first, last = words.word(0)
        colon = words.find(words.positions(b":"), first, last)
        segment, segment_good = hex_numbers(words.text, first, colon)
        where, where_good = hex_numbers(words.text, np.minimum(colon + 1, last), last)
        is_position = segment_good & where_good & (colon < last) & (segment <= _LAST_SEGMENT)
        heading = np.zeros(len(begin), dtype=np.bool_)
        for word in _HEADINGS:
            heading |= words.starts_with(word, begin, end)
        if not self._state.has_segments and not self.found.module:
            self._read_name(words, ~is_position & ~heading)
        rows = np.flatnonzero(heading & ~is_position)
        states = np.zeros((len(rows) + 1, 4), dtype=np.bool_)
        states[0] = self._flags()
        for count, row in enumerate(rows.tolist(), 1):
            self._read_heading(words.bytes_of(begin[row], end[row]))
            states[count] = self._flags()
        lines = np.flatnonzero(is_position)
        flags = states[np.searchsorted(rows, lines)]
        publics = lines[flags[:, 3]]
        for row in lines[flags[:, 0] & ~flags[:, 1] & ~flags[:, 3]].tolist():
            rest = words.bytes_of(int(last[row]), int(end[row]))
            self._read_segment(int(segment[row]), int(where[row]), rest)
        self._read_publics(offset, words, publics, segment[publics], where[publics], flags[flags[:, 3], 2])

    def _flags(self) -> tuple[bool, bool, bool, bool]:
        state = self._state
        return state.has_segments, state.has_symbols, state.has_addresses, state.is_in_publics

    def _read_name(self, words: Words, may_be: Bools) -> None:
        """Microsoft's linker begins with the name of the module, alone on its line."""
        for row in np.flatnonzero(may_be & (words.count == 1))[:1].tolist():
            before = words.bytes_of(0, int(words.line_begin[row]))
            if b"Class" not in before:
                self.found.module = words.bytes_of(int(words.line_begin[row]), int(words.line_end[row]))

    def _read_heading(self, line: bytes) -> None:
        base = b"Preferred load address is "
        if line.startswith(base):
            self.found.linked_base = number(line[len(base) :].strip(), 16)
        elif line.startswith(b"Start ") and b"Class" in line:
            self._state.has_segments, self._state.is_in_publics = True, False
        elif line.startswith(b"Address ") and b"Publics by " in line:
            self._state.is_in_publics = b"Publics by Value" in line
            self._state.has_symbols |= self._state.is_in_publics
            self._state.has_addresses = b"Rva+Base" in line

    def _read_segment(self, index: int, begin: int, rest: bytes) -> None:
        fields = [*rest.split(maxsplit=2), b"", b"", b""][:3]
        size = number(fields[0].removesuffix(b"H"), 16)
        if size is None or size > LAST_ADDRESS - begin:
            return
        segment = self._segments.setdefault(index, _Segment(fields[1], begin, begin))
        segment.begin = min(segment.begin, begin)
        segment.end = max(segment.end, begin + size)
        segment.has_code |= b"CODE" in fields[2]

    def _read_publics(
        self,
        offset: int,
        words: Words,
        rows: Offsets,
        segment: Numbers,
        where: Numbers,
        with_address: Bools,
    ) -> None:
        kept = (segment != 0) & (words.count[rows] > 1)  # segment 0: constants
        rows, segment, where, with_address = rows[kept], segment[kept], where[kept], with_address[kept]
        if not len(rows):
            return
        name = words.first[rows] + 1
        address = np.zeros(len(rows), dtype=np.uint64)
        good = np.zeros(len(rows), dtype=np.bool_)
        if with_address.any():
            _, begin, end = words.word(2)
            address, good = hex_numbers(words.text, begin[rows], end[rows])
        self._publics.append(
            _Publics(
                segment,
                where,
                words.begin[name] + offset,
                words.end[name] + offset,
                address,
                good & with_address,
            )
        )

    def finish(self) -> FoundList | None:
        """Return the list, once all parts are read."""
        if not self._state.has_segments or not self._state.has_symbols:
            return None
        self._lay_out()
        for publics in self._publics:
            self._add(publics)
        if not self.found.symbols.count:
            raise NoSymbols(f"is {self.found.kind} without a function")
        return self.found

    def _lay_out(self) -> None:
        """Estimate where segments begin if the map has neither addresses nor begins of segments.

        They are taken to lie one after the other, as linkers put them. The core corrects it if the image is
        known.
        """
        address = _SECTION_ALIGNMENT
        lowest = LAST_ADDRESS
        has_begins = any(segment.begin != 0 for segment in self._segments.values())
        for _, segment in sorted(self._segments.items()):
            lowest = min(lowest, segment.begin)
            if has_begins:
                continue
            segment.address = address
            if segment.end > LAST_ADDRESS - address - _SECTION_ALIGNMENT:
                break
            address = -(-(address + segment.end) // _SECTION_ALIGNMENT) * _SECTION_ALIGNMENT
        is_of_linker = self.found.linked_base is not None
        self.found.kind = "map of a linker" if is_of_linker else "map of IDA or Delphi"
        if has_begins and not is_of_linker:
            self.found.linked_base = lowest // _BASE_ALIGNMENT * _BASE_ALIGNMENT
        if has_begins or self._state.has_addresses:
            return
        self.found.linked_base = 0
        self.found.segments = [
            (segment.name, segment.address, segment.end) for _, segment in sorted(self._segments.items())
        ]

    def _add(self, publics: _Publics) -> None:
        has_code = np.zeros(_LAST_SEGMENT + 1, dtype=np.bool_)
        begins = np.zeros(_LAST_SEGMENT + 1, dtype=np.uint64)
        addresses = np.zeros(_LAST_SEGMENT + 1, dtype=np.uint64)
        for index, one in self._segments.items():
            has_code[index], begins[index], addresses[index] = one.has_code, one.begin, one.address
        segment = publics.segment.astype(np.int64)
        begin = begins[segment]
        # IDA's offsets may be addresses, Delphi's count from the begin of the segment.
        is_address = (begin != 0) & (publics.offset >= begin)
        computed = publics.offset + np.where(is_address, np.uint64(0), begin + addresses[segment])
        address = np.where(publics.has_address, publics.address, computed)
        kept = has_code[segment]
        self.found.symbols.add(publics.begin[kept], publics.end[kept], address[kept])


def read_segment_map(text: bytes) -> FoundList | None:
    """Read such a map; None: it is none.

    Raises
    ------
    NoSymbols
        If it has no function.
    """
    if b"Publics by Value" not in text or b"Class" not in text:
        return None
    found = _SegmentMap()
    for offset, part in chunks(text):
        words = Words(part)
        if len(words.count):
            found.read(offset, words)
    return found.finish()
