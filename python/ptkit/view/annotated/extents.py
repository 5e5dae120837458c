"""Where the code of functions lies: they may be mapped several times, and in several parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.export.instruction_costs import CodeLocations, locations_of, whole_name
from ptkit.support.text import module_name
from ptkit.view.code import CodeTrace

__all__ = ["ChosenFunction", "Extent", "chosen_functions", "signed"]

_OFFSET = re.compile(r"(.+)[+!](0[xX][0-9a-fA-F]+|[0-9]+)")
_Range = tuple[int, int, int | None]


def signed(offset: int) -> str:
    """An offset from the begin of a function."""
    return f"{'-' if offset < 0 else '+'}{abs(offset):#x}"


@dataclass(frozen=True)
class Extent:
    """Addresses of a function, or of a part of it, in one address space or in all of them.

    Attributes
    ----------
    first, last : int
    space : int or None
        None: in all of them.
    at : int
        RVA of the first one in its file; the address outside of files.
    """

    first: int
    last: int
    space: int | None
    at: int

    def rows(self, ips: NDArray[np.uint64], spaces: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Which addresses lie in it."""
        inside: NDArray[np.bool_] = (ips >= np.uint64(self.first)) & (ips <= np.uint64(self.last))
        if self.space is not None:
            inside &= spaces == self.space
        return inside


@dataclass
class ChosenFunction:
    """A function that was asked for.

    Attributes
    ----------
    name : str
        Full name.
    path : str or None
        Its file; None: it is in none.
    begin : int
        RVA of its begin; the address outside of files.
    extents : list of Extent
    is_replaced : bool
        Other code was at its addresses for a time.
    """

    name: str
    path: str | None
    begin: int
    extents: list[Extent] = field(default_factory=list)
    is_replaced: bool = False

    @property
    def module(self) -> str | None:
        """Name of its file, without its folders."""
        return None if self.path is None else module_name(self.path)


def chosen_functions(trace: CodeTrace, open_parts: Any, name: str) -> tuple[list[ChosenFunction], list[str]]:
    """Find the functions of a name, with their cold parts, and the names that select all of their code.

    Of ``main+0x10``, the function around that address.

    Raises
    ------
    SymbolError
        If there is none.
    """
    ranges_of = open_parts.scope.symbol_ranges
    ranges: list[_Range] = ranges_of(name)
    where = _locations(trace, ranges)
    names = [name]
    if _OFFSET.fullmatch(name) and bool(np.any(where.at != where.begin)):
        wanted = ranges
        names = list(dict.fromkeys(_names(where, name)))
        ranges = [
            one
            for full in names
            if full != name
            for one in ranges_of(full)
            if any(one[0] <= ip <= one[1] and one[2] == space for ip, _, space in wanted)
        ] or ranges
        where = _locations(trace, ranges)
    cold = _cold_names(trace, set(_names(where, name)))
    more = [one for full in cold for one in ranges_of(full)]
    functions = _functions(trace, [*ranges, *more], name)
    _mark_replaced(trace, functions)
    return functions, [*names, *cold]


def _locations(trace: CodeTrace, ranges: Sequence[_Range]) -> CodeLocations:
    ips = np.array([first for first, _, _ in ranges], np.uint64)
    spaces = np.array([space or 0 for *_, space in ranges], np.uint32)
    return locations_of(trace, ips, spaces)


def _names(where: CodeLocations, otherwise: str) -> list[str]:
    return [otherwise if symbol < 0 else where.names[symbol] for symbol in where.symbol.tolist()]


def _cold_names(trace: CodeTrace, names: set[str]) -> list[str]:
    """Names of parts of functions that the compiler put elsewhere."""
    found = _core.match_symbols(trace.opened.session, "*.cold*", True)
    return list(dict.fromkeys(full for full, *_ in found if full not in names and whole_name(full) in names))


def _functions(trace: CodeTrace, ranges: Sequence[_Range], name: str) -> list[ChosenFunction]:
    """Functions by file and begin; a cold part is of the function of its name in the same file."""
    where = _locations(trace, ranges)
    files = trace.info.files
    functions: dict[tuple[int, int, int], ChosenFunction] = {}
    by_name: dict[tuple[int, str], ChosenFunction] = {}
    cells = (where.file.tolist(), where.at.tolist(), _names(where, name), ranges)
    for file, at, full, (first, last, space) in zip(*cells, strict=True):
        is_file = 0 <= file < len(files)
        whole = by_name.get((file, whole_name(full))) if whole_name(full) != full else None
        # Code in no file is known by its address alone.
        key = (file, at, 0 if is_file else space or 0)
        function = whole or functions.get(key)
        if function is None:
            function = ChosenFunction(full, files[file][0] if is_file else None, at)
            functions[key] = function
            by_name.setdefault((file, full), function)
        extent = Extent(first, last, space, at)
        if extent not in function.extents:
            function.extents.append(extent)
    return list(functions.values())


def _mark_replaced(trace: CodeTrace, functions: Sequence[ChosenFunction]) -> None:
    """Find functions at the addresses of which there was other code for a time."""
    regions = _core.code_regions(trace.opened.session)
    if len({one[4:] for one in regions}) < 2:
        return
    cells = [(one[0], one[1], *one[3:]) for one in regions]
    address, size, space, begin, end = np.array(cells, np.uint64).T
    for function in functions:
        for extent in function.extents:
            inside = (address <= np.uint64(extent.last)) & (address + size > np.uint64(extent.first))
            if extent.space is not None:
                inside &= (space == 0) | (space == extent.space)
            function.is_replaced |= len({*zip(begin[inside].tolist(), end[inside].tolist(), strict=True)}) > 1
