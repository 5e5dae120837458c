"""Basic blocks that were executed, by file and RVA: each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode import OpenTrace
from ptkit.errors import ConfigError
from ptkit.support.text import counted

if TYPE_CHECKING:
    from ptkit.analysis.coverage import Coverage
    from ptkit.info import TraceInfo
    from ptkit.table import Table

__all__ = ["BlockTrace", "Blocks", "blocks_of", "executed_blocks", "loss_notes", "refuse_selection"]

_PART = 1 << 18
_SLOTS = 1 << 18  # a power of two
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - 18)
_HALF = np.uint64(32)
_NO_FILE = np.uint64(1 << 63)
_NAMING = (
    "an image of its file (--image), or a list of modules by --symbols (lines of start, end and name, as "
    "WinDbg's lm prints them), gives it a name"
)
#: Distinct blocks differ in file (-1: none), address space if there is no file, RVA or address, or bytes.
_BLOCK = np.dtype([("file", np.int64), ("space", np.uint64), ("rva", np.uint64), ("size", np.uint64)])


class BlockTrace(Protocol):
    """A trace, as far as exporters of blocks use it."""

    @property
    def opened(self) -> OpenTrace:
        """The bundle, the session and the settings."""

    @property
    def info(self) -> TraceInfo:
        """Files and modules."""

    def iter_blocks(self, *, rows: int | None = None, reuse: bool = False, **query: Any) -> Iterator[Table]:
        """Rows of blocks in parts."""

    def mappings(self) -> Table:
        """Where files lie in memory."""


@dataclass(frozen=True)
class Blocks:
    """Distinct blocks, ordered by file, RVA and size.

    Attributes
    ----------
    file : numpy.ndarray of int64, shape (blocks,)
        Number of the module: index in `modules`.
    rva : numpy.ndarray of uint64, shape (blocks,)
        Of the first byte; or the offset in the file, if that was asked for. In memory without a file: from
        its begin.
    size : numpy.ndarray of uint64, shape (blocks,)
        Bytes.
    modules : tuple of (str, str)
        Path and build-id of each: those of ``trace.info.files``, then memory without a file, such as
        ``[anon 0x10000000]``.
    outside : int
        Blocks that lie in no module, and so are left out.
    errors, gaps : int
        Numbers of errors and gaps while decoding: blocks may be missing.
    files : int
        How many modules are files.
    """

    file: NDArray[np.int64]
    rva: NDArray[np.uint64]
    size: NDArray[np.uint64]
    modules: tuple[tuple[str, str], ...]
    outside: int
    errors: int
    gaps: int
    files: int


class _Recent:
    """Remembers rows that were seen lately: most rows of a part repeat them."""

    def __init__(self) -> None:
        self._key = np.zeros(_SLOTS, np.uint64)
        self._rest = np.full(_SLOTS, np.iinfo(np.uint64).max, np.uint64)

    def new(self, key: NDArray[np.uint64], rest: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Numbers of the rows that were not seen lately; some of them may have been seen before that."""
        slots = (((key + rest * _MIX) * _MIX) >> _SHIFT).astype(np.intp)
        rows = np.flatnonzero((self._key[slots] != key) | (self._rest[slots] != rest))
        self._key[slots[rows]] = key[rows]
        self._rest[slots[rows]] = rest[rows]
        return rows


def executed_blocks(trace: BlockTrace, *, file_offsets: bool = False, **query: Any) -> Blocks:
    """Decode a trace into its distinct blocks.

    Parameters
    ----------
    trace : Trace
    file_offsets : bool
        Offsets in files instead of RVAs.
    **query
        Which blocks; see `ptkit.decode.Query`.

    Raises
    ------
    ConfigError
        If `query` chooses columns or an order.
    """
    for name in ("columns", "order"):
        if query.get(name) is not None:
            raise ConfigError(f"{name}: an export has no {name}")
    columns = ["ip", "size", "space"]
    if _changes(trace.mappings()):
        columns += ["flags", "tsc", "tsc_error"]
    recent = _Recent()
    rows = np.zeros(0, _BLOCK)
    errors = gaps = 0
    for part in trace.iter_blocks(rows=_PART, reuse=True, **{**query, "columns": columns}):
        errors += 0 if part.errors is None else len(part.errors)
        gaps += 0 if part.gaps is None else len(part.gaps)
        if len(fresh := _new_rows(trace, part, recent, file_offsets)):
            rows = np.unique(np.concatenate([rows, fresh]))
    inside = rows["file"] >= 0
    kept = rows[inside]
    outside = int(len(rows) - len(kept))
    return Blocks(
        kept["file"].copy(),
        kept["rva"].copy(),
        kept["size"].copy(),
        modules_of(trace),
        outside,
        errors,
        gaps,
        len(trace.info.files),
    )


def blocks_of(coverage: Coverage) -> Blocks:
    """The blocks of a set, which do not overlap.

    Raises
    ------
    ConfigError
        If the set has lines alone.
    """
    table = coverage.blocks
    file, rva, size = (np.asarray(table[name]) for name in ("file", "rva", "size"))
    added = [run for run in coverage.runs if run.is_added]
    return Blocks(
        file.astype(np.int64),
        rva,
        size.astype(np.uint64),
        tuple((one.path, one.build_id) for one in coverage.files),
        0,
        sum(run.errors for run in added),
        sum(run.gaps for run in added),
        len(coverage.files),
    )


def modules_of(trace: BlockTrace) -> tuple[tuple[str, str], ...]:
    """Path and build-id of each module, by number."""
    memory = tuple((name, "") for name, *_ in _core.anon_memory(trace.opened.session))
    return (*trace.info.files, *memory)


def _changes(mappings: Table) -> bool:
    """Whether code is mapped at one time and not at another."""
    known = [mappings.known(name) for name in ("tsc_from", "tsc_to")]
    return any(one is not None and bool(one.any()) for one in known)


def _new_rows(trace: BlockTrace, part: Table, recent: _Recent, file_offsets: bool) -> NDArray[Any]:
    """Rows of a part that were not seen lately, by file."""
    ips, sizes = np.asarray(part["ip"]), np.asarray(part["size"]).astype(np.uint64)
    spaces = np.asarray(part["space"])
    times = None
    if "tsc" in part.columns:
        times = np.asarray(part["tsc"]), np.asarray(part["tsc_error"]), np.asarray(part["time_known"])
    else:  # the address alone decides the file
        new = recent.new(ips, sizes | spaces.astype(np.uint64) << _HALF)
        ips, sizes, spaces = ips[new], sizes[new], spaces[new]
    files, offsets = _core.name_files(trace.opened.session, ips, spaces, None, times, True, not file_offsets)
    known = files >= 0
    rows = np.empty(len(ips), _BLOCK)
    rows["file"] = files
    rows["space"] = np.where(known, 0, spaces)
    rows["rva"] = np.where(known, offsets, ips)
    rows["size"] = sizes
    if times is None:
        return rows
    owner = np.where(
        known, files.astype(np.uint64) + np.uint64(1) << _HALF, rows["space"] << _HALF | _NO_FILE
    )
    return rows[recent.new(rows["rva"].copy(), sizes | owner)]


def refuse_selection(query: Mapping[str, Any]) -> None:
    """Refuse to select from a set.

    Raises
    ------
    ConfigError
        If something is selected.
    """
    if query:
        raise ConfigError(f"{next(iter(query))}: a set of coverage was selected when it was made")


def loss_notes(blocks: Blocks) -> list[str]:
    """Sentences about blocks that are not in the file."""
    notes = []
    if blocks.outside:
        notes.append(
            f"{blocks.outside:,} of {blocks.outside + len(blocks.rva):,} blocks lie in no module and are "
            f"left out: {_NAMING}"
        )
    memory = np.unique(blocks.file[blocks.file >= blocks.files])
    if len(memory):
        notes.append(
            f"{counted(len(memory), 'module')} of memory without a file ({blocks.modules[memory[0]][0]}"
            f"{', ...' if len(memory) > 1 else ''}): {_NAMING}"
        )
    if blocks.errors or blocks.gaps:
        notes.append(
            f"{counted(blocks.errors, 'error')} and {counted(blocks.gaps, 'gap')}: blocks may be missing; "
            "`ptkit info --decode` shows where"
        )
    return notes


def merged_files(files: Sequence[tuple[str, str]]) -> list[int]:
    """For each file the first one of the same path and build-id."""
    first: dict[tuple[str, str], int] = {}
    return [first.setdefault(file, index) for index, file in enumerate(files)]
