"""Code locations as users write them: a symbol or an address, in a file or anywhere."""

from __future__ import annotations

import os
from pathlib import Path

from ptkit import _core
from ptkit.errors import ConfigError, PtkitError
from ptkit.support.arguments import LAST_ADDRESS, integer

__all__ = ["NAME", "file_name", "number_or_name", "symbol_range", "unquoted"]

# A symbol, number or file: bare, or in quotes if it has blanks or other signs of the syntax.
NAME = r'(?:"[^"]+"|[^\s,/@#"]+)'


def unquoted(text: str | None) -> str:
    """The word without its quotes; empty if there is none."""
    return (text or "").strip('"')


def number_or_name(text: str) -> int | str:
    """Read a word that may be an address."""
    if text[:1].isdigit():
        try:
            value = int(text, 0)
        except ValueError:
            raise ConfigError(f"{text!r} is neither a number nor the name of a symbol") from None
        return integer("address", value, 0, LAST_ADDRESS)
    return unquoted(text)


def file_name(file: str | os.PathLike[str]) -> str:
    """The file as the system will name it where it is mapped: an absolute path, or a name without folder.

    Raises
    ------
    ConfigError
        If it is a path and there is no such file.
    """
    try:
        text = os.fsdecode(file)
    except TypeError:
        raise ConfigError(f"file: expected a path or a file's name, found {file!r}") from None
    if os.sep not in text:
        return text
    if not Path(text).is_file():
        raise ConfigError(
            f"file: there is no file {text!r}; of a file that comes later give the name without folder"
        )
    return os.path.realpath(text)


def symbol_range(symbol: str, nth: int, file: str) -> tuple[int, int]:
    """Where a function is in its file.

    Parameters
    ----------
    symbol : str
        Its name.
    nth : int
        Which of several of that name, by address, from 1 on; 0: there must be but one.
    file : str
        Path of an ELF file.

    Returns
    -------
    tuple of int
        Offsets in the file of its first and last byte.

    Raises
    ------
    ConfigError
        If there is no such function, or several.
    """
    if os.sep not in file:
        raise ConfigError(f"symbol {symbol!r}: give the path of its file after @, not only {file!r}")
    bundle = _core.Bundle()
    try:
        bundle.add_image(file)
    except PtkitError as error:
        raise ConfigError(f"symbol {symbol!r}: {error}") from None
    session = _core.Session(bundle)
    found = sorted({(address, size) for _, address, size, *_ in _core.lookup_symbol(session, symbol)})
    if not found:
        near = ", ".join(_core.similar_symbols(session, symbol))
        hint = f"; it has {near}" if near else ""
        raise ConfigError(f"symbol {symbol!r}: {file} has none of this name{hint}")
    if nth == 0 and len(found) > 1:
        numbered = ", ".join(f"#{i} at {address:#x}" for i, (address, _) in enumerate(found, 1))
        raise ConfigError(f"symbol {symbol!r}: {file} has {len(found)}: {numbered}; say which one by #N")
    if nth > len(found):
        raise ConfigError(f"symbol {symbol!r}: {file} has no #{nth}, only {len(found)} of this name")
    address, size = found[max(nth, 1) - 1]
    return _offset(session, address, file), _offset(session, address + max(size, 1) - 1, file)


def _offset(session: _core.Session, address: int, file: str) -> int:
    import numpy as np

    files, offsets = _core.name_files(session, np.array([address], np.uint64), np.zeros(1, np.uint32))
    if files[0] < 0:
        raise ConfigError(f"address {address:#x}: {file} has no code there")
    return int(offsets[0])
