"""The facade: everything that can be asked of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ptkit import _core
from ptkit import decode as _decode
from ptkit.arguments import LAST_ADDRESS, integer, integers
from ptkit.decode import Query, Settings
from ptkit.errors import ConfigError, SymbolError
from ptkit.info import PacketCounts, StreamInfo, TraceInfo, count_packets, info_of
from ptkit.table import Table, TableContext
from ptkit.trace.names import Names
from ptkit.trace.parts import Parts

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from typing_extensions import Buffer, Unpack

    from ptkit.capture import Recording

    ImageCallback = Callable[[int, int, int], Buffer | None]

__all__ = ["Trace"]

_MAX_INSN = 15
_MOST_CODE = 2**30


class Trace(Parts):
    """A recording: its streams, its code, and its tables.

    Every table method decodes anew; nothing but ``errors`` and ``gaps`` is kept. All take the keyword
    arguments of `ptkit.decode.Query`: ``columns``, ``stream``, ``tid``, ``pid``, ``time``, ``ip``,
    ``symbol``, ``taken``, ``order``, ``threads`` and ``errors``. The ``iter_`` methods give the same rows in
    parts of ``rows`` rows, in bounded memory; with ``reuse=True`` all parts share the same memory, so that a
    part is valid until the next one is asked for.

    Made by `ptkit.open` and `ptkit.record`.

    Attributes
    ----------
    recording : ptkit.capture.Recording or None
        What `ptkit.record` says of the run: exit status, counts; None for other traces.
    """

    def __init__(
        self, bundle: _core.Bundle, settings: Settings, image_callback: ImageCallback | None = None
    ) -> None:
        self._bundle = bundle
        self._session = _core.Session(bundle, image_callback)
        self._settings = settings
        self._info = info_of(bundle, settings.engine)
        self._names = Names(self._session, len(self._info.spaces), [path for path, _ in bundle.files])
        to_ns = None
        if self._info.tsc_hz is not None or self._info.perf_time is not None:
            to_ns = self._session.tsc_to_ns
        self._context = TableContext(tuple(path for path, _ in bundle.files), self._names.symbolize, to_ns)
        self._sides: tuple[Table, Table] | None = None
        self.recording: Recording | None = None

    # What it is.

    @property
    def info(self) -> TraceInfo:
        """Streams, configuration, processor, code and known losses; nothing is decoded for it."""
        return self._info

    @property
    def streams(self) -> tuple[StreamInfo, ...]:
        """One entry per stream: name, size, processor, thread."""
        return self._info.streams

    @property
    def source(self) -> str:
        """Path, or a description of the memory that it came from."""
        return self._info.source

    @property
    def format(self) -> str:
        """Name of the reader that made it."""
        return self._info.format

    def __repr__(self) -> str:
        return f"<ptkit.Trace {self.source!r}: {len(self.streams)} streams, {self._info.bytes:,} bytes>"

    # Tables.

    def _plan(self, table: str, query: Query, **more: Any) -> _decode.Plan:
        return _decode.plan_of(
            self._session,
            self._settings,
            self._context,
            table,
            query,
            stream_count=len(self.streams),
            symbol_ranges=self._symbol_ranges,
            **more,
        )

    def packets(self, **query: Unpack[Query]) -> Table:
        """Every packet, from the first PSB of each stream on.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``offset`` (uint64, bytes), ``size`` (uint32, bytes), ``kind`` (uint8, `ptkit.PacketKind`),
            ``flags`` (uint8, `ptkit.PacketFlag`), ``ip`` (uint64, address, rebuilt; see ``ip_known``),
            ``payload`` and ``payload2`` (uint64, by kind: docs/tables.md), ``tsc`` (uint64, TSC ticks),
            ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8, `ptkit.TimeSource`). A run of PAD is one
            row. Bytes that are no packet are rows of ``.errors``.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, MemoryError
            As for `branches`.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "Packet Definitions"; for times, "Timing".
        """
        return _decode.read(self._plan("packets", query))

    def packet_counts(self, *, stream: int | Sequence[int] | None = None) -> PacketCounts:
        """Packets by kind, from the first PSB of each stream on, without making rows of them.

        Parameters
        ----------
        stream : int or sequence of int, optional
            Only these streams, counted together; None: all.

        Returns
        -------
        PacketCounts
            The same as counting the rows of `packets`, at a few gigabytes per second. ptkit's own, whatever
            the engine.

        Raises
        ------
        ConfigError
            If there is no such stream.
        """
        if stream is None:
            return count_packets(self._session, range(len(self.streams)), sync=True)
        only = integers("stream", stream, 0, len(self.streams) - 1, hint="see trace.streams")
        return count_packets(self._session, only, sync=True)

    def branches(self, **query: Unpack[Query]) -> Table:
        """Every branch, and every conditional that fell through (its ``to_ip`` is the next instruction).

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``from_ip``, ``to_ip`` (uint64, address; see ``from_known``, ``to_known``), ``kind`` (uint8,
            `ptkit.BranchKind`), ``flags`` (uint8, `ptkit.RowFlag`),
            ``tsc`` (uint64, TSC ticks, earliest possible), ``tsc_error`` (uint32, TSC ticks: the true time
            lies in [tsc, tsc + tsc_error]), ``tsc_source`` (uint8, `ptkit.TimeSource`),
            ``offset`` (uint64, stream bytes: the packet that decided it).

        Raises
        ------
        ConfigError, SymbolError, ColumnError
            If an argument is out of range, or there is no such symbol or column.
        DecodeError
            With ``errors="raise"``: the first error.
        MemoryError
            If the columns do not fit; use `iter_branches`.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "TNT Packet", "Return Compression", "Deferred TIPs".
        Times of branches in a TNT packet are wider than those of packets: docs/time.md.
        """
        return _decode.read(self._plan("branches", query))

    def blocks(self, **query: Unpack[Query]) -> Table:
        """Runs of instructions that were executed one after the other, each ended by a branch or an event.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``ip`` (uint64, address of the first instruction), ``size`` (uint32, bytes), ``instructions``
            (uint32), ``mode`` (uint8, bits: 16, 32 or 64), ``flags`` (uint8, `ptkit.RowFlag`),
            ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8,
            `ptkit.TimeSource`), ``offset`` (uint64, stream bytes: the packet that decided how it ends).

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, MemoryError
            As for `branches`.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "TNT Packet", "Mode Packets" (for ``mode`` and
        ``in_tx``). Instructions behind the last packet are not given: they may not have been executed.
        """
        return _decode.read(self._plan("blocks", query))

    def instructions(self, **query: Unpack[Query]) -> Table:
        """Every instruction that was executed.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``ip`` (uint64, address), ``size`` (uint8, bytes), ``cls`` (uint8, `ptkit.InsnClass`), ``mode``
            (uint8, bits: 16, 32 or 64), ``flags`` (uint8, `ptkit.RowFlag`),
            ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8,
            `ptkit.TimeSource`), ``offset`` (uint64, stream bytes: the packet that decided how its block
            ends).

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, MemoryError
            As for `branches`.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "TNT Packet", "Mode Packets".
        """
        return _decode.read(self._plan("instructions", query))

    def events(self, *, ticks: bool = False, **query: Unpack[Query]) -> Table:
        """What is no branch: tracing enabled and disabled, interrupts, transactions, PTWRITE, ...

        Parameters
        ----------
        ticks : bool
            Also a row for every timing packet.
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``kind`` (uint8, `ptkit.EventKind`), ``ip`` (uint64, address; see ``ip_known``), ``payload``,
            ``payload2``, ``payload3`` (uint64, by kind: docs/tables.md), ``flags`` (uint16,
            `ptkit.EventFlag`),
            ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8,
            `ptkit.TimeSource`), ``offset`` (uint64, stream bytes: the packet that told it), ``instruction``
            (uint64, instructions of the stream before it), ``order`` (uint64, place among events, errors
            and gaps of the stream).

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, MemoryError
            As for `branches`.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "Mode Packets", "Event Trace", "PTWRITE", "PEBS",
        "Power Event Tracing".
        """
        return _decode.read(self._plan("events", query, ticks=ticks))

    def edges(self, **query: Unpack[Query]) -> Table:
        """How often control went from where to where; address spaces are never merged.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``from_ip``, ``to_ip`` (uint64, address), ``kind`` (uint8, `ptkit.BranchKind`), ``count``
            (uint64), ``space`` (uint32, index in ``trace.info.spaces``), ordered by space, from, to and
            kind. Branches of which an end is not known are not counted.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, MemoryError
            As for `branches`.

        Notes
        -----
        Counts of the rows of `branches`, in memory that grows with distinct edges only.
        """
        return _decode.read(self._plan("edges", query))

    @property
    def errors(self) -> Table:
        """What could not be decoded, of all streams; decoded when first asked for, then kept.

        Returns
        -------
        Table
            Columns of shape (rows,): ``code`` (uint8, `ptkit.ErrorCode`), ``offset`` (uint64, stream bytes),
            ``ip`` (uint64, address; see ``ip_known``), ``flags`` (uint8, `ptkit.ErrorFlag`), ``argument``,
            ``argument2`` (uint64, by code: docs/tables.md), ``file`` (int32, index in ``trace.info.files``;
            see ``file_known``),
            ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8,
            `ptkit.TimeSource`), ``instruction``, ``order`` (uint64, as for `events`). ``errors.messages()``
            has a sentence with a remedy per row.

        Notes
        -----
        Errors of a trace are never exceptions, unless ``errors="raise"`` was asked for. Intel SDM vol. 3,
        "Intel Processor Trace": "Packet Definitions", "Internal Buffer Overflow".
        """
        return self._side_tables()[0]

    @property
    def gaps(self) -> Table:
        """Where control flow is not known, of all streams; decoded when first asked for, then kept.

        Returns
        -------
        Table
            Columns of shape (rows,): ``cause`` (uint8, `ptkit.GapCause`), ``code`` (uint8,
            `ptkit.ErrorCode`, 0 if no error began it), ``begin``, ``end`` (uint64, stream bytes),
            ``from_ip``, ``to_ip`` (uint64, address; see ``from_known``, ``to_known``), ``lost_bytes``
            (uint64, bytes that are missing from the stream, as far as that is known), ``flags`` (uint8,
            `ptkit.RowFlag`), ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source``
            (uint8, `ptkit.TimeSource`), ``instruction``, ``order`` (uint64, as for `events`).
            ``gaps.messages()`` has
            a sentence per row.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "Internal Buffer Overflow", "TraceStop".
        """
        return self._side_tables()[1]

    def _side_tables(self) -> tuple[Table, Table]:
        if self._sides is None:
            plan = self._plan("errors", Query())
            errors = _decode.read(replace(plan, raises=False))
            assert errors.gaps is not None
            self._sides = errors, errors.gaps
        return self._sides

    # Other people's forms.

    def to_pandas(self, table: str = "branches", **query: Unpack[Query]) -> pandas.DataFrame:
        """Return a table as a pandas DataFrame; see `Table.to_pandas`."""
        return _decode.read(self._plan(self._table(table), query)).to_pandas()

    def to_arrow(self, table: str = "branches", **query: Unpack[Query]) -> pyarrow.Table:
        """Return a table as a pyarrow Table; see `Table.to_arrow`."""
        return _decode.read(self._plan(self._table(table), query)).to_arrow()

    @staticmethod
    def _table(name: str) -> str:
        from ptkit.schema import tables

        if not isinstance(name, str) or name not in tables():
            raise ConfigError(f"there is no table {name!r}; there are {', '.join(tables())}")
        return name

    # Code and names.

    def symbolize(
        self,
        ips: ArrayLike,
        *,
        space: int | ArrayLike | None = None,
        tsc: int | None = None,
        offsets: bool = True,
        modules: bool = False,
    ) -> list[str | None]:
        """Names of addresses.

        Parameters
        ----------
        ips : array_like of uint64, shape (n,)
        space : int or array_like of int, shape (n,), optional
            Address space of all or of each; by default the first one that has a name for an address.
        tsc : int, optional
            Time (TSC ticks); by default the end of the recording, then its start.
        offsets : bool
            ``"main+0x1f"`` instead of ``"main"`` for addresses inside.
        modules : bool
            Where no symbol is known, the file and the offset in it: ``"[sort]+0x4f30"``.

        Returns
        -------
        list of str or None
            None where nothing is known.
        """
        return self._names.symbolize(ips, space, tsc, offsets=offsets, modules=modules)

    def modules(
        self, ips: ArrayLike, *, space: int | ArrayLike | None = None, tsc: int | None = None
    ) -> list[str | None]:
        """Names of the files that addresses were mapped from, without their folders: ``"libc.so.6"``.

        Parameters
        ----------
        ips : array_like of uint64, shape (n,)
        space, tsc : optional
            As for `symbolize`.

        Returns
        -------
        list of str or None
            None where no file is known: code made at run time, or not in the recording.
        """
        return self._names.modules(ips, space, tsc)

    def symbols(self, name: str) -> list[tuple[str, int, int]]:
        """Symbols of a name: (demangled name, address, size in bytes).

        Raises
        ------
        SymbolError
            If there is none; the message has names that are near.
        """
        found = self._lookup(name)
        return list(dict.fromkeys((symbol, address, size) for symbol, address, size, *_ in found))

    def _lookup(self, name: str) -> list[tuple[str, int, int, int, int]]:
        if not isinstance(name, str):
            raise ConfigError(f"symbol={name!r} must be the name of a function")
        name = name.encode(errors="replace").decode()  # surrogates are no text for the core
        found = _core.lookup_symbol(self._session, name)
        if not found:
            near = _core.similar_symbols(self._session, name)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            if not self._bundle.files:
                hint = "; the trace has no files with symbols: give images=[...]"
            raise SymbolError(f"no symbol {name!r}{hint}")
        return found

    def _symbol_ranges(self, name: str) -> list[_decode.Range]:
        ranges: list[_decode.Range] = []
        for _, first, size, _, space in self._lookup(name):
            last = min(first + max(size, 1) - 1, LAST_ADDRESS)
            spaces = [space] if space else self._spaces_that_see(first, last)
            ranges += [(first, last, one) for one in spaces]
        return ranges

    def _spaces_that_see(self, first: int, last: int) -> list[int | None]:
        """Spaces in which nothing of their own hides code of space 0; [None] if that is all of them."""
        hiding = {
            space
            for address, size, _, space, _ in self._bundle.code
            if space and address <= last and first < address + size
        }
        return [space for space in range(len(self._info.spaces)) if space not in hiding] if hiding else [None]

    def code(self, ip: int, size: int, *, space: int | None = None, tsc: int | None = None) -> bytes:
        """Code bytes at an address; shorter than `size` where they are not known further.

        Parameters
        ----------
        ip : int
            Address.
        size : int
            Bytes.
        space, tsc : int, optional
            As for `symbolize`.
        """
        ip = integer("ip", ip, 0, LAST_ADDRESS)
        size = integer("size", size, 0, _MOST_CODE)
        best = b""
        for place in self._names.places(space, tsc):
            found = self._session.read_code(ip, size, *place)
            if len(found) == size:
                return found
            best = max(best, found, key=len)
        return best

    def disassemble(
        self,
        ip: int,
        size: int | None = None,
        *,
        mode: int = 64,
        space: int | None = None,
        tsc: int | None = None,
    ) -> str:
        """Text of the instruction at an address, ``"(bad)"`` if its bytes are not known.

        Parameters
        ----------
        ip : int
            Address.
        size : int, optional
            Bytes of the instruction; found out by default.
        mode : int
            16, 32 or 64.
        space, tsc : int, optional
            As for `symbolize`.
        """
        if mode not in (16, 32, 64):
            raise ConfigError(f"mode={mode!r} is none of 16, 32, 64")
        ip = integer("ip", ip, 0, LAST_ADDRESS)
        if size is not None:
            size = integer("size", size, 1, _MAX_INSN)
        return _core.disassemble(self.code(ip, size or _MAX_INSN, space=space, tsc=tsc), ip, mode)
