"""Profiles of Callgrind: instructions by line and address, and calls by call site."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import join
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ptkit
from ptkit.errors import ConfigError
from ptkit.export.call_edges import CallEdges, edges_of
from ptkit.export.files import NewFile, joined
from ptkit.export.frame_rows import ProfileTrace, has_source
from ptkit.export.instruction_costs import Costs, costs_of, locations_of
from ptkit.support.text import counted, one_line

__all__ = ["write_callgrind"]

_UNKNOWN = "???"  # as Callgrind calls files that it does not know
_ROOT = "[root]"
_Indices = NDArray[np.int64]


def write_callgrind(trace: ProfileTrace, path: str, *, names: str = "short", **query: Any) -> dict[str, Any]:
    """Write a profile as Callgrind does, for KCachegrind and callgrind_annotate.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    names : str
        ``"short"`` or ``"full"`` names of functions.
    **query
        See `ptkit.decode.Query`.

    Raises
    ------
    ConfigError
        If the query chooses columns, an order, rows that frames have not, or other frames.

    Notes
    -----
    The costs of a function alone sum up to its ``self_instructions`` in `ptkit.Trace.functions`, those of the
    calls of it to its ``instructions``. A function ``[root]`` calls what has no caller.
    """
    for name in ("frames", "inlines", "whole_calls"):
        if query.get(name) is not None:
            raise ConfigError(f"{name}: costs are those of addresses; leave it out, or use format pprof")
    edges = edges_of(trace, names=names, **query)
    costs = costs_of(trace, edges.functions, edges.own, **query)
    notes = list(edges.notes)
    if costs.shared:
        notes.append(
            f"{counted(costs.shared, 'instruction')} of code that several functions execute (PLT entries, "
            "shared tails): its split among them is not known, their sums are exact"
        )
    if unseen := int(np.count_nonzero(edges.count == 0)):
        notes.append(
            f"{counted(unseen, 'call site')} with calls that began before the trace, or in the middle of a "
            "function: written as 1 call, as the format has no calls without a begin"
        )
    profile = _Profile(trace, edges, costs, notes)
    with NewFile(path) as file:
        for chunk in joined(text.encode() for text in profile.texts()):
            file.write(chunk)
    return {"bytes": file.bytes, "notes": notes}


class _Words:
    """Names of one kind, which the file has once: a number stands for each, from 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, name: str) -> str:
        """A name: with its number at first, then the number alone."""
        number = self._numbers.get(name)
        if number is not None:
            return f"({number})"
        self._numbers[name] = len(self._numbers) + 1
        return f"({len(self._numbers)}) {one_line(name)}"


@dataclass(frozen=True)
class _Positions:
    """Where costs and calls stand: address in the object, source file (empty: not known), and line."""

    at: _Indices
    path: list[str]
    line: _Indices


class _Profile:
    """The text of a profile."""

    def __init__(self, trace: ProfileTrace, edges: CallEdges, costs: Costs, notes: Sequence[str]) -> None:
        self._trace = trace
        self._edges = edges
        self._costs = costs
        self._notes = notes
        self._objects, self._files, self._names = _Words(), _Words(), _Words()
        functions = edges.functions
        self._entries = self._positions(functions.entry, functions.space, functions.entry_known)

    def _positions(
        self, ips: NDArray[np.uint64], spaces: NDArray[np.uint32], known: NDArray[np.bool_]
    ) -> _Positions:
        ips = np.where(known, ips, np.uint64(0))
        locations = locations_of(self._trace, ips, spaces)
        at = np.where(known, locations.at, np.uint64(0))
        if not has_source(self._trace):
            return _Positions(at, [""] * len(ips), np.zeros(len(ips), np.int64))
        lines = self._trace.lines(ips, space=spaces)
        paths = [path if path and has else "" for path, has in zip(lines.file, known, strict=True)]
        return _Positions(at, paths, np.where(known, lines.line, 0))

    def texts(self) -> Iterator[str]:
        """Parts of the file."""
        yield from self._header()
        costs, edges = self._costs, self._edges
        of_costs = self._positions(costs.ip, costs.space, costs.known)
        of_calls = self._positions(edges.site, edges.site_space, edges.site_known)
        order = np.lexsort((of_costs.at, costs.function))
        cost_ends = np.searchsorted(costs.function[order], np.arange(len(edges.functions) + 1))
        call_ends = np.searchsorted(edges.caller, np.arange(-1, len(edges.functions) + 1))
        for function in range(-1, len(edges.functions)):
            calls = range(int(call_ends[function + 1]), int(call_ends[function + 2]))
            rows = order[cost_ends[function] : cost_ends[function + 1]].tolist() if function >= 0 else []
            if rows or calls:
                yield from self._function(function, rows, of_costs, calls, of_calls)
        yield f"\ntotals: {int(costs.count.sum())}\n"

    def _header(self) -> Iterator[str]:
        command = self._trace.info.recording.get("command")
        yield "# callgrind format\nversion: 1\n"
        yield f"creator: ptkit-{ptkit.__version__}\n"
        if command:
            yield f"cmd: {one_line(join(command))}\n"
        yield "desc: Counts: of all executed instructions, by a branch trace\n"
        yield from (f"desc: Note: {one_line(note)}\n" for note in self._notes)
        yield "positions: instr line\nevents: Ir\n"
        yield f"summary: {int(self._costs.count.sum())}\n"

    def _function(
        self, function: int, rows: list[int], of_costs: _Positions, calls: range, of_calls: _Positions
    ) -> Iterator[str]:
        """Costs of a function alone, then its calls; each source file in one part."""
        own = self._path(function)
        yield f"\nob={self._objects(self._object(function))}\nfl={self._files(own)}\n"
        yield f"fn={self._names(self._name(function))}\n"
        paths: dict[str, tuple[list[int], list[int]]] = {own: ([], [])}
        for row in rows:
            paths.setdefault(of_costs.path[row] or own, ([], []))[0].append(row)
        for call in calls:
            paths.setdefault(of_calls.path[call] or own, ([], []))[1].append(call)
        counts = self._costs.count
        for path, (of_path, calls_of_path) in paths.items():
            if path != own:
                yield f"fi={self._files(path)}\n"
            yield "".join(f"{of_costs.at[row]:#x} {of_costs.line[row]} {counts[row]}\n" for row in of_path)
            for call in calls_of_path:
                yield self._call(call, of_calls)

    def _call(self, call: int, of_calls: _Positions) -> str:
        edges, entries = self._edges, self._entries
        callee = int(edges.callee[call])
        return (
            f"cob={self._objects(self._object(callee))}\ncfi={self._files(self._path(callee))}\n"
            f"cfn={self._names(self._name(callee))}\n"
            f"calls={max(int(edges.count[call]), 1)} {entries.at[callee]:#x} {entries.line[callee]}\n"
            f"{of_calls.at[call]:#x} {of_calls.line[call]} {edges.total[call]}\n"
        )

    def _object(self, function: int) -> str:
        functions = self._edges.functions
        return (
            (functions.paths[function] or functions.modules[function] or _UNKNOWN)
            if function >= 0
            else _UNKNOWN
        )

    def _path(self, function: int) -> str:
        return (self._entries.path[function] if function >= 0 else "") or _UNKNOWN

    def _name(self, function: int) -> str:
        return self._edges.functions.names[function] if function >= 0 else _ROOT
