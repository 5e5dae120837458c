"""Text for a terminal: names in a recording may hold terminal commands, which are escaped."""

from __future__ import annotations

import os
import sys
from codecs import lookup
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from io import BufferedWriter
from typing import TYPE_CHECKING, TextIO

from ptkit.support.system import widen_pipe
from ptkit.support.text import one_line, plain

if TYPE_CHECKING:
    from rich.console import Console

_LONG_LINE = 1000  # columns
_PIPE_BYTES = 1 << 20  # what an unprivileged process may ask for, unless the administrator has changed it


def console() -> Console:
    """A console of rich; in a pipe, lines are as long as they are."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _LONG_LINE)


def print_text(text: object, *, errors: bool = False) -> None:
    """Print one line on standard output, or on standard error, that a terminal only shows."""
    print(one_line(str(text)), file=sys.stderr if errors else sys.stdout)


def line_of(text: str) -> bytes:
    """A line of a recording's text for `print_lines`, without its end: what is in it begins no other line."""
    return one_line(text).encode("utf-8", "backslashreplace")


def print_lines(lines: Iterable[bytes]) -> None:
    """Print lines that `line_of` or the core has made."""
    text = b"".join(line + b"\n" for line in lines)
    if text:
        byte_output()(text)


def byte_output() -> Callable[[bytes | memoryview], object]:
    """Printer of whole lines in UTF-8, which the core has made; for the current `sys.stdout`."""
    out = sys.stdout
    if not hasattr(out, "buffer") or lookup(out.encoding).name != "utf-8":
        return lambda lines: out.write(bytes(lines).decode("utf-8"))
    out.flush()
    _widen_pipe(out)
    if isinstance(out.buffer, BufferedWriter) and not out.isatty():
        return out.buffer.write

    def write(lines: bytes | memoryview) -> None:
        rest = memoryview(lines)
        while len(rest):  # an unbuffered output may take a part
            rest = rest[out.buffer.write(rest) :]
        if out.isatty():
            out.buffer.flush()

    return write


@cache
def _widen_pipe(out: TextIO) -> None:
    """Let a pipe hold more, if the output is one: writer and reader take turns less often."""
    with suppress(OSError):
        widen_pipe(out.fileno(), _PIPE_BYTES)


def print_multiline(text: str) -> None:
    """Print text on standard output; ends of lines stay."""
    print(plain(text))
