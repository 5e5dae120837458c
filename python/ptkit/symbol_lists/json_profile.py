"""JSON profiles of kernels: Volatility 3's ISF and Rekall's.

Profiles of Linux have some hundred thousand types: members are parsed some at a time, and those without
symbols only for where they end.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any, NoReturn, TypeGuard

import numpy as np

from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.columns import Bytes, Offsets
from ptkit.symbol_lists.found import FoundList, NoSymbols

__all__ = ["read_json_profile"]

_CHUNK_BYTES = 1 << 22
_BATCH_BYTES = 1 << 20
#: Of one type or symbol, and of all that is neither; profiles have some thousand bytes in one.
MOST_MEMBER_BYTES = 1 << 24
_READ = frozenset(("symbols", "metadata", "$CONSTANTS", "$FUNCTIONS", "$METADATA"))
#: Objects and arrays of the document itself.
MOST_CONTAINERS = 10_000
_LAST_RELATIVE = 0xFFFF_FFFF

_COMMA, _QUOTE, _BACKSLASH = (ord(letter) for letter in ',"\\')
_DEPTHS = np.zeros(256, dtype=np.int8)
_DEPTHS[[ord("["), ord("{")]] = 1
_DEPTHS[[ord("]"), ord("}")]] = -1
_MARKS = bytes(chr(letter) in '[]{},"' for letter in range(256))


class _NoJson(Exception):
    def __init__(self, offset: int) -> None:
        self.offset = offset


def _marks(part: Bytes) -> Offsets:
    """Return where brackets and commas are, and quotes with an even number of backslashes before them."""
    marks = np.flatnonzero(np.frombuffer(part.tobytes().translate(_MARKS), dtype=np.bool_))
    slashes = np.flatnonzero(part == _BACKSLASH)
    if not len(slashes):
        return marks
    is_quote = part[marks] == _QUOTE
    quotes = marks[is_quote]
    first = slashes[np.concatenate(([True], np.diff(slashes) != 1))]
    before = np.searchsorted(first, quotes, side="right") - 1
    run = quotes - first[np.maximum(before, 0)]
    follows = (quotes > 0) & (part[quotes - 1] == _BACKSLASH) & (before >= 0)
    is_quote[is_quote] = follows & (run % 2 == 1)
    kept: Offsets = marks[~is_quote]
    return kept


def _cuts(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield (offset, depth) of commas and brackets at which the outer two levels are cut.

    These are brackets of the document and of its members, and the last comma before one, or of a batch.
    """
    whole = np.frombuffer(text, dtype=np.uint8)
    depth, in_string, begin = 0, False, 0
    while begin < len(text):
        end = min(begin + _CHUNK_BYTES, len(text))
        while end < len(text) and whole[end - 1] == _BACKSLASH:  # an escape stays in one part
            end += 1
        part = whole[begin:end]
        marks = _marks(part)
        letters = part[marks]
        is_quote = letters == _QUOTE
        quotes = np.cumsum(is_quote, dtype=np.uint8) + np.uint8(in_string)  # even: outside of strings
        in_string = bool(quotes[-1] & 1) if len(quotes) else in_string
        outside = ~is_quote & (quotes & 1 == 0)
        marks = marks[outside]
        steps = _DEPTHS[letters[outside]]
        depths = depth + np.cumsum(steps, dtype=np.int64)
        depth = int(depths[-1]) if len(depths) else depth
        kept = depths + (steps < 0) <= 2
        marks, depths, steps = marks[kept] + begin, depths[kept], steps[kept]
        commas = steps == 0
        alike = commas[:-1] & commas[1:] & (depths[:-1] == depths[1:])
        alike &= marks[:-1] // _BATCH_BYTES == marks[1:] // _BATCH_BYTES
        kept = np.ones(len(marks), dtype=np.bool_)
        kept[:-1] = ~alike
        yield from zip(marks[kept].tolist(), depths[kept].tolist(), strict=True)
        begin = end


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("is no JSON")


def _parse(text: bytes, begin: int, end: int, before: bytes = b"", after: bytes = b"") -> Any:
    """Parse a part of the text, in brackets if it is from within a container."""
    if end - begin > MOST_MEMBER_BYTES:
        raise NoSymbols(
            f"is JSON with a member of {end - begin:,} bytes at byte {begin}, and members of profiles have "
            f"at most {MOST_MEMBER_BYTES:,}; give a Volatility ISF or a Rekall profile"
        )
    try:
        return json.loads((before + text[begin:end] + after).decode(), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise _NoJson(begin + max(error.pos - len(before), 0)) from None
    except UnicodeDecodeError as error:
        raise _NoJson(begin + max(error.start - len(before), 0)) from None
    except (ValueError, RecursionError):
        raise _NoJson(begin) from None


class _Document:
    """Cuts a document into its members, and those that are objects or arrays into parts."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._begin = text.index(b"{") + 1  # of what is not parsed yet
        self._comma: int | None = None  # the last one outside of members, after `_begin`
        self._follows = False  # a member is before `_begin`
        self._key = ""
        self._opening = b""  # of the member that is open
        self._is_first = True  # no part of it was parsed
        self._containers = 0

    def members(self) -> Iterator[tuple[str, Any]]:
        """Yield the members of the document, the parts of one as objects or arrays.

        Raises
        ------
        _NoJson
            Where the text stops being JSON.
        """
        closed = 0
        for offset, depth in _cuts(self._text):
            letter = self._text[offset : offset + 1]
            if closed or depth < 0 or (depth == 0 and letter != b"}"):
                raise _NoJson(offset)
            if letter == b"," and depth == 2 and self._opening:
                if offset - self._begin >= _BATCH_BYTES // 2:
                    yield self._key, self._part(offset, is_last=False)
            elif letter == b"," and depth == 1:
                if offset - self._begin >= _BATCH_BYTES:
                    yield from self._values(offset)
                self._comma = offset
            elif letter in b"{[" and depth == 2:
                yield from self._open(offset, letter)
            elif depth == 1 and self._opening:
                if letter != (b"}" if self._opening == b"{" else b"]"):
                    raise _NoJson(offset)
                yield self._key, self._part(offset, is_last=True)
            elif depth == 0:
                yield from self._values(offset)
                closed = offset + 1
        if not closed or self._text[closed:].strip():
            raise _NoJson(closed or len(self._text))

    def _open(self, offset: int, letter: bytes) -> Iterator[tuple[str, Any]]:
        begin = self._begin
        if self._comma is not None:
            yield from self._values(self._comma)
            begin = self._comma + 1
            self._follows = True
        elif self._follows:
            raise _NoJson(begin)
        head = self._text[begin:offset].rstrip()
        key = _parse(self._text, begin, begin + len(head) - 1) if head.endswith(b":") else None
        if not isinstance(key, str):
            raise _NoJson(begin)
        self._containers += 1
        if self._containers > MOST_CONTAINERS:
            raise NoSymbols(
                f"is JSON with more than {MOST_CONTAINERS:,} outer members, and profiles have some ten; give "
                "a Volatility ISF or a Rekall profile"
            )
        self._key, self._opening, self._is_first = key, letter, True
        self._begin, self._comma = offset + 1, None

    def _part(self, end: int, *, is_last: bool) -> Any:
        """Parse a part of the open member."""
        is_blank = not self._text[self._begin : end].strip()
        if is_blank and not (self._is_first and is_last):
            raise _NoJson(end)
        closing = b"}" if self._opening == b"{" else b"]"
        value = None
        if self._key in _READ:
            value = _parse(self._text, self._begin, end, self._opening, closing)
        self._begin, self._is_first = end + 1, False
        if is_last:
            self._opening, self._follows, self._comma = b"", True, None
        return value

    def _values(self, end: int) -> Iterator[tuple[str, Any]]:
        """Parse members that are neither objects nor arrays; the comma at `end` stays."""
        begin = self._begin
        if self._follows:
            begin += len(self._text[begin:end]) - len(self._text[begin:end].lstrip())
            if begin == end:
                return
            if self._text[begin : begin + 1] != b",":
                raise _NoJson(begin)
            begin += 1
        if not self._text[begin:end].strip():
            if self._follows or self._comma == end:
                raise _NoJson(begin)
            return
        yield from _parse(self._text, begin, end, b"{", b"}").items()
        self._begin, self._follows = end, True


def _is_number(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= LAST_ADDRESS


class _Profile:
    def __init__(self) -> None:
        self.names = bytearray()
        self.is_isf = False
        self.is_rekall = False
        self.database = ""
        self.guid = ""
        self.age = 0
        self._ends: list[Offsets] = []
        self._addresses: list[Any] = []

    def read(self, key: str, value: Any) -> None:
        """Read a member of the document, or a part of it."""
        if not isinstance(value, dict):
            return
        if key == "symbols":
            symbols = {name: one.get("address") for name, one in value.items() if isinstance(one, dict)}
            self.is_isf |= self._add(symbols)
        elif key in ("$CONSTANTS", "$FUNCTIONS"):
            self.is_rekall |= self._add(value)
        elif key == "$METADATA":
            if _is_text(file := value.get("PDBFile")):
                self.database = file
        elif key == "metadata":
            for system in value.values():
                for member in system.values() if isinstance(system, dict) else ():
                    if isinstance(member, dict):
                        self._read_pdb(member)

    def _read_pdb(self, members: dict[str, Any]) -> None:
        if _is_number(age := members.get("age")):
            self.age = age
        if _is_text(database := members.get("database")):
            self.database = database
        if _is_text(guid := members.get("GUID")):
            self.guid = guid

    def _add(self, symbols: dict[str, Any]) -> bool:
        """Add names with their addresses; False: there are none."""
        values = symbols.values()
        if set(map(type, values)) != {int} or min(values) < 0 or max(values) > LAST_ADDRESS:
            symbols = {name: value for name, value in symbols.items() if _is_number(value)}
        if not symbols:
            return False
        encoded = "".join(symbols).encode(errors="replace")
        lengths = np.fromiter(map(len, symbols), dtype=np.int64, count=len(symbols))
        if len(encoded) != int(lengths.sum()):  # not ASCII alone
            each = [name.encode(errors="replace") for name in symbols]
            lengths = np.fromiter(map(len, each), dtype=np.int64, count=len(each))
        self._ends.append(len(self.names) + np.cumsum(lengths))
        self._addresses.append(np.fromiter(symbols.values(), dtype=np.uint64, count=len(symbols)))
        self.names += encoded
        return True

    def found(self) -> FoundList:
        """Return the list. A symbol without a name is no symbol."""
        none = np.zeros(0, dtype=np.int64)
        ends = np.concatenate([none, *self._ends])
        addresses = np.concatenate([none.astype(np.uint64), *self._addresses])
        begins = np.concatenate((none, [0], ends))[: len(ends)]
        named = ends > begins
        found = FoundList("Volatility ISF" if self.is_isf else "Rekall profile", names=bytes(self.names))
        begins, ends, addresses = begins[named], ends[named], addresses[named]
        found.symbols.add(begins, ends, addresses)
        found.note_bases(np.frombuffer(self.names, dtype=np.uint8), begins, ends, addresses)
        found.module, found.guid = (text.encode(errors="replace") for text in (self.database, self.guid))
        found.age = self.age
        return found


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str)


def read_json_profile(text: bytes) -> FoundList | None:
    """Read such a profile; None: the text is no JSON object.

    Raises
    ------
    NoSymbols
        If it is damaged, or has no symbols.
    """
    if not text[: text.find(b"\n") % (len(text) + 1)].strip(b" \t\r").startswith(b"{"):
        return None
    profile = _Profile()
    collects = gc.isenabled()
    gc.disable()  # parsed JSON has no cycles: looking for them takes a third of the time
    try:
        for key, value in _Document(text).members():
            profile.read(key, value)
    except _NoJson as error:
        raise NoSymbols(f"is no JSON at byte {error.offset}; convert or download the profile again") from None
    finally:
        if collects:
            gc.enable()
    found = profile.found()
    if not found.symbols.count:
        raise NoSymbols(
            "is JSON without symbols: give a Volatility ISF or a Rekall profile, which has the member "
            "symbols or $CONSTANTS"
        )
    if found.symbols.highest <= _LAST_RELATIVE and found.linked_base is None:
        found.linked_base = 0  # those of Windows' kernels and drivers
    return found
