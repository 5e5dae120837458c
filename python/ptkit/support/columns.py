"""Lines, words and numbers of long texts as NumPy columns: offsets in the text, some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Bytes", "Numbers", "Offsets", "Words", "chunks", "hex_numbers", "is_one_of"]

Bytes: TypeAlias = npt.NDArray[np.uint8]
Offsets: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.uint64]
Bools: TypeAlias = npt.NDArray[np.bool_]

#: Text that is looked at together. Memory does not grow with the text; a line that is longer is left out.
CHUNK_BYTES = 1 << 22
_MOST_DIGITS = 16


def _table(letters: bytes) -> Bools:
    table = np.zeros(256, dtype=np.bool_)
    table[list(letters)] = True
    return table


_BLANK = _table(b" \t\r\n")
_DIGIT = np.full(256, 255, dtype=np.uint8)
for _digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
    _DIGIT[list(_digits)] = np.arange(16, dtype=np.uint8)


def is_one_of(letters: bytes, text: Bytes) -> Bools:
    """Return which bytes are one of these letters."""
    found: Bools = np.take(_table(letters), text, mode="clip")
    return found


def chunks(text: bytes, begin: int = 0) -> Iterator[tuple[int, Bytes]]:
    """Yield the offset and the bytes of parts of a text, each of whole lines."""
    whole = np.frombuffer(text, dtype=np.uint8)
    while begin < len(text):
        end = len(text)
        if end - begin > CHUNK_BYTES:
            end = text.rfind(b"\n", begin, begin + CHUNK_BYTES) + 1
            if end <= begin:
                begin = text.find(b"\n", begin + CHUNK_BYTES) + 1
                if begin == 0:
                    return
                continue
        yield begin, whole[begin:end]
        begin = end


class Words:
    """The words of the lines of a text that have some; blanks are spaces, tabs and carriage returns.

    Attributes
    ----------
    text : array of uint8
    begin, end : arrays of int64
        Of each word.
    first, count : arrays of int64
        Of each line that has words: its first word, and the number of its words.
    line_begin, line_end : arrays of int64
        Of the first word and of the last one of each such line.
    start : array of int64
        Where each such line itself begins.
    """

    def __init__(self, text: Bytes) -> None:
        self.text = text
        blank = np.empty(len(text) + 2, dtype=np.bool_)
        blank[0] = blank[-1] = True
        np.take(_BLANK, text, out=blank[1:-1], mode="clip")  # other modes copy
        edges = np.flatnonzero(blank[1:] != blank[:-1])
        self.begin, self.end = edges[0::2], edges[1::2]
        starts = np.concatenate(([0], np.flatnonzero(text == 10) + 1))
        first = np.searchsorted(self.begin, starts)
        count = np.diff(first, append=len(self.begin))
        some = count > 0
        self.start, self.first, self.count = starts[some], first[some], count[some]
        self.line_begin = self.begin[self.first]
        self.line_end = self.end[self.first + self.count - 1]

    def word(self, number: int) -> tuple[Bools, Offsets, Offsets]:
        """Return which lines have so many words and one more, and the bounds of that; (0, 0) in others."""
        has = self.count > number
        index = np.where(has, self.first + number, 0)
        return has, np.where(has, self.begin[index], 0), np.where(has, self.end[index], 0)

    def trimmed(self, begin: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """Return ranges without the blanks at both ends; a range of blanks alone has no byte."""
        if not len(self.begin):
            return begin, begin
        last = len(self.begin) - 1
        word = np.minimum(np.searchsorted(self.end, begin, side="right"), last)
        first = np.maximum(begin, self.begin[word])
        word = np.maximum(np.searchsorted(self.begin, end) - 1, 0)
        return first, np.maximum(np.minimum(end, self.end[word]), first)

    def find(self, positions: Offsets, begin: Offsets, end: Offsets) -> Offsets:
        """Return the first of some sorted positions within each range; the range's end if it has none."""
        if not len(positions):
            return end
        index = np.searchsorted(positions, begin)
        found = positions[np.minimum(index, len(positions) - 1)]
        return np.where((index < len(positions)) & (found < end), found, end)

    def positions(self, part: bytes) -> Offsets:
        """Return where a part of the text stands; it is not of spaces alone."""
        rare = len(part) - len(part.lstrip(b" "))  # texts have many spaces
        found = np.flatnonzero(self.text == part[rare]) - rare
        if len(part) > 1:
            found = found[(found >= 0) & (found + len(part) <= len(self.text))]
        for number, letter in enumerate(part):
            if number != rare:
                found = found[self.text[found + number] == letter]
        return found

    def starts_with(self, part: bytes, begin: Offsets, end: Offsets) -> Bools:
        """Return which ranges begin with some bytes."""
        rows = np.flatnonzero(end - begin >= len(part))
        for number, letter in enumerate(part):
            rows = rows[self.text[begin[rows] + number] == letter]
        is_it = np.zeros(len(begin), dtype=np.bool_)
        is_it[rows] = True
        return is_it

    def bytes_of(self, begin: int, end: int) -> bytes:
        """Return the bytes of one range."""
        return self.text[begin:end].tobytes()


def hex_numbers(text: Bytes, begin: Offsets, end: Offsets) -> tuple[Numbers, Bools]:
    """Read hexadecimal numbers of up to 64 bits, with or without ``0x``, and which ranges hold one alone."""
    if not len(text) or not len(begin):
        return np.zeros(len(begin), dtype=np.uint64), np.zeros(len(begin), dtype=np.bool_)
    last = len(text) - 1
    prefixed = (end - begin > 2) & (text[np.minimum(begin, last)] == 48)
    prefixed &= (text[np.minimum(begin + 1, last)] | 32) == 120
    length = end - begin - 2 * prefixed
    good = (length > 0) & (length <= _MOST_DIGITS)
    padded = np.concatenate((np.zeros(_MOST_DIGITS, dtype=np.uint8), text))
    rows = np.lib.stride_tricks.sliding_window_view(padded, _MOST_DIGITS)[np.where(good, end, 0)]
    digits = np.take(_DIGIT, rows, mode="clip")
    shortest = int(length[good].min()) if good.any() else 0
    if shortest < _MOST_DIGITS:
        before = np.arange(_MOST_DIGITS) < (_MOST_DIGITS - length)[:, None]
        digits[before] = 0
    good &= digits.max(axis=1) < 16
    packed = np.ascontiguousarray(digits[:, 0::2] << 4 | digits[:, 1::2])
    values = packed.view(">u8").ravel().astype(np.uint64)
    values[~good] = 0
    return values, good
