"""Lists of symbols that other tools write: their files as text, and the addresses that a trace gives them."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptkit import _core
from ptkit.errors import ConfigError, FormatError, MissingFileError, OutOfMemoryError
from ptkit.support import memory
from ptkit.support.arguments import LAST_ADDRESS, integer
from ptkit.support.inputs import read_regular

if TYPE_CHECKING:
    from typing import TypeAlias

    PathLike: TypeAlias = str | os.PathLike[str]
    #: A path, (path, address of the module), or (path, address, CR3 of the process that has it).
    SymbolItem: TypeAlias = PathLike | tuple[PathLike, int | None] | tuple[PathLike, int | None, int | None]

__all__ = ["SymbolLists"]

_MOST_UNPACKED = 1 << 30
_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\0"


class SymbolLists:
    """Lists that a user gives, read.

    Parameters
    ----------
    symbols : path or sequence, optional
        Paths, ``(path, base)`` or ``(path, base, cr3)``; see `ptkit.open`.

    Raises
    ------
    OpenError, FormatError, ConfigError, OutOfMemoryError
        If a file cannot be read or is no list, an address is out of range, or a file unpacks to too much.
    """

    def __init__(self, symbols: Sequence[SymbolItem] | PathLike | None) -> None:
        items: Any = [] if symbols is None else symbols
        if isinstance(items, (str, os.PathLike)):
            items = [items]
        if isinstance(items, bytes) or not isinstance(items, Sequence):
            raise ConfigError(f"symbols={symbols!r} must be a list of paths, or of (path, base)")
        self._lists = [self._read(item) for item in items]

    @staticmethod
    def _read(item: Any) -> tuple[_core.SymbolList, int | None, int | None]:
        of_tuple = isinstance(item, tuple) and len(item) in (2, 3)
        path, base, cr3 = [*item, None][:3] if of_tuple else (item, None, None)
        if not isinstance(path, (str, os.PathLike)):
            raise ConfigError(f"symbols: {item!r} is neither a path nor (path, base)")
        if base is not None:
            base = integer("symbols: base", base, 0, LAST_ADDRESS)
        if cr3 is not None:
            cr3 = integer("symbols: CR3", cr3, 0, LAST_ADDRESS)
        text = os.fspath(path)
        if not text or "\0" in text:
            raise MissingFileError(f"symbols: {text!r} is no path; give the file of a list")
        from ptkit.symbol_lists import read_symbol_list  # takes a while

        return read_symbol_list(text, _as_text(text, read_regular(text))), base, cr3

    def add_modules(self, bundle: _core.Bundle) -> None:
        """Add the modules that lists name: images find their addresses by them."""
        for symbols, _, _ in self._lists:
            _core.add_modules(bundle, symbols)

    def add_symbols(self, bundle: _core.Bundle) -> None:
        """Add the symbols, where the trace has their modules.

        Raises
        ------
        ConfigError
            If it is not known where the symbols of a list lie.
        """
        for symbols, base, cr3 in self._lists:
            _core.add_symbols(bundle, symbols, base, cr3)


def _as_text(path: str, data: bytes) -> bytes:
    """Contents of a file, unpacked, in UTF-8 or ASCII: Windows' shells write UTF-16."""
    if data.startswith(_GZIP):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as by_gzip:
            data = _unpacked(path, by_gzip)
    elif data.startswith(_XZ):
        with lzma.LZMAFile(io.BytesIO(data)) as by_xz:
            data = _unpacked(path, by_xz)
    if data.startswith(codecs.BOM_UTF16_LE):
        return data.decode("utf-16", "replace").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def _unpacked(path: str, file: gzip.GzipFile | lzma.LZMAFile) -> bytes:
    # The core takes several times the size of a list.
    most = min(_MOST_UNPACKED, memory.free()[0] // 16)
    try:
        data = file.read(most + 1)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise FormatError(f"{path}: cannot be unpacked ({error}); unpack it, or get it again") from None
    if len(data) > most:
        raise OutOfMemoryError(
            f"{path}: unpacks to more than {memory.size_text(most)}",
            "give the symbols of one module or kernel",
        )
    return data
