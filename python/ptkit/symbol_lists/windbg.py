"""Logs of WinDbg, kd and cdb: output of ``x`` (symbols) and of ``lm`` (modules), at addresses of the system.

::

    fffff806`85389310 srv2!Srv2ProcessPacket (void)
    start             end                 module name
    fffff806`85380000 fffff806`85450000   srv2       (pdb symbols)          C:\\sym\\srv2.pdb
"""

from __future__ import annotations

import numpy as np

from ptkit.support.columns import Bools, Numbers, Offsets, Words, chunks, hex_numbers
from ptkit.symbol_lists.found import FoundList

__all__ = ["read_windbg"]

_UNLOADED = b"Unloaded modules"
_IMAGE_NAME = b"Image name:"
_LEAST_DIGITS = 8
_MOST_ADDRESS = 1 << 64


def _joined_halves(words: Words, begin: Offsets, end: Offsets) -> tuple[Numbers, Bools]:
    """Read addresses with a backtick before their last eight digits."""
    middle = end - 9
    high, high_good = hex_numbers(words.text, begin, middle)
    low, low_good = hex_numbers(words.text, middle + 1, end)
    good = high_good & low_good & (high < 1 << 32) & (middle - begin <= 8)
    return high << np.uint64(32) | low, good


def _addresses(words: Words, has: Bools, begin: Offsets, end: Offsets) -> tuple[Numbers, Bools]:
    """Debuggers print addresses with a backtick between their halves, or in 8 digits."""
    may_be = has & (end - begin >= _LEAST_DIGITS) & ~words.starts_with(b"0x", begin, end)
    begin, end = np.where(may_be, begin, 0), np.where(may_be, end, 0)
    values, good = hex_numbers(words.text, begin, end)
    halves = may_be & (end - begin > 9)
    halves[halves] = words.text[end[halves] - 9] == ord("`")
    if halves.any():
        values[halves], good[halves] = _joined_halves(words, begin[halves], end[halves])
    return values, good & may_be


def _is_program(path: bytes) -> bool:
    has_extension = len(path) > 4 and path[-4:-3] == b"." and not path.endswith(b".pdb")
    return has_extension and b"(" not in path and b")" not in path


class _Log:
    def __init__(self) -> None:
        self.found = FoundList("output of WinDbg", at_run_time=True)
        self._has_modules = False
        self._is_unloaded = False

    def read(self, offset: int, words: Words) -> None:
        address, is_address = _addresses(words, *words.word(0))
        has, begin, end = words.word(1)
        sign = words.find(words.positions(b"!"), begin, end)
        named = is_address & has & (sign < end) & (sign > begin)
        second, is_range = _addresses(words, is_address & has & ~named, begin, end)
        self._read_others(words, address, second, is_address, is_range)
        self._add_symbols(offset, words, sign[named] + 1, words.line_end[named], address[named])

    def _add_symbols(self, offset: int, words: Words, begin: Offsets, end: Offsets, address: Numbers) -> None:
        """Functions have arguments after their name, data a value. Without types, debuggers know neither."""
        value = words.find(words.positions(b" = "), begin, end)
        untyped = words.starts_with(b" = <no type", value, end)
        first, last = words.trimmed(begin, np.minimum(words.find(words.positions(b" ("), begin, end), value))
        kept = ((value == end) | untyped) & (last > first)
        self.found.symbols.add(first[kept] + offset, last[kept] + offset, address[kept])

    def _read_others(
        self, words: Words, address: Numbers, second: Numbers, is_address: Bools, is_range: Bools
    ) -> None:
        """Lines of modules and about them, in their order."""
        begin, end = words.line_begin, words.line_end
        other = is_range | ~is_address & (
            words.starts_with(b"start", begin, end)
            | words.starts_with(_UNLOADED, begin, end)
            | words.starts_with(_IMAGE_NAME, begin, end)
        )
        for row in np.flatnonzero(other):
            line = words.bytes_of(begin[row], end[row])
            if not is_range[row]:
                self._read_detail(line)
            elif self._has_modules and not self._is_unloaded and second[row] > address[row]:
                self._read_module(line, int(address[row]), int(second[row]))

    def _read_detail(self, line: bytes) -> None:
        """Headings, and lines of ``lm v`` about the module before them."""
        fields = line.split(maxsplit=1)
        if line.startswith(_UNLOADED):
            self._is_unloaded = True
        elif fields[0] == b"start" and fields[1:] and fields[1].startswith(b"end"):
            self._has_modules, self._is_unloaded = True, False
        elif line.startswith(_IMAGE_NAME) and self.found.modules and not self._is_unloaded:
            name, begin, end = self.found.modules[-1]
            self.found.modules[-1] = (line[len(_IMAGE_NAME) :].strip() or name, begin, end)

    def _read_module(self, line: bytes, begin: int, end: int) -> None:
        """The name, and the path of the file where ``lm`` prints that (``lm f``)."""
        fields = line.split(maxsplit=3)[2:]
        if fields:
            path = fields[1].strip() if fields[1:] else b""
            self.found.modules.append((path if _is_program(path) else fields[0], begin, end))


def read_windbg(text: bytes) -> FoundList | None:
    """Read such a log; None: it is none."""
    if b"!" not in text and b"module name" not in text and b"start" not in text:
        return None
    log = _Log()
    for offset, part in chunks(text):
        words = Words(part)
        if len(words.count):
            log.read(offset, words)
    return log.found if log.found.symbols.count or log.found.modules else None
