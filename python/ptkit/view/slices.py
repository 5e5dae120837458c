"""Slices of a run as the page has them, and the first screen that is painted of them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.support.mapped import mapped
from ptkit.view.call_details import SliceRows
from ptkit.view.columns import ROWS, packed_columns, slice_columns
from ptkit.view.first_screen import FirstScreen

if TYPE_CHECKING:
    from ptkit.decode import CallTimeline

__all__ = ["Chunk", "encoded_slices", "positions_of"]

_THREADS = 2


@dataclass(frozen=True)
class Chunk:
    """Slices that are deflated together.

    Attributes
    ----------
    rows : int
    columns : list of list
        As `packed_columns` has them.
    data : bytes
        Base64.
    """

    rows: int
    columns: list[list[Any]]
    data: bytes


def encoded_slices(
    timeline: CallTimeline,
    functions: NDArray[np.uint32],
    origin: int,
    screen: FirstScreen | None = None,
) -> Iterator[Chunk]:
    """Encode all slices, several chunks at the same time.

    Parameters
    ----------
    timeline : CallTimeline
    functions : numpy.ndarray of uint32
        Numbers in the page, by the timeline's numbers of functions.
    origin : int
        Position 0 of the page.
    screen : FirstScreen, optional
        Gets all slices, too.
    """

    def parts() -> Iterator[dict[str, NDArray[Any]]]:
        for part in timeline.parts(ROWS):
            if screen is not None:
                screen.add(part, functions[part["function"]])
            yield part

    def chunk(part: dict[str, NDArray[Any]]) -> Chunk:
        columns, data = packed_columns(slice_columns(part, functions, origin, is_time=timeline.by == "time"))
        return Chunk(len(part["id"]), columns, b64encode(data))

    return mapped(chunk, parts(), _THREADS)


def positions_of(timeline: CallTimeline, functions: NDArray[np.uint32], rows: SliceRows) -> tuple[int, int]:
    """The first position of slices and bands, and the last one. `rows` gets all slices."""
    first, last = [], []
    for part in timeline.parts(ROWS):
        rows.add(part, functions[part["function"]])
        first.append(int(part["begin"].min()))
        last.append(int(part["end"].max()))
    for track in range(len(timeline.tracks)):
        begin, end, _ = timeline.bands(track)
        if len(begin):
            first.append(int(begin.min()))
            last.append(int(end.max()))
    return min(first, default=0), max(last, default=0)
