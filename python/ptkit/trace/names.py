"""Names of addresses, in whichever space and at whichever time they have one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ptkit import _core
from ptkit.arguments import LAST_ADDRESS, addresses, integer
from ptkit.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    _Way = tuple[Callable[..., Sequence[Any]], Callable[[Any], str]]

_LAST_TSC = 2**64 - 2


class Names:
    """The symbols and files of a trace."""

    def __init__(self, session: _core.Session, spaces: int, files: Sequence[str]) -> None:
        self._session = session
        self._spaces = spaces
        self._modules = [PurePath(path).name.strip("[]") or path for path in files]

    def places(self, space: int | None, tsc: int | None) -> Iterator[tuple[int, int]]:
        """Spaces and times to look in, in order."""
        if space is not None:
            space = integer("space", space, 0, self._spaces - 1, hint="see trace.info.spaces")
        if tsc is not None:
            tsc = integer("tsc", tsc, 0, LAST_ADDRESS)
        for time in (_LAST_TSC, 0) if tsc is None else (tsc,):
            for index in range(self._spaces) if space is None else (space,):
                yield index, time

    def symbolize(
        self,
        ips: ArrayLike,
        space: int | ArrayLike | None = None,
        tsc: int | None = None,
        *,
        offsets: bool = True,
        modules: bool = False,
    ) -> list[str | None]:
        """See `Trace.symbolize`."""

        def symbol(found: tuple[str, int, int]) -> str:
            name, offset, _ = found
            return f"{name}+{offset:#x}" if offset and offsets else name

        def module(found: tuple[int, int]) -> str:
            file, offset = found
            return f"[{self._modules[file]}]+{offset:#x}" if offsets else f"[{self._modules[file]}]"

        ways: list[_Way] = [(_core.find_symbols, symbol)]
        if modules:
            ways.append((_core.find_files, module))
        return self._named(ips, space, tsc, ways)

    def modules(
        self, ips: ArrayLike, space: int | ArrayLike | None = None, tsc: int | None = None
    ) -> list[str | None]:
        """See `Trace.modules`."""
        return self._named(ips, space, tsc, [(_core.find_files, lambda found: self._modules[found[0]])])

    def _named(
        self, ips: ArrayLike, space: int | ArrayLike | None, tsc: int | None, ways: Sequence[_Way]
    ) -> list[str | None]:
        """Name addresses in the first way that knows them."""
        where = addresses("ips", ips)
        if space is None or np.ndim(space) == 0:
            return self._named_in(where, cast("int | None", space), tsc, ways)
        spaces = addresses("space", space)
        if len(spaces) != len(where):
            raise ConfigError(f"space: {len(spaces)} spaces do not fit {len(where)} addresses")
        names: list[str | None] = [None] * len(where)
        for one in np.unique(spaces).tolist():
            rows = np.flatnonzero(spaces == one)
            found = self._named_in(where[rows], one, tsc, ways)
            for row, name in zip(rows.tolist(), found, strict=True):
                names[row] = name
        return names

    def _named_in(
        self, ips: NDArray[np.uint64], space: int | None, tsc: int | None, ways: Sequence[_Way]
    ) -> list[str | None]:
        unique, inverse = np.unique(ips, return_inverse=True)
        names: list[str | None] = [None] * len(unique)
        for find, text in ways:
            self._fill(names, unique, self.places(space, tsc), find, text)
        return [names[i] for i in inverse]

    def _fill(
        self,
        names: list[str | None],
        addresses: NDArray[np.uint64],
        places: Iterator[tuple[int, int]],
        find: Callable[..., Sequence[Any]],
        text: Callable[[Any], str],
    ) -> None:
        """Name what has no name yet."""
        missing = np.array([i for i, name in enumerate(names) if name is None], dtype=np.intp)
        for place in places:
            if not len(missing):
                return
            for i, found in zip(missing, find(self._session, addresses[missing], *place), strict=True):
                if found is not None:
                    names[i] = text(found)
            missing = np.array([i for i in missing if names[i] is None], dtype=np.intp)
