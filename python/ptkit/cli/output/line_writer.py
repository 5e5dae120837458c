"""Rows of tables as lines of bytes: the core writes them, column by column of what a line has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.cli.output.terminal import byte_output
from ptkit.support.schema import schema_of
from ptkit.support.text import one_line
from ptkit.table import Table
from ptkit.table.derived import indirect_branches
from ptkit.trace import Trace

__all__ = ["LineWriter", "labels_of"]

_Times = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.bool_]]
_CODES = 256  # values of a column of an enumeration


@cache
def labels_of(table: str, column: str, form: Callable[[str], str] = str) -> list[bytes]:
    """A text for each value that a column of an enumeration may have; `form` makes it of the name."""
    enum = schema_of(table).columns[column].enum
    assert enum is not None
    names = {int(member): form(member.name) for member in enum}
    return [names.get(value, str(value)).encode() for value in range(_CODES)]


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _decimal(
    value: int, known: bool, *, unknown: str = "", before: str = "", after: str = "", width: int = 0
) -> str:
    """A decimal number as the core writes it."""
    return f"{f'{before}{value}{after}' if known else unknown:>{width}}"


class LineWriter:
    """Writes the rows of one part of a table after the other.

    `begin` comes first, then one call for each field of a line, in order, then `print` or `lines`. Names of
    addresses are looked up once for each address space and version of its code, however many rows have them.

    Parameters
    ----------
    trace : Trace
    names : str
        Form of names of addresses: ``"symbol"`` (``main+0x10``, or ``[gzip]+0x1010`` without a
        symbol), ``"file offset"`` (the same with offsets in the file instead of RVAs), ``"rva"``
        (``gzip+0x1010``), or ``"rva and symbol"`` (``gzip+0x1010 (main+0x10)``).
    short : bool
        Functions have their short names, but their full ones where a short one is the whole name of another
        function, and would select that. JSON has both.
    """

    def __init__(self, trace: Trace, names: str = "symbol", *, short: bool = False) -> None:
        modules = [*map(_bytes, trace.open_parts.names.file_modules)]
        in_file = names == "file offset"
        self._core = _core.LineWriter(
            trace.opened.session,
            modules,
            trace.open_parts.described.cs_base,
            in_file,
            "symbol" if in_file else names,
            short,
        )
        self._part: Table

    def show(self, names: Mapping[str, str]) -> None:
        """Set what is printed for full names of functions, where short ones are printed."""
        self._core.show({_bytes(full): _bytes(one_line(name)) for full, name in names.items()})

    def begin(self, part: Table) -> None:
        """Begin lines of a part."""
        self._part = part
        self._spread: dict[str, NDArray[Any]] = {}
        self._core.begin(len(part))

    def begin_group(self) -> None:
        """Begin fields with values that decide their text: it is kept, from part to part.

        Worth it where values are often those of an earlier row. A group with instructions, packets,
        texts of rows, or more than 24 bytes of values is written field by field.
        """
        self._core.begin_group()

    def end_group(self) -> None:
        """The next field is none of the group."""
        self._core.end_group()

    def literal(self, text: str) -> None:
        """A text that is equal in all lines."""
        self._core.literal(text)

    def number(self, name: str, form: str, **options: Any) -> None:
        """A column of numbers; `form`: ``"hex16"``, ``"hex"`` or ``"decimal"``.

        Options are ``known`` (the mask; that of the column by default), ``unknown`` (instead of a number that
        is not known), ``before`` and ``after`` (around one that is), and ``width``.
        """
        constant = self._constant(name) if form == "decimal" else None
        if constant is not None:
            self.literal(_decimal(*constant, **options))
            return
        options.setdefault("known", self.known(name))
        self.values(self._raw(name), form, **options)

    def values(self, values: NDArray[Any], form: str, **options: Any) -> None:
        """Numbers that are no column, as `number`; `form` may be ``"seconds"``, of nanoseconds."""
        self._core.number(values, form, **options)

    def names_of(self, name: str, labels: Sequence[bytes], **options: Any) -> None:
        """A column of an enumeration, or of flags: a text for each value; options are those of `number`."""
        options.setdefault("known", self.known(name))
        self.label(self._raw(name), labels, **options)

    def label(self, values: NDArray[Any], labels: Sequence[bytes], **options: Any) -> None:
        """A text for each value; options are ``known`` and ``unknown``."""
        self._core.label(values, labels, **options)

    def texts(self, texts: list[bytes]) -> None:
        """A text for each row."""
        self._core.texts(texts)

    def address(self, style: str, name: str, *, known: NDArray[np.bool_] | None = None) -> None:
        """A column of addresses with the names of what is there.

        `style` is ``"name"`` (``function+0x10``, or ``[file]+0x1010`` where there is no symbol, or nothing),
        ``"location"`` (the address before it) or ``"json"`` (members).
        """
        end = name.removesuffix("ip")
        known = self.known(name) if known is None else known
        # Targets and functions without code have the name of the import that the branch goes through.
        columns = set(self._part.columns)
        origin: tuple[NDArray[Any] | None, NDArray[np.bool_] | None] = (None, None)
        if name == "to_ip" and {"from_ip", "kind"} <= columns:
            origin = self._raw("from_ip"), self._indirect()
        if name == "entry_ip" and {"import_ip", "flags"} <= columns:
            origin = self._raw("import_ip"), np.asarray(self._part["is_import"])
        self._core.address(style, end, self._raw(name), self._raw("space"), known, self._times(), *origin)

    def names(self) -> None:
        """Names of both ends of a branch, if one has a name."""
        ends = (self._raw("from_ip"), self.known("from_ip"), self._raw("to_ip"), self.known("to_ip"))
        self._core.names(*ends, self._indirect(), self._raw("space"), self._times())

    def instruction(self, style: str) -> None:
        """Instructions as text or JSON.

        `style` is ``"text"`` (address, disassembly with the name of a direct branch's target, and name),
        ``"raw"`` (with the bytes, too), ``"json"`` (the disassembly as a string) or ``"json bytes"``.
        """
        columns = map(self._raw, ("ip", "size", "mode", "space", "tsc", "time_known"))
        self._core.instruction(style, *columns)

    def packet(self, *, width: int) -> None:
        """Name and payload, in the manner of ptdump."""
        self._core.packet(*map(self._raw, ("kind", "payload", "payload2", "flags")), width=width)

    def print(
        self,
        notes: Sequence[tuple[int, bytes]] = (),
        shown: NDArray[np.bool_] | None = None,
        *,
        strip: bool = True,
    ) -> None:
        """Print the lines of all rows.

        Parameters
        ----------
        notes : sequence of (int, bytes)
            Lines between them: how many rows come before, in ascending order, and the text.
        shown : numpy.ndarray of bool, optional
            Which rows have a line.
        strip : bool
            Remove blanks at the end of a line.
        """
        self._core.write(byte_output(), notes, shown, strip=strip)

    def lines(self, *, strip: bool = True) -> list[bytes]:
        """The lines of all rows, without their ends."""
        parts: list[bytes] = []
        self._core.write(lambda lines: parts.append(bytes(lines)), strip=strip)
        return b"".join(parts).split(b"\n")[:-1]

    def known(self, name: str) -> NDArray[np.bool_] | None:
        """Which values of a column are known; None: all."""
        known = self._part.known(name)
        return None if known is None or known.all() else known

    def _indirect(self) -> NDArray[np.bool_]:
        """Which rows are indirect branches from known addresses."""
        return indirect_branches(self._raw("kind"), self.known("from_ip"))

    def _constant(self, name: str) -> tuple[int, bool] | None:
        """The value of a column that all rows share, and whether it is known: most parts are one run."""
        runs = self._part.data.runs
        if runs is None or len(runs) != 1 or name not in runs.arrays or name in self._part.data.arrays:
            return None
        schema = schema_of(self._part.name)
        flag = schema.validity.get(name)
        known = flag is None or bool(int(runs.arrays["flags"][0]) & schema.columns[flag].mask)
        return int(runs.arrays[name][0]), known

    def _raw(self, name: str) -> NDArray[Any]:
        part = self._part
        if name in part.data.arrays:  # quicker than to look for it among all columns that a table may have
            return part.data.arrays[name]
        if part.data.runs is not None and name in part.data.runs.arrays:
            if name not in self._spread:
                self._spread[name] = np.ascontiguousarray(part.data.runs.spread(name))
            return self._spread[name]
        return np.asarray(part[name])

    def _times(self) -> _Times | None:
        part = self._part
        if "tsc" not in part.columns:
            return None
        known = part.known("tsc")
        if known is None:
            known = np.ones(len(part), np.bool_)
        return self._raw("tsc"), self._raw("tsc_error"), known
