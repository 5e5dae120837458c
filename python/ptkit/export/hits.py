"""How often instructions were executed, by module and RVA."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core

if TYPE_CHECKING:
    from ptkit.export.blocks import BlockTrace

__all__ = ["executions"]

_PART = 1 << 18
_LAST_TSC = 2**64 - 2
# Blocks that differ in one of these execute other instructions: `region` has the version of their code.
_KEY = ("ip", "size", "mode", "space", "region")


def executions(trace: BlockTrace, *, file_offsets: bool, **query: Any) -> Counter[tuple[int, int]]:
    """Count how often each instruction was executed that some block begins with, or has inside.

    Parameters
    ----------
    trace : Trace
    file_offsets : bool
        Offsets in files instead of RVAs.
    **query
        Which blocks; see `ptkit.decode.Query`.

    Returns
    -------
    collections.Counter
        By number of the module and RVA.
    """
    session = trace.opened.session
    counts: Counter[tuple[int, int]] = Counter()
    blocks = _distinct(trace, query)
    if not len(blocks["ip"]):
        return counts
    # Code at an unknown time is that of the region that was found for it.
    begins = np.array([0, *(region[4] for region in _core.code_regions(session))], np.uint64)
    since = begins[blocks["region"].astype(np.int64) + 1]
    when = np.where(blocks["known"], blocks["tsc"], since)
    keys = zip(
        *(blocks[name].tolist() for name in ("ip", "size", "mode", "space")),
        when.tolist(),
        blocks["tsc_error"].tolist(),
        strict=True,
    )
    inside = [_sizes(session, *key) for key in keys]
    lengths = [len(sizes) for sizes in inside]
    starts = np.concatenate([np.cumsum([0, *sizes[:-1]]) for sizes in inside]).astype(np.uint64)
    ips = np.repeat(blocks["ip"], lengths) + starts
    spaces, tsc, error, known = (
        np.repeat(blocks[name], lengths) for name in ("space", "tsc", "tsc_error", "known")
    )
    times = tsc, error, known
    files, offsets = _core.name_files(session, ips, spaces, None, times, True, not file_offsets)
    repeated = np.repeat(blocks["count"], lengths)
    for file, offset, count in zip(files.tolist(), offsets.tolist(), repeated.tolist(), strict=True):
        counts[file, offset] += count
    return counts


def _distinct(trace: BlockTrace, query: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Distinct blocks, how often they came, and a time at which their code was so."""
    names = ("ip", "size", "mode", "space")
    columns = [*names, "flags", "tsc", "tsc_error"]
    found: dict[str, NDArray[Any]] = {}
    for part in trace.iter_blocks(rows=_PART, reuse=True, **{**query, "columns": columns}):
        known = np.asarray(part["time_known"])
        rows = {name: np.array(part[name]) for name in names}
        rows["tsc"] = np.where(known, part["tsc"], np.uint64(0))
        rows["tsc_error"] = np.where(known, part["tsc_error"], np.uint32(0))
        rows["known"] = known.astype(np.bool_)
        times = rows["tsc"], rows["tsc_error"], rows["known"]
        rows["region"] = _core.find_regions(trace.opened.session, rows["ip"], rows["space"], times)
        rows["count"] = np.ones(len(part), np.uint64)
        found = _united(
            rows if not found else {name: np.concatenate([found[name], rows[name]]) for name in rows}
        )
    return found or {name: np.zeros(0, np.uint64) for name in (*_KEY, "tsc", "tsc_error", "known", "count")}


def _united(rows: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Rows of equal blocks as one, with the sum of their counts."""
    codes = np.zeros(len(rows["ip"]), np.int64)
    for name in _KEY:
        values, numbers = np.unique(rows[name], return_inverse=True)
        codes = np.unique(codes * len(values) + numbers, return_inverse=True)[1]
    _, first = np.unique(codes, return_index=True)
    counts = np.zeros(len(first), np.uint64)
    np.add.at(counts, codes, rows["count"])
    return {name: counts if name == "count" else column[first] for name, column in rows.items()}


def _sizes(
    session: _core.Session, ip: int, size: int, mode: int, space: int, tsc: int, error: int
) -> list[int]:
    """Sizes of the instructions of a block; code that came within the time's error counts."""
    code = session.read_code(ip, size, space, tsc)
    if len(code) < size and error:
        code = session.read_code(ip, size, space, min(tsc + error, _LAST_TSC))
    rest, sizes = memoryview(code), []
    while size > 0:
        one = min(_core.instruction_size(rest, mode) or size, size)
        sizes.append(one)
        rest, size = rest[one:], size - one
    return sizes
