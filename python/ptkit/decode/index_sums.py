"""Sums over a whole trace that its index has, so that they cost no decode at all."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode.kept_sums import Sums, bytes_of
from ptkit.support.schema import schema_of
from ptkit.table.cells import is_uniform, read_only, uniform

__all__ = ["IndexSums", "encoded", "parts_of"]

_VERSION = 1
_ALIGNED = 8  # bytes, as all cells
_MOST_BYTES = 512 << 20  # of a table
#: How many times its packed size a table may have, unless it is small: more than was ever seen.
_MOST_TIMES, _FEW_BYTES = 256, 1 << 20
_LEVEL = 1  # of compression
#: The table of each kind of sums, and of the errors and gaps that came with them.
_TABLES = {
    "function": "functions",
    "entry": "functions",
    "module": "functions",
    "tree": "call_tree",
    "edges": "edges",
    "errors": "errors",
    "gaps": "gaps",
    "edge errors": "errors",
    "edge gaps": "gaps",
}
#: As `_core` makes runs of rows.
_RUNS: dict[str, np.dtype[Any]] = {
    "row": np.dtype(np.uint64),
    "stream": np.dtype(np.uint32),
    "cpu": np.dtype(np.int32),
    "pid": np.dtype(np.int32),
    "tid": np.dtype(np.int32),
    "space": np.dtype(np.uint32),
    "flags": np.dtype(np.uint8),
}

#: Rows, columns and runs, as the core makes them.
Part = tuple[int, dict[str, Any], dict[str, NDArray[Any]]]


def encoded(parts: Mapping[str, Part], states: Sequence[NDArray[np.uint8]], identity: int) -> bytes:
    """Return the bytes of tables: JSON that says what they have, its size before it, and the cells.

    Parameters
    ----------
    parts : mapping
        By the names that `_TABLES` has.
    states : sequence of uint8 arrays
        Call stacks in each stream, at the segments' begins. Empty: there are none.
    identity : int
        See `_core.sums_identity`.
    """
    packed: list[bytes] = []

    def kept(arrays: Mapping[str, Any], cells: list[bytes]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for name, array in arrays.items():
            values = array.array() if isinstance(array, _core.RunColumn) else array
            stored = values[:1] if is_uniform(values) else values
            found[name] = [stored.dtype.str, len(stored)]
            cells.append(stored.tobytes() + bytes(-stored.nbytes % _ALIGNED))
        return found

    def pack(cells: list[bytes]) -> int:
        packed.append(zlib.compress(b"".join(cells), _LEVEL))
        return len(packed[-1])

    tables = {}
    for name, (rows, columns, runs) in parts.items():
        cells: list[bytes] = []
        table = {"rows": rows, "columns": kept(columns, cells), "runs": kept(runs, cells)}
        tables[name] = table | {"packed": pack(cells)}
    sizes = [[len(state), pack([state.tobytes()])] for state in states]
    head = {"version": _VERSION, "identity": identity, "tables": tables, "states": sizes}
    text = json.dumps(head).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *packed])


class _Damaged(Exception):
    """The bytes are no tables of this version, or not of this trace."""


#: Exceptions for wrong values, and for values of wrong types.
_WRONG = (
    _Damaged,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    OverflowError,
    zlib.error,
)


class IndexSums:
    """Sums over a whole trace by an index. What is damaged there is not used.

    Parameters
    ----------
    index : _core.Index
        The index.
    session : _core.Session
        The trace.
    limits : mapping
        How many files, spaces and streams the trace has: what columns of these names refer to.
    """

    def __init__(self, index: _core.Index, session: _core.Session, limits: Mapping[str, int]) -> None:
        self._index, self._session, self._limits = index, session, limits
        self._head: dict[str, Any] | None = None
        self._packed: dict[Any, NDArray[np.uint8]] = {}  # by name of a table, by stream
        self._parts: dict[str, Part | None] = {}

    @property
    def is_current(self) -> bool:
        """Whether the index was given sums of this trace and this version, maybe none."""
        return bool(self._heads())

    def sums(self, table: str) -> Sums | None:
        """Sums over frames that have the rows `table`. None: there are none, or they are of another trace."""
        rows, sides = self._part(table), self.sides
        return None if rows is None or sides is None else Sums({table: rows}, sides)

    def edges(self) -> tuple[Part, Part, Part] | None:
        """Edges, and the errors and gaps that came with them."""
        edges, errors, gaps = map(self._part, ("edges", "edge errors", "edge gaps"))
        return None if edges is None or errors is None or gaps is None else (edges, errors, gaps)

    @property
    def sides(self) -> tuple[Part, Part] | None:
        """Errors and gaps of the whole trace, with all their columns."""
        errors, gaps = self._part("errors"), self._part("gaps")
        return None if errors is None or gaps is None else (errors, gaps)

    def states(self, streams: Sequence[int]) -> list[bytes]:
        """Call stacks in streams, as `_core.CallQuery` takes them; empty: there are none."""
        head = self._heads()
        try:
            sizes = head["states"]
            return [self._unpacked(stream, sizes[stream][0]) for stream in streams] if sizes else []
        except _WRONG:
            return []

    def _heads(self) -> dict[str, Any]:
        """Contents of the tables; empty: they cannot be used."""
        if self._head is None:
            try:
                self._head = self._read()
            except _WRONG:
                self._head = {}
        return self._head

    def _read(self) -> dict[str, Any]:
        data = self._index.sums()
        at = 8 + int.from_bytes(data[:8].tobytes(), "little")
        if not 8 < at <= len(data):
            raise _Damaged
        head = json.loads(data[8:at].tobytes())
        if head["version"] != _VERSION or head["identity"] != _core.sums_identity(self._session):
            raise _Damaged
        if len(head["states"]) not in (0, self._limits["stream"]):
            raise _Damaged
        sizes = {name: one["packed"] for name, one in head["tables"].items()}
        sizes |= {stream: size for stream, (_, size) in enumerate(head["states"])}
        for name, size in sizes.items():
            if type(size) is not int or not 0 <= size <= len(data) - at:
                raise _Damaged
            self._packed[name] = data[at : at + size]
            at += size
        return dict(head)

    def _unpacked(self, name: Any, size: int) -> bytes:
        """Exactly so many bytes of a table, or of a stream's states."""
        packed = self._packed[name]
        most = min(_MOST_BYTES, max(_FEW_BYTES, _MOST_TIMES * len(packed)))
        if type(size) is not int or not 0 <= size <= most:
            raise _Damaged
        cells = zlib.decompressobj().decompress(packed.tobytes(), size + 1)
        if len(cells) != size:
            raise _Damaged
        return cells

    def _part(self, name: str) -> Part | None:
        if name not in self._parts:
            try:
                self._parts[name] = self._decoded(name, self._heads()["tables"][name])
            except _WRONG:
                self._parts[name] = None
        return self._parts[name]

    def _decoded(self, name: str, table: dict[str, Any]) -> Part:
        schema, rows = schema_of(_TABLES[name]), table["rows"]
        dtypes = {column: schema.columns[column].dtype for column in schema.names("stored")}
        if set(table["columns"]) != set(dtypes) or set(table["runs"]) != set(_RUNS):
            raise _Damaged
        begins = max(count for _, count in table["runs"].values())
        stored = [(column, dtypes[column], rows, *one) for column, one in table["columns"].items()]
        stored += [(column, _RUNS[column], begins, *one) for column, one in table["runs"].items()]
        size = 0
        for _, dtype, length, cell, count in stored:
            if np.dtype(cell) != dtype or type(count) is not int or count not in (length, min(length, 1)):
                raise _Damaged
            size += count * dtype.itemsize + -count * dtype.itemsize % _ALIGNED
        data = np.frombuffer(self._unpacked(name, size), np.uint8)
        if type(rows) is not int or not 0 <= rows <= _MOST_BYTES:
            raise _Damaged
        found, at = [], 0
        for _, dtype, length, _, count in stored:
            values = data[at : at + count * dtype.itemsize].view(dtype)
            at += values.nbytes + -values.nbytes % _ALIGNED
            found.append(read_only(values) if count == length else uniform(values[0], dtype, length))
        names = [column for column, *_ in stored]
        columns = len(table["columns"])
        part = (
            rows,
            dict(zip(names[:columns], found[:columns], strict=True)),
            dict(zip(names[columns:], found[columns:], strict=True)),
        )
        self._check(part)
        return part

    def _check(self, part: Part) -> None:
        """Raise if rows refer to what there is not."""
        rows, columns, runs = part
        for of, values in (*columns.items(), *runs.items()):
            limit = self._limits.get(of)
            if limit is not None and len(values) and not -1 <= int(values.min()) <= int(values.max()) < limit:
                raise _Damaged
        if "parent" in columns and (columns["parent"] > np.arange(rows, dtype=np.uint64)).any():
            raise _Damaged
        begins = runs["row"]  # of tables without rows, too, there may be a first one
        if (begins[:1] != 0).any() or (begins[1:] <= begins[:-1]).any() or (begins[1:] >= rows).any():
            raise _Damaged


def parts_of(sums: Sums, edges: tuple[Part, Part, Part]) -> dict[str, Part]:
    """Sums and edges that are stored: all but too large ones."""
    parts: dict[str, Part] = {**sums.rows}
    parts |= zip(("errors", "gaps"), sums.sides, strict=True)
    parts |= zip(("edges", "edge errors", "edge gaps"), edges, strict=True)
    return {name: part for name, part in parts.items() if bytes_of(part) <= _MOST_BYTES}
