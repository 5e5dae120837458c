"""Address filters: which code is traced, in the syntax of ``perf record --filter``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from ptkit.capture.code_locations import NAME, file_name, number_or_name, symbol_range, unquoted
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, integer, several

__all__ = ["Filter", "filters_of"]

_KINDS = ("filter", "start", "stop", "tracestop")
_RANGES = ("filter", "tracestop")
_SYNTAX = "write filter|start|stop|tracestop SYMBOL|ADDRESS|* [/ SIZE|SYMBOL] [@ FILE]"
_ONE = re.compile(
    rf"""\s*(?P<kind>[a-z]+)\s+
    (?P<first>\*|{NAME})(?:\s*\#(?P<nth>\d+))?\s*
    (?:/\s*(?P<end>{NAME})(?:\s*\#(?P<end_nth>\d+))?\s*)?
    (?:@\s*(?P<file>"[^"]+"|[^\s,]+))?
    (?P<rest>[\s,]+|$)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Filter:
    """An address filter. Made by `function`, `range`, `module`, `start`, `stop`, `tracestop`.

    Several filters add up: code is traced that any range covers. Without a file, addresses are those of the
    process, and symbols those of any file; with a file, addresses are offsets in it.

    Attributes
    ----------
    kind : str
        ``"filter"``: only code in the range is traced; ``"tracestop"``: tracing ends for good where the range
        is entered; ``"start"``, ``"stop"``: tracing begins, ends when the location is executed.
    symbol : str
        The function; empty if addresses are given.
    file : str
        Absolute path or mere name of a mapped file; empty: any.
    first, last : int
        Address or offset of the first and last byte, where there is no symbol.

    Notes
    -----
    Intel SDM vol. 3, "Intel Processor Trace": "Filtering by IP" (ADDRn_CFG).

    Examples
    --------
    >>> import ptkit
    >>> ptkit.Filter.function("main")
    Filter(kind='filter', symbol='main', file='', first=0, last=0)
    >>> ptkit.Filter.parse("filter 0x1000/0x200 @ a.out, stop exit")[0]
    Filter(kind='filter', symbol='', file='a.out', first=4096, last=4607)
    """

    kind: str
    symbol: str = ""
    file: str = ""
    first: int = 0
    last: int = 0

    def __post_init__(self) -> None:
        """Check the values.

        Raises
        ------
        ConfigError
            If it is no filter.
        """
        if self.kind not in _KINDS:
            raise ConfigError(f"kind: expected one of {', '.join(_KINDS)}, found {self.kind!r}")
        if not isinstance(self.symbol, str) or "\0" in self.symbol:
            raise ConfigError(f"symbol: expected a name, found {self.symbol!r}")
        object.__setattr__(self, "file", file_name(self.file))
        integer("first", self.first, 0, LAST_ADDRESS)
        integer("last", self.last, self.first if self.kind in _RANGES else 0, LAST_ADDRESS)

    @classmethod
    def function(cls, symbol: str, file: str | os.PathLike[str] = "") -> Filter:
        """Only code of a function."""
        return cls("filter", _symbol(symbol), os.fspath(file))

    @classmethod
    def range(cls, first: int, size: int, file: str | os.PathLike[str] = "") -> Filter:
        """Only code in `size` bytes from an address, or an offset in a file, on."""
        return cls("filter", "", os.fspath(file), first, _last(first, size))

    @classmethod
    def module(cls, file: str | os.PathLike[str]) -> Filter:
        """Only code of a file, such as ``"libc.so.6"``."""
        if not os.fspath(file):
            raise ConfigError("file: expected a path or a file's name, found nothing")
        return cls("filter", "", os.fspath(file), 0, LAST_ADDRESS)

    @classmethod
    def start(cls, location: str | int, file: str | os.PathLike[str] = "") -> Filter:
        """Tracing is off until a function, an address, or an offset in a file is executed."""
        return cls._at("start", location, os.fspath(file))

    @classmethod
    def stop(cls, location: str | int, file: str | os.PathLike[str] = "") -> Filter:
        """Tracing ends where a function, an address, or an offset in a file is executed."""
        return cls._at("stop", location, os.fspath(file))

    @classmethod
    def tracestop(cls, location: str | int, size: int = 1, file: str | os.PathLike[str] = "") -> Filter:
        """Tracing ends for good where a function, or `size` bytes of code, are entered."""
        if isinstance(location, str):
            return cls("tracestop", _symbol(location), os.fspath(file))
        return cls("tracestop", "", os.fspath(file), location, _last(location, size))

    @classmethod
    def _at(cls, kind: str, location: str | int, file: str) -> Filter:
        if isinstance(location, str):
            return cls(kind, _symbol(location), file)
        return cls(kind, "", file, location, location)

    @classmethod
    def parse(cls, text: str) -> list[Filter]:
        """Read filters as ``perf record --filter`` has them: ``"filter main @ ./a.out"``.

        Parameters
        ----------
        text : str
            ``filter|start|stop|tracestop LOCATION [/ END] [@ FILE]``, several of them separated by commas.
            LOCATION is a symbol (``"in quotes"`` if it has blanks or commas), a symbol and ``#N`` for the Nth
            of several, an address, or ``*`` for the whole file. END is a size in bytes or the last symbol of
            the range; without it a symbol's own end.

        Returns
        -------
        list of Filter

        Raises
        ------
        ConfigError
            If it cannot be read.

        Notes
        -----
        Unlike perf's, filters without a file are for user code. ``#N``, and an END together with a symbol,
        need a FILE with its path.
        """
        if not isinstance(text, str) or not text.strip():
            raise ConfigError(f"filter {text!r}: {_SYNTAX}")
        found: list[Filter] = []
        offset = 0
        while offset < len(text):
            match = _ONE.match(text, offset)
            if match is None or match["kind"] not in _KINDS:
                raise ConfigError(f"filter {text[offset:].strip()!r}: {_SYNTAX}")
            try:
                found.append(_made(match))
            except ConfigError as error:
                raise ConfigError(f"filter {match[0].strip(' ,')!r}: {error}") from None
            offset = match.end()
        return found


def _symbol(symbol: str) -> str:
    if not isinstance(symbol, str) or not symbol:
        raise ConfigError(f"symbol: expected a name, found {symbol!r}")
    return symbol


def _last(first: int, size: int) -> int:
    first = integer("first", first, 0, LAST_ADDRESS)
    return first + integer("size", size, 1, LAST_ADDRESS - first + 1) - 1


def _made(match: re.Match[str]) -> Filter:
    kind, file = match["kind"], file_name(unquoted(match["file"]))
    end = None if match["end"] is None else number_or_name(match["end"])
    if end is not None and kind not in _RANGES:
        raise ConfigError(f"{kind} is for one location and takes no size")
    if match["first"] == "*":
        if not file or end is not None or kind not in _RANGES:
            raise ConfigError("* is for a whole file: write `filter * @ FILE`")
        return Filter(kind, "", file, 0, LAST_ADDRESS)
    location, nth = number_or_name(match["first"]), int(match["nth"] or 0)
    if isinstance(location, int):
        if end is None and kind in _RANGES:
            raise ConfigError("an address needs a size: write ADDRESS/SIZE")
        first = last = location
    elif end is None and match["nth"] is None:
        return Filter(kind, location, file)
    else:
        first, last = symbol_range(location, nth, file)
    if kind not in _RANGES:
        return Filter(kind, "", file, first, first)
    if isinstance(end, int):
        last = _last(first, end)
    elif end is not None:
        last = symbol_range(end, int(match["end_nth"] or 0), file)[1]
        if last < first:
            raise ConfigError(f"{end} lies before {match['first']}")
    return Filter(kind, "", file, first, last)


def filters_of(value: Any) -> list[Filter]:
    """Read the option ``filters``: a filter or a text, or several of them.

    Raises
    ------
    ConfigError
        If it is neither.
    """
    if value is None:
        return []
    found: list[Filter] = []
    for item in several("filters", value, (str, Filter), "ptkit.Filter objects or texts"):
        found += Filter.parse(item) if isinstance(item, str) else [item]
    return found
