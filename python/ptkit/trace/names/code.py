"""Code of a trace, and names of its addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, integer
from ptkit.trace.names.mappings import mappings_table

if TYPE_CHECKING:
    from ptkit.table import Table
    from ptkit.trace.names.names import FileLocations, SourceFrame, SourceLines
    from ptkit.trace.open_parts import OpenParts

__all__ = ["Code"]

_MAX_INSN = 15
_MOST_CODE = 2**30


class Code:
    """Methods of `Trace` about code and addresses, without decoding."""

    _open: OpenParts

    def symbolize(
        self,
        ips: ArrayLike,
        *,
        space: int | ArrayLike | None = None,
        tsc: int | None = None,
        offsets: bool = True,
        modules: bool = False,
        lines: bool = False,
    ) -> list[str | None]:
        """Names of addresses.

        Rows of tables have their names in columns of their own: ``table["from_symbol"]``; see `ptkit.Table`.

        Parameters
        ----------
        ips : array_like of uint64, shape (n,)
        space : int or array_like of int, shape (n,), optional
            Address space of all or of each, such as ``table["space"]``. It may be left out where all
            address spaces that have code at an address have the same name for it.
        tsc : int, optional
            Time (TSC ticks); by default the end of the recording, then its start.
        offsets : bool
            ``"main+0x1f"`` instead of ``"main"`` for addresses inside.
        modules : bool
            Where no symbol is known, the file and the RVA: ``"[sort]+0x4f30"``; see `locate`.
        lines : bool
            The source line after the name, where it is known: ``"main+0x1f (main.c:42)"``; see `lines`.

        Returns
        -------
        list of str or None
            None where nothing is known.

        Raises
        ------
        ConfigError
            If address spaces have different names for an address and `space` is not given.
        """
        return self._open.names.symbolize(ips, space, tsc, offsets=offsets, modules=modules, lines=lines)

    def lines(
        self, ips: ArrayLike, *, space: int | ArrayLike | None = None, tsc: int | None = None
    ) -> SourceLines:
        """Lines of source code that addresses come from.

        Parameters
        ----------
        ips : array_like of uint64, shape (n,)
        space, tsc : optional
            As for `symbolize`.

        Returns
        -------
        SourceLines
            Arrays of n elements: ``file`` (path or None) and ``line``.

        Raises
        ------
        ConfigError
            As for `symbolize`.

        Notes
        -----
        Lines come from the DWARF (versions 2 to 5) of the file that the address was mapped from: of the file
        at its path, if that has the recorded build-id, or of its contents in the recording. Those of a PE
        file come from its PDB, which `debug_path` names. What of it is needed is read once in a process. See
        docs/source-lines.md.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> edges = trace.edges(columns=["to_ip", "space"])
        >>> lines = trace.lines(edges["to_ip"], space=edges["space"])
        >>> len(lines.file) == len(lines.line) == len(edges)
        True
        """
        return self._open.names.lines(ips, space, tsc)

    def inlines(self, ip: int, *, space: int | None = None, tsc: int | None = None) -> list[SourceFrame]:
        """Functions that the code at an address belongs to: calls that were inlined, and what they are in.

        Parameters
        ----------
        ip : int
            Address.
        space, tsc : int, optional
            As for `symbolize`.

        Returns
        -------
        list of SourceFrame
            ``function``, ``file`` and ``line``, the innermost function first. The last one is the function
            that the code was compiled into. Without debug information that one alone, with its name alone,
            if that is known.

        Raises
        ------
        ConfigError
            As for `symbolize`.
        """
        return self._open.names.inlines(ip, space, tsc)

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
            Memory that has code of no file is called by its begin: ``"[anon 0x10000000]"``. None where the
            recording has no code.

        Raises
        ------
        ConfigError
            As for `symbolize`.
        """
        return self._open.names.modules(ips, space, tsc)

    def locate(
        self, ips: ArrayLike, *, space: int | ArrayLike | None = None, tsc: int | None = None
    ) -> FileLocations:
        """Files that addresses were mapped from, and where in them.

        Parameters
        ----------
        ips : array_like of uint64, shape (n,)
        space, tsc : optional
            As for `symbolize`.

        Returns
        -------
        FileLocations
            Arrays of n elements: ``file`` (path or None), ``rva`` (the address less the load address of the
            file, as IDA, Ghidra, WinDbg and addr2line count) and ``file_offset``.

        Raises
        ------
        ConfigError
            As for `symbolize`.

        Notes
        -----
        The RVA comes from the segments of the ELF file, or the sections of the PE file. If the recording has
        no such file, it counts from the mapping of the file's begin; without one, it is the offset in the
        file.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> edges = trace.edges(columns=["to_ip", "space"])
        >>> found = trace.locate(edges["to_ip"], space=edges["space"])
        >>> any(file.endswith("libc.so.6") for file in found.file if file)
        True
        """
        return self._open.names.locate(ips, space, tsc)

    def mappings(self) -> Table:
        """Where files and other code lie in memory, in which address space and when.

        Returns
        -------
        Table
            Ordered by space and address. Columns ``address`` (uint64), ``size`` (uint64, bytes), ``file``
            (int32, index into ``trace.info.files``), ``file_offset`` and ``rva`` (uint64, bytes; see
            `locate`), ``space`` (uint32; 0: all address spaces), ``tsc_from`` and ``tsc_to`` (uint64, TSC
            ticks: mapped from then on, until then) and ``flags`` (uint8; says what is known). ``module`` and
            ``path`` name the file, ``module`` memory without a file, too (``"[anon 0x10000000]"``).

        Notes
        -----
        Adjacent and overlapping parts of a file with one load address are one row. Where rows of one space
        and time overlap, the recording does not say which code is seen: a later region of code hides earlier
        ones.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> "libc.so.6" in trace.mappings()["module"]
        True
        """
        return mappings_table(self._open.opened.session, self._open.context)

    def symbols(self, name: str) -> list[tuple[str, int, int]]:
        """Symbols of a name, or of a pattern such as ``mem*``: (demangled name, address, size in bytes).

        Raises
        ------
        SymbolError
            If the trace has no such symbol; the message has near names.
        """
        found = self._open.ranges.lookup(name)
        return list(dict.fromkeys((symbol, address, size) for symbol, address, size, *_ in found))

    def code(self, ip: int, size: int, *, space: int | None = None, tsc: int | None = None) -> bytes:
        """Code bytes at an address; shorter than `size` where they are not known further.

        Parameters
        ----------
        ip : int
            Address.
        size : int
            Bytes.
        space : int, optional
            Address space; by default the first one that has all the bytes.
        tsc : int, optional
            As for `symbolize`.
        """
        ip = integer("ip", ip, 0, LAST_ADDRESS)
        size = integer("size", size, 0, _MOST_CODE)
        best = b""
        for where in self._open.names.spaces_and_times(space, tsc):
            found = self._open.opened.session.read_code(ip, size, *where)
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
            As for `code`.
        """
        if mode not in (16, 32, 64):
            raise ConfigError(f"mode={mode!r} is not one of 16, 32, 64")
        ip = integer("ip", ip, 0, LAST_ADDRESS)
        if size is not None:
            size = integer("size", size, 1, _MAX_INSN)
        code = self.code(ip, size or _MAX_INSN, space=space, tsc=tsc)
        return _core.disassemble(code, ip, mode, self._open.described.cs_base)
