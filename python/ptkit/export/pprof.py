"""Profiles of pprof: protocol buffers, compressed, as ``go tool pprof`` and ``go build -pgo`` read."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

import ptkit
from ptkit.export.call_lines import CallLines
from ptkit.export.contexts import Contexts, contexts_of
from ptkit.export.files import NewFile, joined
from ptkit.export.frame_rows import ProfileTrace, has_real_times
from ptkit.export.protobuf import bytes_field, packed_field, varint, varint_field
from ptkit.support.text import one_line

__all__ = ["write_pprof"]

_GZIP = 31  # zlib's number for a window of 32 KiB with gzip's header
# Numbers of the fields of profile.proto.
_SAMPLE_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _STRING = range(1, 7)
_COMMENT, _DEFAULT = 13, 14


def write_pprof(
    trace: ProfileTrace,
    path: str,
    *,
    names: str = "short",
    depth: int | None = None,
    frames: str = "native",
    inlines: bool = False,
    **query: Any,
) -> dict[str, Any]:
    """Write a profile of pprof: a sample for each calling context, with its call sites.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    names : str
        ``"short"`` or ``"full"`` names of functions; the full ones are their system names in any case.
    depth : int, optional
        Contexts with more callers count as that caller of theirs that has so many; None: 1,000.
    frames, inlines, **query
        As for `ptkit.Trace.call_tree`.

    Raises
    ------
    ConfigError
        If the query chooses columns, an order, or rows that frames have not.

    Notes
    -----
    Values of a sample are ``instructions`` of the context alone, ``calls``, ``time`` of the context alone
    where times are real, and ``samples``, which are the instructions again: ``go build -pgo`` looks for that
    name.
    """
    contexts = contexts_of(
        trace,
        names=names,
        times=has_real_times(trace),
        depth=depth,
        frames=frames,
        inlines=inlines,
        marks_inlined=False,
        **query,
    )
    profile = _Profile(trace, contexts)
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    with NewFile(path) as file:
        for chunk in joined(profile.parts()):
            file.write(packer.compress(chunk))
        file.write(packer.flush())
    return {"bytes": file.bytes, "notes": list(contexts.notes)}


class _Strings:
    """The table of strings; number 0 is the empty one."""

    def __init__(self) -> None:
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        """Number of a string, without control characters and what is no Unicode."""
        text = one_line(text)
        return self._numbers.setdefault(text, len(self._numbers))

    def fields(self) -> Iterator[bytes]:
        """Fields of the profile."""
        for text in self._numbers:
            yield bytes_field(_STRING, text.encode())


class _Mappings:
    """Where files are loaded: a number for each file and load address, from 1."""

    def __init__(self, trace: ProfileTrace) -> None:
        table = trace.mappings()
        known = np.asarray(table["file_known"])
        files = np.where(known, np.asarray(table["file"]), -1).astype(np.int64)
        begin = np.asarray(table["address"])
        size, rva, offset = (np.asarray(table[name]) for name in ("size", "rva", "file_offset"))
        self._numbers: dict[tuple[int, int], int] = {}
        self._ranges: list[list[int]] = []  # file, begin, end, offset in the file
        columns = (files, begin, size, rva, offset, np.asarray(table["space"]))
        by_space: dict[int, list[tuple[int, int, int]]] = {}
        for file, first, length, at, inside, space in zip(*(one.tolist() for one in columns), strict=True):
            key = (file, first - at) if file >= 0 else (-1, first)
            number = self._numbers.setdefault(key, len(self._numbers) + 1)
            if number > len(self._ranges):
                self._ranges.append([file, first, first + length, inside])
            else:
                one = self._ranges[number - 1]
                if first < one[1]:
                    one[1], one[3] = first, inside
                one[2] = max(one[2], first + length)
            by_space.setdefault(space, []).append((first, first + length, number))
        self._by_space = {space: sorted(rows) for space, rows in by_space.items()}
        self._begins = {
            space: np.array([row[0] for row in rows], np.uint64) for space, rows in self._by_space.items()
        }

    def number(self, ip: int, space: int, file: int) -> int:
        """Number of the mapping at an address, of a file if one has it; 0: none is known."""
        for one in dict.fromkeys((space, 0)):
            rows = self._by_space.get(one, [])
            at = int(np.searchsorted(self._begins[one], np.uint64(ip), "right")) - 1 if rows else -1
            found = 0
            # Rows may overlap where code was loaded at one time and other code at another.
            for begin, end, number in reversed(rows[max(at - 3, 0) : at + 1]):
                if begin <= ip < end:
                    if self._ranges[number - 1][0] == file:
                        return number
                    found = found or number
            if found:
                return found
        return 0

    def fields(self, files: Any, strings: _Strings) -> Iterator[bytes]:
        """Fields of the profile; pprof does not look for names and lines itself."""
        for number, (file, begin, end, offset) in enumerate(self._ranges, 1):
            path, build_id = files[file] if file >= 0 else (f"[anon {begin:#x}]", "")
            yield bytes_field(
                _MAPPING,
                varint_field(1, number)
                + varint_field(2, begin)
                + varint_field(3, end)
                + varint_field(4, offset)
                + varint_field(5, strings.number(path))
                + varint_field(6, strings.number(build_id))
                + b"".join(varint_field(has, 1) for has in (7, 8, 9)),
            )


class _Profile:
    """Parts of a profile, in the order in which they refer to each other."""

    def __init__(self, trace: ProfileTrace, contexts: Contexts) -> None:
        self._trace = trace
        self._contexts = contexts
        self._strings = _Strings()
        self._lines = CallLines(trace, contexts)
        self._mappings = _Mappings(trace)
        self._locations: dict[tuple[int, int, int], int] = {}  # function, address, space
        self._located: list[bytes] = []  # fields of the profile

    def parts(self) -> Iterator[bytes]:
        """Fields of the profile."""
        strings = self._strings
        types = [("instructions", "count"), ("calls", "count")]
        values = [self._contexts.own, self._contexts.count]
        if self._contexts.ns is not None:
            types.append(("time", "nanoseconds"))
            values.append(self._contexts.ns)
        types.append(("samples", "count"))
        values.append(self._contexts.own)
        for name, unit in types:
            yield bytes_field(
                _SAMPLE_TYPE, varint_field(1, strings.number(name)) + varint_field(2, strings.number(unit))
            )
        yield from self._mappings.fields(self._trace.info.files, strings)
        yield from self._functions()
        yield varint_field(_DEFAULT, strings.number("instructions"))
        about = f"ptkit {ptkit.__version__}: counts of all executed instructions, no samples"
        for comment in (about, *self._contexts.notes):
            yield varint_field(_COMMENT, strings.number(comment))
        yield from self._samples([one.tolist() for one in values])
        yield from self._located
        yield from strings.fields()

    def _functions(self) -> Iterator[bytes]:
        functions, strings = self._contexts.functions, self._strings
        for number, (name, full) in enumerate(zip(functions.names, functions.full, strict=True)):
            at = self._lines.functions[number]
            yield bytes_field(
                _FUNCTION,
                varint_field(1, number + 1)
                + varint_field(2, strings.number(name))
                + varint_field(3, strings.number(full))
                + varint_field(4, strings.number(at.path))
                + varint_field(5, at.line),
            )

    def _samples(self, values: list[list[int]]) -> Iterator[bytes]:
        """A sample for each context with a value, callers before what they call."""
        contexts = self._contexts
        functions = contexts.function.tolist()
        parents, known = contexts.parent.tolist(), contexts.site_known.tolist()
        sites, spaces = contexts.site.tolist(), contexts.site_space.tolist()
        rows, depths = contexts.preorder()
        callers: list[bytes] = []  # locations of the callers of each open context, as a sample has them
        entries = [varint(self._entry(number)) for number in range(len(contexts.functions))]
        columns = list(zip(*values, strict=True))
        for row, depth in zip(rows.tolist(), depths.tolist(), strict=True):
            del callers[depth:]
            parent = parents[row]
            above = b""
            if parent >= 0:
                caller = functions[parent]
                if known[row]:
                    above = varint(self._call(caller, sites[row], spaces[row])) + callers[-1]
                else:
                    above = entries[caller] + callers[-1]
            callers.append(above)
            measured = columns[row]
            if any(measured):
                sample = bytes_field(1, entries[functions[row]] + above)
                yield bytes_field(_SAMPLE, sample + packed_field(2, map(varint, measured)))

    def _entry(self, function: int) -> int:
        """Number of the location of a function's begin."""
        functions = self._contexts.functions
        ip = int(functions.entry[function]) if functions.entry_known[function] else 0
        space = int(functions.space[function])
        key = function, ip, space
        return self._locations.get(key) or self._located_at(key, self._lines.functions[function].line)

    def _call(self, caller: int, site: int, space: int) -> int:
        """Number of the location of a call in a function."""
        key = caller, site, space
        return self._locations.get(key) or self._located_at(key, self._lines.call(caller, site, space))

    def _located_at(self, key: tuple[int, int, int], line: int) -> int:
        function, ip, space = key
        number = self._locations[key] = len(self._locations) + 1
        file = int(self._contexts.functions.file[function])
        self._located.append(
            bytes_field(
                _LOCATION,
                varint_field(1, number)
                + varint_field(2, self._mappings.number(ip, space, file) if ip else 0)
                + varint_field(3, ip)
                + bytes_field(4, varint_field(1, function + 1) + varint_field(2, line)),
            )
        )
        return number
