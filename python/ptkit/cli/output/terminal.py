"""Text for a terminal: names in a recording may hold terminal commands, which are escaped."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ptkit.text import one_line, plain


def say(text: object, *, errors: bool = False) -> None:
    """Print one line on standard output, or on standard error, that a terminal only shows."""
    print(one_line(str(text)), file=sys.stderr if errors else sys.stdout)


def say_lines(lines: Iterable[str]) -> None:
    """Print lines on standard output; what is in one of them begins no other."""
    print("\n".join(map(one_line, lines)))


def say_text(text: str) -> None:
    """Print text on standard output; ends of lines stay."""
    print(plain(text))
