"""Addresses of functions and of modules, by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ptkit import _core
from ptkit.decode.call_names import PATTERN, wider_pattern
from ptkit.errors import ConfigError, SymbolError, TraceWarning
from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.text import last_part, module_name, shortened

if TYPE_CHECKING:
    from ptkit.decode import Range
    from ptkit.info import TraceInfo

_LISTED = 5  # modules in a message
_WITH_OFFSET = re.compile(r"(?P<name>.+)\+(?P<offset>0[xX][0-9a-fA-F]+|[0-9]+)")
_GENERATED = re.compile(r"(?P<name>[^!]+)!(?P<offset>0[xX][0-9a-fA-F]+)")  # of a function without a symbol
_OF_MODULE = re.compile(r"(?P<before>[^!]+)!(?P<name>.+)|(?P<printed>.+) \((?P<after>[^()]+)\)")
_THREAD = re.compile(r"thread (?P<tid>[0-9]+)( \(.*\))?")  # of frames without a known function

_Symbol = tuple[str, int, int, int, int]  # name, address, size, file, space
_Code = tuple[int, int, int]  # address, end, space


def _text(name: str) -> str:
    """A name as the core takes it: surrogates are no text."""
    if not isinstance(name, str):
        raise ConfigError(f"symbol={name!r} must be the name of a function")
    return name.encode(errors="replace").decode()


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

    def lookup(self, name: str, *, with_names: bool = True) -> list[_Symbol]:
        """Symbols of a name, or of a pattern, as the core has them; those of patterns without names if asked.

        Raises
        ------
        SymbolError
            If the trace has no such symbol; the message has near names.
        """
        name = _text(name)
        found = self._find(name, with_names)
        if not found and PATTERN.search(name):
            wider = wider_pattern(name)
            is_near = wider != name and _core.match_symbols(self._session, wider, False)
            raise SymbolError(f"no symbol matches {name!r}{f'; did you mean {wider!r}?' if is_near else ''}")
        if not found:
            of_module = _OF_MODULE.fullmatch(name)
            wanted = of_module and (of_module["name"] or of_module["printed"])
            near = _core.similar_symbols(self._session, wanted or name)
            hint = f"; did you mean {', '.join(map(shortened, near))}?" if near else ""
            if not near and _core.has_imports(self._session):
                hint = (
                    "; of imported functions without code the trace has calls alone: ptkit functions "
                    "--imports, functions(imports=True); with their callers: tree --callers, callers()"
                )
            if not self._bundle.files:
                hint = "; the trace has no files with symbols: give images=[...] or symbols=[...]"
            if thread := _THREAD.fullmatch(name):
                hint = f"; it is code of a thread that no symbol names: select by tid {thread['tid']}"
            raise SymbolError(f"no symbol {name!r}{hint}")
        return found

    def of_symbol(self, name: str) -> list[Range]:
        """Addresses that the functions of a name cover; one address of each for ``name+0x10``.

        Raises
        ------
        SymbolError
            If there is no such function, or it ends before that address.
        """
        location = _WITH_OFFSET.fullmatch(_text(name)) or _GENERATED.fullmatch(name)
        if location is not None and not self._find(name, False):
            return self._at(location["name"], int(location["offset"], 0))
        ranges: list[Range] = []
        found = self.lookup(name, with_names=False)
        lists = {file for *_, file, is_module in self._bundle.names if not is_module}
        hiding = self._hiding()
        for _, first, size, file, space in found:
            last = min(first + max(size, 1) - 1, LAST_ADDRESS)
            if space or file in lists:  # code hides no list of symbols
                ranges.append((first, last, space or None))
            else:
                ranges += self._seen(first, last, space, hiding)
        if not ranges:
            raise SymbolError(
                f"no code of symbol {name!r}: {self._path(found[0][3])} has it at {found[0][1]:#x}, where "
                "each address space has code of another file; see trace.mappings()"
            )
        return ranges

    def _find(self, name: str, with_names: bool, files: Sequence[int] = ()) -> list[_Symbol]:
        """Symbols of a name, of a pattern, or of either in a module: ``libc.so.6!malloc``, ``srv2!Srv2*``.

        Names may be as verbs print them, too: ``main (sort)`` of the module ``sort``, and ``main()``.
        """
        found = _core.lookup_symbol(self._session, name, files)
        if not found and PATTERN.search(name):
            found = _core.match_symbols(self._session, name, with_names)
            found = [one for one in found if one[3] in files] if files else found
        if not found and name.endswith("()"):
            return self._find(name.removesuffix("()"), with_names, files)
        of_module = _OF_MODULE.fullmatch(name)
        if found or of_module is None:
            return found
        module, rest = of_module["before"] or of_module["after"], of_module["name"] or of_module["printed"]
        chosen = self._modules(module) or self._modules_by_stem(module)
        chosen = chosen & set(files) if files else chosen
        return self._find(rest, with_names, sorted(chosen)) if chosen else []

    def _at(self, name: str, offset: int) -> list[Range]:
        """The address so many bytes after the begin of functions; an RVA of a module without such a name."""
        bracketed = name.startswith("[") and name.endswith("]")
        symbols = [] if bracketed else self._find(name, False)
        if not symbols:
            module = name[1:-1] if bracketed else name
            if found := self._at_rva(module, offset):
                return found
            if self._modules(module):
                raise SymbolError(f"{name}+{offset:#x}: the file has no code there")
            symbols = self.lookup(name, with_names=False)
        ranges: list[Range] = []
        hiding = self._hiding()
        for _, first, size, _, space in symbols:
            if offset < max(size, 1):
                ranges += self._seen(first + offset, first + offset, space, hiding)
        if not ranges:
            longest = max(size for _, _, size, *_ in symbols)
            raise SymbolError(f"{name}+{offset:#x}: the function has {longest:#x} bytes")
        return ranges

    def _at_rva(self, name: str, rva: int) -> list[Range]:
        """Where modules of a name have an RVA."""
        chosen = self._modules(name)
        columns = _core.mappings(self._session)
        names = ("address", "size", "file", "rva", "space")
        found = [
            (address + (rva - begin), space)
            for address, size, file, begin, space in zip(
                *(columns[one].tolist() for one in names), strict=True
            )
            if file in chosen and begin <= rva < begin + size
        ]
        hiding = self._hiding()
        return [one for ip, space in found for one in self._seen(ip, ip, space, hiding)]

    def of_module(self, name: str) -> list[Range]:
        """Addresses that the files of a name were mapped to.

        Raises
        ------
        ConfigError
            If no code is of such a file; the message has names that are near.
        """
        if in_memory := self._memory(name):
            return in_memory
        if of_source := self._of_source(name):
            return of_source
        chosen = self._modules(name)
        listed = [(*symbol, file) for *symbol, file, is_module in self._bundle.names if is_module]
        if not chosen:
            there_are = dict.fromkeys(forms[1] for forms in self._module_forms().values())
            memory = [one for one, *_ in _core.anon_memory(self._session)]
            raise ConfigError(f"no module {name!r} in this trace{_near(name, there_are, memory)}")
        ranges: list[Range] = []
        hiding = self._hiding()
        for address, size, _, space, file in self._bundle.code:
            if file in chosen and size:
                ranges += self._seen(address, min(address + size - 1, LAST_ADDRESS), space, hiding)
        ranges += [
            (address, min(address + size - 1, LAST_ADDRESS), space or None)
            for address, size, space, file in listed
            if file in chosen and size
        ]
        return ranges

    def _of_source(self, name: str) -> list[Range]:
        """Addresses of JIT code of which the names have a source file after them: ``fib (app.py)``."""
        lists = {file for *_, file, is_module in self._bundle.names if not is_module}
        if not lists or self._modules(name):
            return []
        wanted = _text(last_part(name)).replace("\\", "\\\\")
        found = _core.match_symbols(self._session, f"* ({wanted})", False)
        return [
            (first, min(first + max(size, 1) - 1, LAST_ADDRESS), space or None)
            for _, first, size, file, space in found
            if file in lists
        ]

    def _memory(self, name: str) -> list[Range]:
        """Addresses of memory without a file of a name, such as ``[anon 0x10000000]``, or of a pattern."""
        return [
            (first, last, space or None)
            for one, space, first, last in _core.anon_memory(self._session)
            if name == one
            or (one.startswith("[anon ") and name.startswith("[anon ") and fnmatchcase(one[1:], name[1:]))
        ]

    def _modules(self, name: str) -> set[int]:
        """Indices of the files of a name, or of a pattern, that are mapped or listed."""
        forms = self._module_forms()
        found = {index for index, names in forms.items() if name in names}
        if found or not PATTERN.search(name):
            return found
        return {index for index, names in forms.items() if any(fnmatchcase(one, name) for one in names)}

    def _modules_by_stem(self, stem: str) -> set[int]:
        """Modules by names as debuggers of Windows write them: without the text from the first dot on."""
        of = {index: name.split(".")[0] for index, (_, _, name) in self._module_forms().items()}
        return {index for index, one in of.items() if one.casefold() == stem.casefold()}

    def _module_forms(self) -> dict[int, tuple[str, str, str]]:
        """Path and names of each file that is mapped, or a module of a list."""
        listed = [file for *_, file, is_module in self._bundle.names if is_module]
        mapped = {*(file for *_, file in self._bundle.code), *listed}
        return {
            index: (path, last_part(path), module_name(path))
            for index, (path, _) in enumerate(self._info.files)
            if index in mapped
        }

    def _path(self, file: int) -> str:
        return self._info.files[file][0]

    def _hiding(self) -> list[_Code]:
        """Code of files in address spaces of their own.

        Page dumps have no names: those of the file beneath them hold.
        """
        return [
            (address, address + size, space)
            for address, size, _, space, file in self._bundle.code
            if space and file >= 0
        ]

    def _seen(self, first: int, last: int, space: int, hiding: list[_Code]) -> list[Range]:
        spaces = [space] if space else self._spaces_that_see(first, last, hiding)
        return [(first, last, one) for one in spaces]

    def _spaces_that_see(self, first: int, last: int, hiding: list[_Code]) -> list[int | None]:
        """Spaces in which no file of their own hides code of space 0; [None] if that is all of them."""
        hidden = {space for address, end, space in hiding if address <= last and first < end}
        return [space for space in range(len(self._info.spaces)) if space not in hidden] if hidden else [None]


def differing_images(bundle: _core.Bundle, recorded: int) -> list[TraceWarning]:
    """Say which images lie under page dumps with other code, so that their names may be wrong.

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
    found = []
    for file in range(recorded, len(bundle.files)):
        pages, differing = bundle.compare_with_pages(file)
        if differing:
            image = f"image {bundle.files[file][0]}"
            found.append(_core.make_warning("IMAGE_DIFFERS", [str(differing), str(pages)], image))
    return found


def _near(name: str, modules: dict[str, None], memory: Sequence[str]) -> str:
    """The modules with near names, or the first ones, as the end of a message; `memory`: without a file."""
    if not modules:
        first = f"; it is in {', '.join(memory[:_LISTED])}" if memory else ""
        return f": the trace does not state from which files its code is{first}"
    near = get_close_matches(last_part(name), modules)
    if near:
        return f"; did you mean {' or '.join(map(shortened, near))}?"
    more = f" and {len(modules) - _LISTED} more (see ptkit info)" if len(modules) > _LISTED else ""
    return f": it has {', '.join(map(shortened, list(modules)[:_LISTED]))}{more}"
