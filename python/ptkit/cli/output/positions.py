"""Positions of errors and gaps between the rows of a part."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptkit._core import GapCause
from ptkit.table import Table

__all__ = ["row_positions", "side_positions"]

_BEGIN = -1  # before the first row of a stream


def row_positions(part: Table) -> NDArray[np.int64]:
    """Positions of rows with a column ``offset``: an error or gap follows the last row of its position.

    For packets, the position of a row is the offset of the packet that decided it. A branch record decides
    rows of its offset, too: those on the path to its branch, and its branch as the last one. Errors and gaps
    of the path come before that last row. So the last row has position 2 * offset + 1, all others 2 * offset.
    """
    offsets = np.asarray(part["offset"]).astype(np.int64)
    if _of_records(part):
        own = np.append(offsets[1:] != offsets[:-1], True)[: len(offsets)]
        offsets = 2 * offsets + own
    return offsets


def side_positions(part: Table, side: Table) -> list[int]:
    """Positions of the errors or gaps of a part, as `row_positions` counts them."""
    offsets: list[int] = np.asarray(side["offset" if side.name == "errors" else "begin"]).tolist()
    if not _of_records(side):
        return offsets
    if side.name == "errors":
        return [2 * offset for offset in offsets]
    errors = part.errors
    begun = [] if errors is None else [*zip(errors["offset"].tolist(), errors["code"].tolist(), strict=True)]
    columns = (side[name].tolist() for name in ("begin", "end", "cause", "code", "from_known"))
    return [_gap_position(begun, *row) for row in zip(*columns, strict=True)]


def _of_records(table: Table) -> bool:
    """Whether the rows are of a stream of branch records."""
    streams = table.data.context.record_streams
    return bool(streams and len(table)) and int(table["stream"][0]) in streams


def _gap_position(
    errors: list[tuple[int, int]], begin: int, end: int, cause: int, code: int, from_known: bool
) -> int:
    """After the error that began the gap, or after the record that the gap begins at."""
    if cause == GapCause.ERROR:
        found = [offset for offset, error in errors if error == code and begin <= offset <= end]
        if found:
            return 2 * found[0]
    return 2 * begin + 1 if begin or from_known else _BEGIN
