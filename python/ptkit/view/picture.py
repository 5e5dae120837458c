"""A picture of the first screen as SVG, for viewers that execute no script."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from ptkit.support.text import counted, fitted
from ptkit.view.first_screen import COLUMNS, NONE

if TYPE_CHECKING:
    from ptkit.view.run import Run

__all__ = ["svg_picture"]

_WIDTH = 2 * COLUMNS
_ROW = 14
_DEPTHS = 16
_TRACKS = 8
_HEAD = 20
_LETTER = 6.2  # width of a character
_LEAST_TEXT = 5  # characters
# Okabe and Ito's colours, which colour-blind people tell apart, lightened.
_COLOURS = ("#9fd3f2", "#f2c879", "#8fd6bf", "#e8a87c", "#a7c4e6", "#dcb6cf", "#efe79a", "#c9c9c9")


def svg_picture(run: Run) -> str:
    """Draw the tracks with most slices: a rectangle for each function, callers above what they call."""
    tracks = run.timeline.tracks
    order = sorted(range(len(tracks)), key=lambda number: -int(run.screen.slices[number]))
    shown = [number for number in order[:_TRACKS] if run.screen.slices[number]]
    parts: list[str] = []
    top = _HEAD
    heads = run.track_heads()
    for number in shown:
        name, detail = heads[number]
        parts.append(_text(0, top + _ROW - 4, f"{name} ({detail})", "bold"))
        top += _ROW
        cells = run.screen.rows(number)[:_DEPTHS].tolist()
        for row in cells:
            parts += _row(run, row, top)
            top += _ROW
        top += _ROW // 2
    left = len(tracks) - len(shown)
    about = f"{counted(len(run.timeline), 'slice')} of {counted(len(tracks), 'track')}"
    about += f"; {left:,} more in the page" if left > 0 else ""
    parts.insert(0, _text(0, _ROW, f"{run.title()}: {about}", "bold"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" '
        f'height="{top}" font-family="sans-serif" font-size="11"><rect width="{_WIDTH}" height="{top}" '
        f'fill="#fff"/>{"".join(parts)}</svg>'
    )


def _row(run: Run, cells: list[int], top: int) -> Iterator[str]:
    """Rectangles of neighbouring cells of one function."""
    at = 0
    for function, same in groupby(cells):
        size = len(list(same))
        left, width = at * 2, size * 2
        at += size
        if function == NONE:
            continue
        name = run.functions.names.names[function]
        colour = _COLOURS[function % len(_COLOURS)]
        yield (
            f'<rect x="{left}" y="{top}" width="{width}" height="{_ROW - 1}" fill="{colour}">'
            f"<title>{escape(name)}</title></rect>"
        )
        letters = int(width / _LETTER)
        if letters >= _LEAST_TEXT:
            yield _text(left + 2, top + _ROW - 4, fitted(name, letters))


def _text(left: int, bottom: int, text: str, weight: str = "normal") -> str:
    return f'<text x="{left}" y="{bottom}" font-weight="{weight}" fill="#111">{escape(text)}</text>'
