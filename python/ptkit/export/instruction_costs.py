"""How often instructions were executed, by the function that executed them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.export.frame_rows import ProfileTrace
from ptkit.export.function_names import FunctionNames

__all__ = ["CodeLocations", "Costs", "costs_of", "locations_of", "owners_of", "whole_name"]

_COLD = re.compile(r" \[clone \.cold(?:\.\d+)?\]$|\.cold(?:\.\d+)?$")
_Indices = NDArray[np.int64]


@dataclass(frozen=True)
class CodeLocations:
    """Where addresses lie.

    Attributes
    ----------
    file : numpy.ndarray of int64, shape (n,)
        Number of the file, or of memory without a file; -1: not known.
    at : numpy.ndarray of uint64, shape (n,)
        RVA in a file; the address elsewhere.
    begin : numpy.ndarray of uint64, shape (n,)
        RVA or address of the first byte of the symbol.
    symbol : numpy.ndarray of int64, shape (n,)
        Index of the name of the symbol in `names`; -1: none is known.
    names : sequence of str
        Full names.
    """

    file: _Indices
    at: NDArray[np.uint64]
    begin: NDArray[np.uint64]
    symbol: _Indices
    names: Sequence[str]


def whole_name(name: str) -> str:
    """Name of the function that a cold part is of; other names as they are."""
    return _COLD.sub("", name)


def locations_of(trace: ProfileTrace, ips: NDArray[np.uint64], spaces: NDArray[np.uint32]) -> CodeLocations:
    """Look up addresses, each in its address space."""
    session = trace.opened.session
    ips, spaces = np.ascontiguousarray(ips), np.ascontiguousarray(spaces)
    symbol, inside, names = _core.name_symbols(session, ips, spaces, None, None, True, False)
    file, rva = _core.name_files(session, ips, spaces, None, None, True, True)
    in_file = (file >= 0) & (file < len(trace.info.files))
    at = np.where(in_file, rva, ips)
    begin = at - np.where(symbol >= 0, inside, np.uint64(0))
    return CodeLocations(file.astype(np.int64), at, begin, symbol.astype(np.int64), names)


@dataclass(frozen=True)
class Costs:
    """Executed instructions, ordered by function, file and address.

    Attributes
    ----------
    function : numpy.ndarray of int64, shape (n,)
        Number of the function that executed them.
    ip : numpy.ndarray of uint64, shape (n,)
        Address; see `known`.
    space : numpy.ndarray of uint32, shape (n,)
        Its address space.
    known : numpy.ndarray of bool, shape (n,)
        The address is known.
    count : numpy.ndarray of int64, shape (n,)
        How often it was executed.
    shared : int
        Executed instructions that were given to functions by their number: of code that several functions
        execute.
    """

    function: _Indices
    ip: NDArray[np.uint64]
    space: NDArray[np.uint32]
    known: NDArray[np.bool_]
    count: _Indices
    shared: int


def costs_of(trace: ProfileTrace, functions: FunctionNames, own: _Indices, **query: Any) -> Costs:
    """Count the instructions of each function, so that they sum up to those of its frames.

    Parameters
    ----------
    trace : Trace
    functions : FunctionNames
    own : numpy.ndarray of int64, shape (functions,)
        Instructions of the frames of each function alone.
    **query
        Which blocks; see `ptkit.decode.Query`.

    Notes
    -----
    An instruction is of the function of its symbol. Frames may have others: PLT entries and what else is
    reached without a frame of its own, and functions that share code. Counts of addresses and of functions
    stay exact; which of those functions executed such an instruction is not known, so they are given to them
    in the order of addresses.
    """
    code, _ = trace.code_counts(**query)
    locations = locations_of(trace, code.ip, code.space)
    owner = owners_of(trace, functions, locations)
    count = code.instructions.astype(np.int64)
    size = len(functions)
    order = np.lexsort((code.ip, code.space, owner))
    owner, count = owner[order], count[order]
    ip, space = code.ip[order], code.space[order]
    # Of each function as many as its frames executed, from its begin on; the others are left.
    before = np.cumsum(count) - count
    first = np.searchsorted(owner, np.arange(size))
    base = np.append(before, count.sum())[first] if len(before) else np.zeros(size, np.int64)
    inside = owner >= 0
    free = np.zeros(len(owner), np.int64)
    free[inside] = own[owner[inside]] - (before[inside] - base[owner[inside]])
    taken = np.clip(np.minimum(count, free), 0, None)
    left = count - taken
    got = np.zeros(size, np.int64)
    np.add.at(got, owner[inside], taken[inside])
    row, function, amount = _given(left, locations.file[order], own - got, functions.file.astype(np.int64))
    shared = int(amount.sum())
    got += np.bincount(function, amount, size).astype(np.int64)
    rest = np.flatnonzero(own > got)
    of_rest = np.where(functions.entry_known[rest], functions.entry[rest], np.uint64(0))
    kept = np.flatnonzero(taken)
    return Costs(
        np.concatenate([owner[kept], function, rest]),
        np.concatenate([ip[kept], ip[row], of_rest]),
        np.concatenate([space[kept], space[row], functions.space[rest]]),
        np.concatenate(
            [np.ones(len(kept) + len(row), np.bool_), np.asarray(functions.entry_known[rest], np.bool_)]
        ),
        np.concatenate([taken[kept], amount, (own - got)[rest]]),
        shared,
    )


def owners_of(trace: ProfileTrace, functions: FunctionNames, locations: CodeLocations) -> _Indices:
    """Number of the function that has each location; -1: none."""
    known = np.flatnonzero(functions.entry_known & ~functions.inlined)
    entries = locations_of(trace, functions.entry[known], functions.space[known])
    numbers: dict[tuple[int, int], int] = {}
    by_name: dict[tuple[int, str], int] = {}
    cells = (known, entries.file, entries.begin, entries.symbol)
    for number, file, begin, symbol in zip(*(one.tolist() for one in cells), strict=True):
        if symbol >= 0:
            numbers.setdefault((file, begin), number)
            by_name.setdefault((file, entries.names[symbol]), number)
    # Addresses ascend, so most of them are of the symbol of the one before.
    keys = locations.file, locations.begin, locations.symbol
    is_first = np.ones(len(locations.file), np.bool_)
    is_first[1:] = np.logical_or.reduce([one[1:] != one[:-1] for one in keys])
    owners = []
    for file, begin, symbol in zip(*(one[is_first].tolist() for one in keys), strict=True):
        number = -1
        if symbol >= 0:
            number = numbers.get((file, begin), -1)
            name = locations.names[symbol]
            if number < 0 and (whole := whole_name(name)) != name:
                number = by_name.get((file, whole), -1)
        owners.append(number)
    found: _Indices = np.array(owners, np.int64)[np.cumsum(is_first) - 1]
    nameless = entries.symbol < 0
    for file in np.unique(entries.file[nameless]).tolist():
        # Without symbols, code is of the function that begins before it.
        of_file = np.flatnonzero(nameless & (entries.file == file))
        of_file = of_file[np.argsort(entries.at[of_file], kind="stable")]
        rows = np.flatnonzero((locations.symbol < 0) & (locations.file == file))
        before = np.searchsorted(entries.at[of_file], locations.at[rows], "right") - 1
        found[rows] = np.where(before >= 0, known[of_file[before]], -1)
    return found


def _given(
    left: _Indices, file: _Indices, wanted: _Indices, wanted_file: _Indices
) -> tuple[_Indices, _Indices, _Indices]:
    """Give what is left of rows to functions that want it, first to those of the same file.

    Returns rows, functions and amounts.
    """
    found: list[tuple[_Indices, _Indices, _Indices]] = []
    left, wanted = left.copy(), np.maximum(wanted, 0)
    groups = [*np.unique(file[left > 0]).tolist(), None]
    for group in groups:
        rows = np.flatnonzero((left > 0) & ((file == group) if group is not None else True))
        functions = np.flatnonzero((wanted > 0) & ((wanted_file == group) if group is not None else True))
        # Both are laid out on one axis, and cut wherever one of them ends.
        row_ends, function_ends = np.cumsum(left[rows]), np.cumsum(wanted[functions])
        if not len(rows) or not len(functions):
            continue
        end = min(int(row_ends[-1]), int(function_ends[-1]))
        cuts = np.unique(np.concatenate([row_ends, function_ends, [end]]))
        cuts = cuts[cuts <= end]
        amounts = np.diff(cuts, prepend=0)
        row = rows[np.searchsorted(row_ends, cuts)]
        function = functions[np.searchsorted(function_ends, cuts)]
        np.subtract.at(left, row, amounts)
        np.subtract.at(wanted, function, amounts)
        found.append((row, function, amounts))
    if not found:
        none = np.zeros(0, np.int64)
        return none, none, none
    row, function, amounts = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return row, function, amounts
