"""Text for a terminal: names in a recording are other people's words, and may hold its commands."""

from __future__ import annotations

import re
import sys

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Write control characters but tabs and ends of lines as ``\\x1b`` and the like."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def say(text: object, *, errors: bool = False) -> None:
    """Print on standard output, or on standard error, what a terminal only shows."""
    print(plain(str(text)), file=sys.stderr if errors else sys.stdout)
