"""Columns of slices as bytes: byte planes, deflated."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROWS", "deflated", "packed_columns", "slice_columns"]

#: Slices of a chunk.
ROWS = 1 << 17
_RAW_DEFLATE = -15
_LEVEL = 6
_TYPES = (("u8", np.uint8), ("u16", np.uint16), ("u32", np.uint32), ("u64", np.uint64))
# Columns that are differences to the row before.
_DELTAS = frozenset({"depth", "begin", "id"})


def deflated(data: bytes) -> bytes:
    """Compress to raw deflate, without a header."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW_DEFLATE)
    return packer.compress(data) + packer.flush()


def slice_columns(
    part: Mapping[str, NDArray[Any]], functions: NDArray[np.uint32], origin: int, *, is_time: bool
) -> dict[str, NDArray[Any]]:
    """Columns of a chunk, from those of `ptkit.decode.CallTimeline`.

    Parameters
    ----------
    part : dict of str to numpy.ndarray
    functions : numpy.ndarray of uint32
        Numbers in the page, by the timeline's numbers of functions.
    origin : int
        Position 0 of the page.
    is_time : bool
        Positions are times. Else instructions are left out where they are the durations.
    """
    duration = part["end"] - part["begin"]
    columns = {
        "track": part["track"],
        "depth": part["depth"],
        "begin": part["begin"] - np.uint64(origin),
        "duration": duration,
        "function": functions[part["function"]],
        "calls": part["calls"],
    }
    if (part["covered"] != duration).any():
        columns["covered"] = part["covered"]
    if is_time or (part["instructions"] != duration).any():
        columns["instructions"] = part["instructions"]
    names = ("branches", "begin_error", "end_error", "flags", "how", "end_how", "has_loss", "id")
    return columns | {name: part[name] for name in names}


def packed_columns(columns: Mapping[str, NDArray[Any]]) -> tuple[list[list[Any]], bytes]:
    """Pack columns of one length, which is not 0: what the page has to know of each, and the deflated bytes.

    Each column is ``[name, type, coding]``, or ``[name, type, "const", value]`` without bytes.
    """
    described: list[list[Any]] = []
    planes = []
    for name, values in columns.items():
        if values[0] == values[-1] and (values == values[0]).all():
            value = int(values[0])
            described.append([name, _type_of(value)[0], "const", value])
            continue
        coding = "delta" if name in _DELTAS else "raw"
        cells = _zigzag(values) if coding == "delta" else values
        text, dtype = _type_of(int(cells.max()))
        described.append([name, text, coding])
        planes.append(_planes(cells.astype(np.dtype(dtype).newbyteorder("<"))))
    return described, deflated(b"".join(planes))


def _type_of(most: int) -> tuple[str, type[np.unsignedinteger[Any]]]:
    """The narrowest type that holds a number."""
    return next(one for one in _TYPES if most <= np.iinfo(one[1]).max)


def _zigzag(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Differences to the row before: 2x, or -2x - 1 where they are negative."""
    difference = values.astype(np.int64)
    difference[1:] -= difference[:-1].copy()
    return ((difference << 1) ^ (difference >> 63)).view(np.uint64)


def _planes(cells: NDArray[Any]) -> bytes:
    """All lowest bytes, then all next ones, and so on."""
    return np.ascontiguousarray(cells.view(np.uint8).reshape(len(cells), -1).T).tobytes()
