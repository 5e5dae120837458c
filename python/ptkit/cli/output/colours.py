"""Lines with colours on a terminal, and without in a pipe or where NO_COLOR is set."""

from __future__ import annotations

import os
import sys
from typing import TypeAlias

from ptkit.support.text import one_line

__all__ = ["Painted", "has_colours", "print_painted", "share_colour"]

#: A text, or a text and the name of its colour.
Painted: TypeAlias = str | tuple[str, str]

# Select Graphic Rendition parameters of ECMA-48: colours that a theme decides.
_COLOURS = {"": "", "dim": "2", "hot": "1;31", "warm": "33", "note": "36", "name": "1"}
_HOT, _WARM = 0.1, 0.01  # shares of all instructions


def has_colours() -> bool:
    """Whether standard output is a terminal that shows colours, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_painted(*parts: Painted) -> None:
    """Print one line on standard output. Texts are escaped as by `say`, so that only colours are commands."""
    paints = has_colours()
    print("".join(_painted(part, paints=paints) for part in parts))


def _painted(part: Painted, *, paints: bool) -> str:
    text, colour = (part, "") if isinstance(part, str) else part
    text, number = one_line(text), _COLOURS[colour]
    return f"\x1b[{number}m{text}\x1b[0m" if number and paints and text else text


def share_colour(share: float) -> str:
    """Colour of a share of all instructions."""
    return "hot" if share >= _HOT else "warm" if share >= _WARM else ""
