"""Addresses of functions and of modules, by name."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from ptkit import _core
from ptkit.arguments import LAST_ADDRESS
from ptkit.errors import ConfigError, SymbolError, TraceWarning
from ptkit.text import last_part, module_name

if TYPE_CHECKING:
    from ptkit.decode import Range
    from ptkit.info import TraceInfo

_LISTED = 5  # modules in a message


class CodeRanges:
    """Where the functions and modules of a trace lie, in which address spaces.

    Parameters
    ----------
    session : _core.Session
    bundle : _core.Bundle
    info : TraceInfo
    """

    def __init__(self, session: _core.Session, bundle: _core.Bundle, info: TraceInfo) -> None:
        self._session = session
        self._bundle = bundle
        self._info = info

    def lookup(self, name: str) -> list[tuple[str, int, int, int, int]]:
        """Symbols of a name, as the core has them.

        Raises
        ------
        SymbolError
            If the trace has no such symbol; the message has near names.
        """
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

    def of_symbol(self, name: str) -> list[Range]:
        """Addresses that the functions of a name cover."""
        ranges: list[Range] = []
        for _, first, size, _, space in self.lookup(name):
            ranges += self._seen(first, min(first + max(size, 1) - 1, LAST_ADDRESS), space)
        return ranges

    def of_module(self, name: str) -> list[Range]:
        """Addresses that the files of a name were mapped to.

        Raises
        ------
        ConfigError
            If no code is of such a file; the message has names that are near.
        """
        mapped = {file for _, _, _, _, file in self._bundle.code if file >= 0}
        names = {
            index: (path, last_part(path), module_name(path))
            for index, (path, _) in enumerate(self._info.files)
            if index in mapped
        }
        chosen = {index for index, forms in names.items() if name in forms}
        if not chosen:
            raise ConfigError(
                f"no module {name!r} in this trace{_near(name, {n[1]: None for n in names.values()})}"
            )
        ranges: list[Range] = []
        for address, size, _, space, file in self._bundle.code:
            if file in chosen and size:
                ranges += self._seen(address, min(address + size - 1, LAST_ADDRESS), space)
        return ranges

    def _seen(self, first: int, last: int, space: int) -> list[Range]:
        spaces = [space] if space else self._spaces_that_see(first, last)
        return [(first, last, one) for one in spaces]

    def _spaces_that_see(self, first: int, last: int) -> list[int | None]:
        """Spaces in which nothing of their own hides code of space 0; [None] if that is all of them."""
        hiding = {
            space
            for address, size, _, space, _ in self._bundle.code
            if space and address <= last and first < address + size
        }
        return [space for space in range(len(self._info.spaces)) if space not in hiding] if hiding else [None]


def covered_images(bundle: _core.Bundle, recorded: int) -> list[TraceWarning]:
    """Say which images' code lies under page dumps, which have no names.

    Parameters
    ----------
    bundle : _core.Bundle
    recorded : int
        Number of files of the recording; later files are images that the user gave.

    Returns
    -------
    list of TraceWarning
        One for each such image.
    """
    if recorded == len(bundle.files):
        return []
    code = bundle.code
    dumps = [(address, size) for address, size, _, space, file in code if space and file < 0]
    covered: dict[int, tuple[int, int]] = {}
    for address, size, _, space, file in code:
        if file < recorded or space or not any(a < address + size and address < a + n for a, n in dumps):
            continue
        first, end = covered.get(file, (address, address + size))
        covered[file] = min(first, address), max(end, address + size)
    return [
        _core.make_warning("IMAGE_COVERED", [f"{first:#x}", f"{end:#x}"], f"image {bundle.files[file][0]}")
        for file, (first, end) in covered.items()
    ]


def _near(name: str, modules: dict[str, None]) -> str:
    """The modules with near names, or the first ones, as the end of a message."""
    if not modules:
        return ": the trace does not say from which files its code is"
    near = get_close_matches(last_part(name), modules)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    more = f" and {len(modules) - _LISTED} more (see ptkit info)" if len(modules) > _LISTED else ""
    return f": it has {', '.join(list(modules)[:_LISTED])}{more}"
