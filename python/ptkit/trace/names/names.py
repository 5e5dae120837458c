"""Names of addresses, each in its address space and at its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, addresses, integer
from ptkit.support.text import bracketed, module_name
from ptkit.table.labels import Labels

if TYPE_CHECKING:
    _Times = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.bool_]]

_LAST_TSC = 2**64 - 2
_NONE = -1  # code of a row without a name, index of no file


class FileLocations(NamedTuple):
    """Files that addresses lie in, and where in them; see `Trace.locate`.

    Attributes
    ----------
    file : numpy.ndarray of object, shape (n,)
        Path as the trace has it (`TraceInfo.files`); None where no file is known.
    rva : numpy.ndarray of uint64, shape (n,)
        Relative virtual address (bytes): the address less the load address of the file. 0 without a file.
    file_offset : numpy.ndarray of uint64, shape (n,)
        Offset in the file (bytes). 0 without a file.
    """

    file: NDArray[Any]
    rva: NDArray[np.uint64]
    file_offset: NDArray[np.uint64]


class SourceLines(NamedTuple):
    """Lines of source code that addresses come from; see `Trace.lines`.

    Attributes
    ----------
    file : numpy.ndarray of object, shape (n,)
        Path as the compiler recorded it; None where no line is known.
    line : numpy.ndarray of uint32, shape (n,)
        Line, from 1. 0 for code that the compiler gives no line of the file, and without a file.
    """

    file: NDArray[Any]
    line: NDArray[np.uint32]


class SourceFrame(NamedTuple):
    """A function at an address, or an inlined call of one; see `Trace.inlines`.

    Attributes
    ----------
    function : str or None
        Name, demangled; None where it is not known.
    file : str or None
        Path as the compiler recorded it; None where it is not known.
    line : int
        Line: of the address in the innermost function, of the inlined call in the others. 0 where it is not
        known.
    """

    function: str | None
    file: str | None
    line: int


class Names:
    """The symbols and files of a trace."""

    def __init__(
        self,
        session: _core.Session,
        spaces: int,
        files: Sequence[str],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._session = session
        self._look = look  # warns of debug files that were used and do not fit
        self._spaces = spaces
        #: Spaces with code or lists of symbols of their own. The others have what all spaces have: that of
        #: space 0, which is one of these then.
        self.distinct_spaces = session.own_spaces
        self.has_lists = session.has_lists
        self._paths = list(files)
        #: Names of the trace's files, without folders, by index.
        self.file_modules = [*map(module_name, files)]
        # Numbers of modules are those of files, and after these, of memory that has code of no file.
        modules = [*self.file_modules, *(name for name, *_ in _core.anon_memory(session))]
        self._modules = list(dict.fromkeys(modules))
        codes = {module: code for code, module in enumerate(self._modules)}
        self._first_memory = len(dict.fromkeys(self.file_modules))
        self._module_of = np.array([*(codes[module] for module in modules), _NONE], np.int32)

    def spaces_and_times(self, space: int | None, tsc: int | None) -> Iterator[tuple[int, int]]:
        """Pairs of address space and time to look in, in order."""
        if space is not None:
            space = self._space(space)
        if tsc is not None:
            tsc = self._tsc(tsc)
        for time in (_LAST_TSC, 0) if tsc is None else (tsc,):
            for index in range(self._spaces) if space is None else (space,):
                yield index, time

    def name_rows(
        self,
        subject: str,
        ips: NDArray[np.uint64],
        spaces: NDArray[np.uint32],
        known: NDArray[np.bool_] | None = None,
        times: _Times | None = None,
        offsets: bool = True,
    ) -> tuple[Labels, NDArray[np.uint64]]:
        """Name the code of rows: what each address space has at the time of the row.

        Parameters
        ----------
        subject : str
            ``"symbol"``, ``"module"``, ``"file"``: as module, with offsets in the file; or
            ``"import"``: of branches by where they come from, the function of the import slot that they read;
            ``"import_module"``: the module that the slot says has it.
        ips, spaces : numpy.ndarray of uint64 and uint32, shape (rows,)
        known : numpy.ndarray of bool, shape (rows,), optional
            Rows that have an address; None: all.
        times : tuple of numpy.ndarray of uint64, uint32 and bool, shape (rows,), optional
            ``tsc``, ``tsc_error`` (TSC ticks) and whether they are known. None: the code at the end of the
            recording, or at its start where nothing is mapped then.
        offsets : bool
            Also return offsets.

        Returns
        -------
        Labels
            Names.
        numpy.ndarray of uint64, shape (rows,) or (0,)
            Bytes from the begin of a symbol, from the load address of a module (RVA), or from the begin of a
            file.
        """
        if subject in ("import", "import_module") and not _core.has_imports(self._session):
            return Labels(np.full(len(ips), _NONE, np.int32), ()), np.zeros(0, np.uint64)
        if subject in ("symbol", "import", "import_module"):
            codes, in_symbol, names = _core.name_symbols(
                self._session,
                ips,
                spaces,
                known,
                times,
                offsets,
                subject != "symbol",
                subject == "import_module",
            )
            self._look()
            return Labels(codes, names), in_symbol
        files, in_file = _core.name_files(
            self._session, ips, spaces, known, times, offsets, subject == "module"
        )
        return Labels(self._module_of[files], self._modules), in_file

    def is_memory(self, modules: Labels) -> NDArray[np.bool_]:
        """Which rows of labels of `name_rows` are code of memory without a file."""
        return np.asarray(modules.codes >= self._first_memory)

    def symbolize(
        self,
        ips: ArrayLike,
        space: int | ArrayLike | None = None,
        tsc: int | None = None,
        *,
        offsets: bool = True,
        modules: bool = False,
        lines: bool = False,
    ) -> list[str | None]:
        """See `Trace.symbolize`."""
        texts = _Texts(self, tsc, "symbol", offsets, modules).of(ips, space)
        if not lines:
            return texts
        codes, found, files = self._lines(ips, space, tsc)
        sources = [*map(module_name, files), None]
        known = zip(texts, codes.tolist(), found.tolist(), strict=True)
        return [
            text if (source := sources[code]) is None else f"{text or '?'} ({source}:{line})"
            for text, code, line in known
        ]

    def name_inlined(
        self,
        ips: NDArray[np.uint64],
        spaces: NDArray[np.uint32],
        known: NDArray[np.bool_] | None,
        times: _Times | None,
        levels: NDArray[np.uint8],
    ) -> Labels:
        """Name the functions of inlined calls, as `name_rows` names functions.

        `levels`, of shape (rows,), says which of the calls that an address is in, from the outside; 0: none.
        """
        codes, names = _core.name_inlined(self._session, ips, spaces, known, times, levels)
        self._look()
        return Labels(codes, names)

    def name_lines(
        self, ips: NDArray[np.uint64], spaces: NDArray[np.uint32]
    ) -> tuple[Labels, NDArray[np.uint32]]:
        """Return the source files and lines of addresses, as the code is at the end of the recording."""
        codes, lines, files = _core.name_lines(self._session, ips, spaces, None)
        self._look()
        return Labels(codes, files), lines.astype(np.uint32)

    def lines(
        self, ips: ArrayLike, space: int | ArrayLike | None = None, tsc: int | None = None
    ) -> SourceLines:
        """See `Trace.lines`."""
        codes, lines, files = self._lines(ips, space, tsc)
        return SourceLines(np.array([*files, None], object)[codes], lines.astype(np.uint32))

    def _lines(
        self, ips: ArrayLike, space: int | ArrayLike | None, tsc: int | None
    ) -> tuple[NDArray[np.int32], NDArray[np.uint64], list[str]]:
        """Codes of files, lines, and the files; code -1: not known."""
        where = addresses("ips", ips)
        texts = _Texts(self, tsc, "module", True, False)
        spaces, times = texts.spaces_of(where, space), texts.times_of(len(where))
        order = np.argsort(where) if (where[1:] < where[:-1]).any() else None  # neighbours have near lines
        if order is not None:
            where, spaces = where[order], spaces[order]
        codes, lines, files = _core.name_lines(self._session, where, spaces, times)
        if order is not None:
            codes[order], lines[order] = codes.copy(), lines.copy()
        self._look()
        return codes, lines, files

    def inlines(self, ip: int, space: int | None = None, tsc: int | None = None) -> list[SourceFrame]:
        """See `Trace.inlines`."""
        where = addresses("ip", [integer("ip", ip, 0, LAST_ADDRESS)])
        texts = _Texts(self, tsc, "module", True, False)
        frames = _core.source_frames(self._session, where, texts.spaces_of(where, space), texts.times_of(1))
        self._look()
        return [SourceFrame(function or None, file or None, line) for function, file, line in frames]

    def modules(
        self, ips: ArrayLike, space: int | ArrayLike | None = None, tsc: int | None = None
    ) -> list[str | None]:
        """See `Trace.modules`."""
        return _Texts(self, tsc, "module", False, False).of(ips, space)

    def locate(
        self, ips: ArrayLike, space: int | ArrayLike | None = None, tsc: int | None = None
    ) -> FileLocations:
        """See `Trace.locate`."""
        where = addresses("ips", ips)
        texts = _Texts(self, tsc, "module", True, False)
        spaces = texts.spaces_of(where, space)
        times = texts.times_of(len(where))
        rva, offsets = (
            _core.name_files(self._session, where, spaces, None, times, True, of_load)
            for of_load in (True, False)
        )
        in_file = rva[0] < len(self._paths)  # memory without a file has no offset in one
        paths = np.array([*self._paths, None], object)
        files = np.where(in_file, rva[0], _NONE)
        return FileLocations(paths[files], np.where(in_file, rva[1], 0), np.where(in_file, offsets[1], 0))

    def _space(self, space: int) -> int:
        return integer("space", space, 0, self._spaces - 1, hint="see trace.info.spaces")

    def _tsc(self, tsc: int) -> int:
        return integer("tsc", tsc, 0, LAST_ADDRESS)


class _Texts:
    """Names of addresses as texts, with or without offsets and modules.

    Parameters
    ----------
    names : Names
    tsc : int or None
        Time (TSC ticks) of all addresses.
    subject : str
        ``"symbol"`` or ``"module"``.
    offsets, modules : bool
        Of `Trace.symbolize`.
    """

    def __init__(self, names: Names, tsc: int | None, subject: str, offsets: bool, modules: bool) -> None:
        self._names = names
        self._tsc = None if tsc is None else names._tsc(tsc)
        self._subject = subject
        self._offsets = offsets
        self._modules = modules

    def of(self, ips: ArrayLike, space: int | ArrayLike | None) -> list[str | None]:
        """Name addresses in a space, in one space each, or in all spaces that have code there."""
        where = addresses("ips", ips)
        unique, inverse = np.unique(where, return_inverse=True)
        if space is None:
            found = self._agreed(unique)
            return [found[i] for i in inverse.tolist()]
        if np.ndim(space) == 0:
            found = self._in_space(unique, self._names._space(cast("int", space)))
            return [found[i] for i in inverse.tolist()]
        spaces = self._checked(space, len(where))
        texts: list[str | None] = [None] * len(where)
        for one in np.unique(spaces).tolist():
            rows = np.flatnonzero(spaces == one)
            unique, inverse = np.unique(where[rows], return_inverse=True)
            found = self._in_space(unique, self._names._space(one))
            for row, i in zip(rows.tolist(), inverse.tolist(), strict=True):
                texts[row] = found[i]
        return texts

    def spaces_of(self, ips: NDArray[np.uint64], space: int | ArrayLike | None) -> NDArray[np.uint32]:
        """The space of each address: as it is given, or the first one that has code there.

        Raises
        ------
        ConfigError
            If spaces have different code at an address, and none is given.
        """
        distinct = self._names.distinct_spaces
        if space is None and len(distinct) <= 1:
            return np.full(len(ips), distinct[0] if distinct else 0, np.uint32)
        if space is None:
            unique, inverse = np.unique(ips, return_inverse=True)
            return np.maximum(self._owners(unique), 0).astype(np.uint32)[inverse]
        if np.ndim(space) == 0:
            return np.full(len(ips), self._names._space(cast("int", space)), np.uint32)
        return self._checked(space, len(ips)).astype(np.uint32)

    def _checked(self, space: ArrayLike, rows: int) -> NDArray[np.uint64]:
        """One space that exists for each of so many addresses."""
        spaces = addresses("space", space)
        if len(spaces) != rows:
            raise ConfigError(f"space: {len(spaces)} spaces do not fit {rows} addresses")
        if rows:
            self._names._space(int(spaces.max()))
        return spaces

    def times_of(self, rows: int) -> _Times | None:
        """The time of so many addresses, as the core takes it."""
        if self._tsc is None:
            return None
        return np.full(rows, self._tsc, np.uint64), np.zeros(rows, np.uint32), np.ones(rows, np.bool_)

    def _rows(self, subject: str, ips: NDArray[np.uint64], space: int) -> tuple[Labels, NDArray[np.uint64]]:
        rows = len(ips)
        spaces = np.full(rows, space, np.uint32)
        return self._names.name_rows(subject, ips, spaces, None, self.times_of(rows))

    def _in_space(self, ips: NDArray[np.uint64], space: int) -> list[str | None]:
        labels, distances = self._rows(self._subject, ips, space)
        texts: list[str | None] = [
            f"{name}+{offset:#x}" if name and offset and self._offsets else name
            for name, offset in zip(labels.texts().tolist(), distances.tolist(), strict=True)
        ]
        nameless = np.flatnonzero(~labels.known())
        if self._modules and len(nameless):
            labels, distances = self._rows("module", ips[nameless], space)
            files = zip(nameless.tolist(), labels.texts().tolist(), distances.tolist(), strict=True)
            for row, name, offset in files:
                if name is not None:
                    texts[row] = _core.address_in_module(name, offset) if self._offsets else bracketed(name)
        return texts

    def _agreed(self, ips: NDArray[np.uint64]) -> list[str | None]:
        """Name addresses for which all spaces that have code there have the same name."""
        owner = self._owners(ips)
        texts: list[str | None] = [None] * len(ips)
        for space in np.unique(owner[owner != _NONE]).tolist():
            rows = np.flatnonzero(owner == space)
            for row, text in zip(rows.tolist(), self._in_space(ips[rows], space), strict=True):
                texts[row] = text
        return texts

    def _owners(self, ips: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The first space that has code at each address; all others have the same name for it."""
        owner = np.full(len(ips), _NONE, np.int64)  # the first space that has code at the address
        files, rvas = np.full(len(ips), _NONE, np.int32), np.zeros(len(ips), np.uint64)
        for space in self._names.distinct_spaces:
            labels, offsets = self._rows("module", ips, space)
            in_file = labels.known() & ~self._names.is_memory(labels)
            mapped = labels.known()
            rest = np.flatnonzero(~mapped)
            if len(rest) and self._names.has_lists:  # which name code of no file
                mapped[rest] = self._rows("symbol", ips[rest], space)[0].known()
            differs = (labels.codes != files) | (offsets != rvas) | ~in_file
            other = mapped & (owner != _NONE) & differs
            self._compare(ips, owner, np.flatnonzero(other), space)
            new = mapped & (owner == _NONE)
            owner[new], files[new], rvas[new] = space, labels.codes[new], offsets[new]
        return owner

    def _compare(
        self, ips: NDArray[np.uint64], owner: NDArray[np.int64], rows: NDArray[np.intp], space: int
    ) -> None:
        """Raise ConfigError if a space has other names than the first one that has code at an address."""
        for one in np.unique(owner[rows]).tolist():
            same = ips[rows[owner[rows] == one]]
            pairs = zip(same.tolist(), self._in_space(same, one), self._in_space(same, space), strict=True)
            for ip, there, here in pairs:
                if there != here:
                    self._disagree(ip, {one: there, space: here})

    def _disagree(self, ip: int, found: dict[int, str | None]) -> NoReturn:
        whole = _Texts(self._names, self._tsc, "symbol", True, True)
        texts = []
        for space, text in found.items():
            text = text or whole._in_space(np.array([ip], np.uint64), space)[0]
            texts.append(f"{text} in address space {space}")
        column = self._subject
        raise ConfigError(
            f"ips: {ip:#x} is {' and '.join(texts)}: give the space of each address (space=table['space']), "
            f"or take the names of the table's rows (table['{column}'], table['from_{column}'])"
        )
