"""Lines, words and numbers of long texts as NumPy columns: offsets in the text, some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from string import hexdigits
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


_BLANKS = b" \n\t\r"
_NO_DIGIT = 16
_DIGITS = bytes(int(chr(letter), 16) if chr(letter) in hexdigits else _NO_DIGIT for letter in range(256))
# Bytes of a word of 16 digits that numbers of each length have, at its end; the two halves of a mask.
_MASKS = np.array([[255 * (at >= 16 - length) for at in range(16)] for length in range(17)], dtype=np.uint8)
_MASKS = _MASKS.view(">u8").astype(np.uint64)
_NO_DIGITS = np.uint64(0x1010_1010_1010_1010)
_PACKINGS = [
    (np.uint64(shift), np.uint64(mask))
    for shift, mask in ((4, 0x00FF_00FF_00FF_00FF), (8, 0x0000_FFFF_0000_FFFF), (16, 0x0000_0000_FFFF_FFFF))
]


def is_one_of(letters: bytes, text: Bytes) -> Bools:
    """Return which bytes are one of these letters."""
    found: Bools = text == letters[0]
    for letter in letters[1:]:
        found |= text == letter
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
        blank[1:-1] = is_one_of(_BLANKS, text)
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
    windows = np.ndarray(len(text) + 1, dtype=f"V{_MOST_DIGITS}", buffer=padded, strides=(1,))
    rows = windows[np.where(good, end, 0)]
    halves = np.frombuffer(rows.tobytes().translate(_DIGITS), dtype=">u8").astype(np.uint64).reshape(-1, 2)
    halves &= _MASKS[np.where(good, length, 0)]
    good &= (halves[:, 0] | halves[:, 1]) & _NO_DIGITS == 0
    for shift, mask in _PACKINGS:  # eight digits of a byte each become four bytes
        halves = (halves | halves >> shift) & mask
    values = halves[:, 0] << np.uint64(32) | halves[:, 1]
    values[~good] = 0
    return values, good
