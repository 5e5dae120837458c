"""A file of symbols of any kind: the kind is found by content."""

from __future__ import annotations

import os

from ptkit import _core
from ptkit.errors import FormatError
from ptkit.symbol_lists.found import FoundList, NoSymbols
from ptkit.symbol_lists.gnu_map import read_gnu_map
from ptkit.symbol_lists.json_profile import read_json_profile
from ptkit.symbol_lists.plain import read_plain_list
from ptkit.symbol_lists.segment_map import read_segment_map
from ptkit.symbol_lists.windbg import read_windbg

__all__ = ["find_symbols", "read_symbol_list"]

_KINDS = (
    "the output of nm, a System.map or kallsyms, a map of IDA, Microsoft's linker or GNU ld (-Map), the "
    "output of WinDbg's x or lm, a Volatility ISF or Rekall profile (JSON), a perf-PID.map, or a PDB"
)
_READERS = (read_json_profile, read_gnu_map, read_segment_map, read_windbg, read_plain_list)
_PROGRAMS = (b"\x7fELF", b"MZ")
_HEAD_BYTES = 4096


def _describe(contents: bytes) -> str:
    """Why the file is no list, and what helps."""
    if contents.startswith(_PROGRAMS):
        return "is a program, no list of symbols; give it as an image (--image PATH[@ADDRESS], images=)"
    if contents.startswith(b"Microsoft C/C++ program database 2.00"):
        return (
            "is a PDB of Visual C++ 6 or older, which ptkit does not read; give the output of WinDbg's "
            "`x MODULE!*`"
        )
    kind = _core.describe_content(contents)
    return f"is {kind} and no list of symbols that ptkit knows; give {_KINDS}"


def find_symbols(path: str, contents: bytes) -> FoundList:
    """Read a list that is text.

    Parameters
    ----------
    path : str
        Names the list in errors.
    contents : bytes

    Raises
    ------
    FormatError
        If it is no list, or has no symbols that can be used: says what is wrong, and what to give instead.
    """
    if contents and b"\0" not in contents:
        for read in _READERS:
            try:
                found = read(contents)
            except NoSymbols as error:
                raise FormatError(f"{path}: {error}") from None
            if found is not None:
                return found
    raise FormatError(f"{path}: {_describe(contents)}")


def read_symbol_list(path: str, contents: bytes) -> _core.SymbolList:
    """Read a list for the core, which puts it at its addresses.

    Parameters
    ----------
    path : str
        Names the list in errors; some kinds have the process or the module in its name.
    contents : bytes

    Raises
    ------
    FormatError
        As `find_symbols`.
    """
    name = os.fsencode(path)
    if _core.is_pdb(contents):
        return _core.SymbolList.of_pdb(name, contents)
    found = find_symbols(path, contents)
    return _core.SymbolList(
        name,
        found.kind,
        contents if found.names is None else found.names,
        *found.symbols.columns(),
        modules=found.modules,
        at_run_time=found.at_run_time,
        linked_base=found.linked_base,
        module=found.module,
        guid=found.guid,
        age=found.age,
        segments=found.segments,
    )
