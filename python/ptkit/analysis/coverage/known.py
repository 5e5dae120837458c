"""Code that could have run: source lines and functions of files, as their debug information has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.coverage.lines import source_lines
from ptkit.analysis.coverage.rows import LEVELS, Rows, grouped
from ptkit.analysis.coverage.texts import Texts

__all__ = ["KnownCode"]

_STEP = 1 << 20  # addresses that are looked up at once
_MOST_BYTES = 1 << 26  # of a function
_MOST_UNSIZED = 1 << 16  # bytes of a function of which the size is not known

#: A range of addresses, and its address space or None for all.
Range = tuple[int, int, int | None]


@dataclass(frozen=True)
class _Functions:
    """Symbols with code, ordered by number of the file and RVA."""

    ip: NDArray[np.uint64]
    space: NDArray[np.uint32]
    size: NDArray[np.uint64]
    file: NDArray[np.int32]
    rva: NDArray[np.uint64]


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
        begins = self._functions(ran)
        functions = np.zeros(len(begins.ip), LEVELS["functions"].dtype)
        functions["file"], functions["rva"] = begins.file, begins.rva
        symbols, inside, names = _core.name_symbols(
            self._session, begins.ip, begins.space, None, None, True, False
        )
        functions["function"] = texts.add(names, symbols)
        is_begin = (symbols >= 0) & (inside == 0)
        functions["source"], functions["line"] = source_lines(
            self._session, begins.ip, begins.space, is_begin, texts
        )
        has_lines = functions["source"] >= 0
        lines = self._all_lines(begins, has_lines, set(begins.ip[is_begin].tolist()), texts)
        # Where only a part of a function is selected, its lines are, and the function is not.
        whole = is_begin & self._are_selected(begins.ip, begins.space)
        return (
            lines,
            grouped(LEVELS["functions"], functions[whole]),
            set(begins.file[has_lines].tolist()),
            set(begins.file[whole].tolist()),
        )

    def _functions(self, ran: set[int]) -> _Functions:
        """Functions of files of which a part is selected, once for each file and RVA."""
        found = _core.match_symbols(self._session, "*", False)
        ips, sizes = (np.array([row[at] for row in found], np.uint64) for at in (1, 2))
        spaces = np.array([row[4] for row in found], np.uint32)
        files, rvas = _core.name_files(self._session, ips, spaces, None, None, True, True)
        numbers = np.append(self._numbers, np.int32(-1))
        of_set = numbers[np.where((files >= 0) & (files < len(self._numbers)), files, -1)]
        order = np.lexsort((rvas, of_set))
        order = order[np.isin(of_set[order], list(ran))]
        file, rva = of_set[order], rvas[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (file[1:] != file[:-1]) | (rva[1:] != rva[:-1])
        order = order[is_first]
        file, rva, size = of_set[order], rvas[order], sizes[order]
        # A symbol without a size ends where the next one begins.
        after = np.full(len(order), _MOST_UNSIZED, np.uint64)
        if len(order):
            same = file[1:] == file[:-1]
            after[:-1][same] = np.minimum(rva[1:] - rva[:-1], _MOST_UNSIZED)[same]
        return _Functions(ips[order], spaces[order], np.where(size > 0, size, after), file, rva)

    def _all_lines(
        self, begins: _Functions, chosen: NDArray[np.bool_], named: set[int], texts: Texts
    ) -> Rows:
        """Lines of all bytes of functions. `named`: addresses at which those with a name begin."""
        spans = sorted(
            (low, high, space)
            for begin, size, space in zip(
                *(column[chosen].tolist() for column in (begins.ip, begins.size, begins.space)), strict=True
            )
            for low, high in self._selected(begin, begin + min(size, _MOST_BYTES), space)
        )
        parts = [np.zeros(0, LEVELS["lines"].dtype)]
        for some in _in_steps(spans):
            sizes = [high - low for low, high, _ in some]
            ips = np.concatenate([np.arange(low, high, dtype=np.uint64) for low, high, _ in some])
            spaces = np.repeat(np.array([space for *_, space in some], np.uint32), sizes)
            is_begin = np.zeros(len(ips), np.bool_)
            is_begin[np.cumsum([0, *sizes[:-1]])] = [low in named for low, _, _ in some]
            codes, lines = source_lines(self._session, ips, spaces, is_begin, texts)
            # Addresses of one line follow each other: one of each run is enough.
            is_first = np.ones(len(ips), np.bool_)
            is_first[1:] = (codes[1:] != codes[:-1]) | (lines[1:] != lines[:-1])
            kept = np.flatnonzero(is_first & (codes >= 0))
            rows = np.zeros(len(kept), LEVELS["lines"].dtype)
            rows["source"], rows["line"] = codes[kept], lines[kept]
            parts.append(rows)
        return grouped(LEVELS["lines"], np.concatenate(parts))

    def _are_selected(self, ips: NDArray[np.uint64], spaces: NDArray[np.uint32]) -> NDArray[np.bool_]:
        if not self._ranges:
            return np.ones(len(ips), np.bool_)
        chosen = np.zeros(len(ips), np.bool_)
        for first, last, of_space in self._ranges:
            inside = (ips >= np.uint64(first)) & (ips <= np.uint64(last))
            chosen |= inside if of_space is None else inside & ((spaces == of_space) | (spaces == 0))
        return chosen

    def _selected(self, low: int, high: int, space: int) -> Iterator[tuple[int, int]]:
        if not self._ranges:
            yield low, high
        for first, last, of_space in self._ranges:
            begin, end = max(low, first), min(high, last + 1)
            if begin < end and (of_space is None or space in (0, of_space)):
                yield begin, end


def _in_steps(spans: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Spans in groups of bounded size, in order; large ones are cut."""
    group: list[tuple[int, int, int]] = []
    size = 0
    for low, high, space in spans:
        for begin in range(low, high, _STEP):
            end = min(begin + _STEP, high)
            group.append((begin, end, space))
            size += end - begin
            if size >= _STEP:
                yield group
                group, size = [], 0
    if group:
        yield group
