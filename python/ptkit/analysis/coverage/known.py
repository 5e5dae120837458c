"""Code that could have run: source lines and functions of files, as their debug information has them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.coverage.rows import LEVELS, Rows, grouped
from ptkit.analysis.coverage.texts import Texts

__all__ = ["KnownCode"]

_STEP = 1 << 20  # addresses that are looked up at once
_MOST_BYTES = 1 << 30  # of a file in memory

#: A range of addresses, and its address space or None for all.
Range = tuple[int, int, int | None]


class KnownCode:
    """Lines and functions of the files of a trace, looked up when they are first asked for.

    Parameters
    ----------
    session : _core.Session
    numbers : numpy.ndarray of int32
        Number in the set of each file of the trace.
    ranges : tuple of ranges
        Selected addresses, first and last; empty: all.
    """

    def __init__(self, session: _core.Session, numbers: NDArray[np.int32], ranges: tuple[Range, ...]) -> None:
        self._session = session
        self._numbers = numbers
        self._ranges = ranges

    @property
    def is_whole(self) -> bool:
        """Whether it is of whole files."""
        return not self._ranges

    def rows(self, ran: set[int], texts: Texts) -> tuple[Rows, Rows, set[int], set[int]]:
        """Look up lines and functions of files.

        Parameters
        ----------
        ran : set of int
            Numbers of the files.
        texts : Texts
            Gets their names and paths.

        Returns
        -------
        lines, functions : arrays as `rows.LEVELS` has them
            With 0 for what ran.
        files_with_lines, files_with_functions : set of int
        """
        lines, functions = ([np.zeros(0, LEVELS[name].dtype)] for name in ("lines", "functions"))
        of_lines: set[int] = set()
        of_functions: set[int] = set()
        for file, low, high, space, base in self._mapped(ran):
            for begin in range(low, high, _STEP):
                ips = np.arange(begin, min(begin + _STEP, high), dtype=np.uint64)
                some, others = self._of(file, ips, space, base, texts)
                lines.append(some)
                functions.append(others)
                of_lines |= {file} if len(some) else set()
                of_functions |= {file} if len(others) else set()
        return (
            grouped(LEVELS["lines"], np.concatenate(lines)),
            grouped(LEVELS["functions"], np.concatenate(functions)),
            of_lines,
            of_functions,
        )

    def _of(
        self, file: int, ips: NDArray[np.uint64], space: int, base: int, texts: Texts
    ) -> tuple[Rows, Rows]:
        spaces = np.full(len(ips), space, np.uint32)
        sources, lines, paths = _core.name_lines(self._session, ips, spaces, None)
        codes = texts.add(paths, sources)
        codes[lines == 0] = -1
        symbols, inside, names = _core.name_symbols(self._session, ips, spaces, None, None, True, False)
        of_lines = np.zeros(len(ips), LEVELS["lines"].dtype)
        of_lines["source"], of_lines["line"] = codes, lines
        begins = np.flatnonzero((symbols >= 0) & (inside == 0))
        functions = np.zeros(len(begins), LEVELS["functions"].dtype)
        functions["file"], functions["rva"] = file, ips[begins] - np.uint64(base)
        functions["function"] = texts.add(names, symbols)[begins]
        functions["source"] = codes[begins]
        functions["line"] = np.where(codes[begins] >= 0, lines[begins], 0)
        # Addresses of one line follow each other: one of each run is enough.
        is_first = np.ones(len(ips), np.bool_)
        is_first[1:] = (codes[1:] != codes[:-1]) | (lines[1:] != lines[:-1])
        return of_lines[is_first & (codes >= 0)], functions

    def _mapped(self, ran: set[int]) -> Iterator[tuple[int, int, int, int, int]]:
        """Number, addresses, space and load address of each part of a file, once wherever it lies."""
        found = _core.mappings(self._session)
        names = ("file", "address", "size", "rva", "space")
        seen: set[tuple[int, int, int]] = set()
        for file, address, size, rva, space in zip(*(found[name].tolist() for name in names), strict=True):
            number = int(self._numbers[file]) if 0 <= file < len(self._numbers) else -1
            if number not in ran or not 0 < size <= _MOST_BYTES:
                continue
            for low, high in self._selected(address, address + size, space):
                part = number, rva + low - address, high - low
                if part not in seen:
                    seen.add(part)
                    yield number, low, high, space, address - rva

    def _selected(self, low: int, high: int, space: int) -> Iterator[tuple[int, int]]:
        if not self._ranges:
            yield low, high
        for first, last, of_space in self._ranges:
            begin, end = max(low, first), min(high, last + 1)
            if begin < end and (of_space is None or space in (0, of_space)):
                yield begin, end
