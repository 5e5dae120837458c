"""Text of recordings for a terminal or a message: names in a recording are not to be trusted."""

from __future__ import annotations

import re

__all__ = ["counted", "last_part", "module_name", "one_line", "plain"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL_OR_END = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def plain(text: str) -> str:
    """Write control characters but tabs and ends of lines as ``\\x1b`` and the like."""
    return _CONTROL.sub(_escape, text)


def one_line(text: str) -> str:
    """Write all control characters so, ends of lines too: a name cannot begin a line of its own."""
    return _CONTROL_OR_END.sub(_escape, text)


def counted(count: int, noun: str, nouns: str = "") -> str:
    """A number and what it counts: ``"1 error"``, ``"0 gaps"``; `nouns`: an irregular plural."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def last_part(path: str) -> str:
    """The name of a file without its folders, as Windows and as Linux write them."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def module_name(path: str) -> str:
    """What is printed of a file that code was mapped from: ``"libc.so.6"``, ``"vdso"`` for ``[vdso]``."""
    return last_part(path).strip("[]") or path
