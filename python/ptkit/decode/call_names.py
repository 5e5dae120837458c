"""The functions among called ones that a name or a pattern is of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.errors import ConfigError, SymbolError
from ptkit.support.text import module_name, plain, shortened

if TYPE_CHECKING:
    from ptkit.decode.scope import Range
    from ptkit.table import Table

__all__ = ["PATTERN", "called_functions", "one_function", "wider_pattern"]

_NEAR = 5
#: Characters that only patterns of names have.
PATTERN = re.compile(r"[*?\[]")


def one_function(
    functions: Table, counts: NDArray[np.int64], name: str, ranges: Sequence[Range]
) -> NDArray[np.intp]:
    """Numbers of the function of a name: the same one in several files, or in several versions, has several.

    Of several functions, it is the one of just this name.

    Parameters and errors are those of `called_functions`.

    Raises
    ------
    ConfigError
        If functions of several names were called; the message has them.
    """
    found = called_functions(functions, counts, name, ranges)
    names = _names(functions[found])
    exact = [one == name for one in names]
    if any(exact):
        return found[exact]
    _check_one(name, list(zip(names, counts[found].tolist(), strict=True)))
    return found


def called_functions(
    functions: Table, counts: NDArray[np.int64], name: str, ranges: Sequence[Range]
) -> NDArray[np.intp]:
    """Numbers of the functions of a name, or of a pattern, that were called.

    They are those that ``symbol=`` selects. Imported and inlined functions have no symbol, and threads none
    where they begin in unknown code: these are known by the name that `functions` has.

    Parameters
    ----------
    functions : Table
        A row for each number.
    counts : numpy.ndarray of int64, shape (functions,)
        Frames of each; 0: it was not called.
    name : str
        The full or short name as `functions` has it, or what ``symbol=`` takes.
    ranges : sequence of Range
        Where symbols of that name lie.

    Raises
    ------
    SymbolError
        If no such function was called; the message has near names.
    """
    called = np.flatnonzero(counts)
    rows = functions[called]
    full = _names(rows)
    short = _core.short_names(full)
    has_address = np.asarray(rows["entry_known"] & ~rows["is_inlined"])
    found = has_address & _within(rows, ranges)
    nameless = ~has_address if ranges else np.ones(len(rows), np.bool_)
    spellings = (name, _core.demangled(name))
    forms = [[one in spellings for one in names] for names in (full, short)]
    forms.append(_with_module(rows, full, name))
    if not found.any():
        forms.append([one.endswith(f"::{name}") for one in short])
    for form in (np.array(one, np.bool_) for one in forms):
        if (form & (found | nameless)).any():
            found |= form & nameless
            break
    if not found.any():
        found = np.array(forms[0], np.bool_)  # code that had this name when it was called
    if not found.any():
        raise SymbolError(f"no function {name!r} was called{_near(name, full, short)}")
    return called[found]


def wider_pattern(pattern: str) -> str:
    """A pattern of names that have, anywhere, what `pattern` says of whole names."""
    return f"*{pattern.strip('*')}*"


def _with_module(functions: Table, names: list[str], name: str) -> list[bool]:
    """Which functions a name with a module is of: ``malloc (libc.so.6)``, ``NTOSKRNL.exe!ExFreePool``."""
    found = []
    if "module" not in functions:
        return [False] * len(names)
    for one, path in zip(names, functions.named("module"), strict=True):
        module = module_name(path or "")
        in_front = [f"{form}!{one}".casefold() for form in (module, module.split(".")[0])]
        found.append(bool(module) and (name == f"{one} ({module})" or name.casefold() in in_front))
    return found


def _near(name: str, full: list[str], short: list[str]) -> str:
    """Functions that were called and have the name in short, or as its end, or a similar one."""
    wider = wider_pattern(name)
    if PATTERN.search(name) and wider != name and any(fnmatchcase(one, wider) for one in short):
        return f"; did you mean {wider!r}?"
    near = [one for one, of in zip(full, short, strict=True) if of == name or of.endswith(f"::{name}")]
    if not near:
        wanted, *among = map(plain, dict.fromkeys([name, *full]))
        near = _core.similar_names(wanted, among, _NEAR)
    listed = " or ".join(repr(shortened(one)) for one in list(dict.fromkeys(near))[:_NEAR])
    return f"; did you mean {listed}?" if listed else ""


def _names(functions: Table) -> list[str]:
    return [name or "[unknown]" for name in functions.named("function_full")]


def _within(functions: Table, ranges: Sequence[Range]) -> NDArray[np.bool_]:
    """Which functions have their entry in one of the ranges."""
    entries, spaces = functions["entry_ip"], functions["space"]
    found = np.zeros(len(functions), np.bool_)
    for first, last, space in ranges:
        inside = (entries >= first) & (entries <= last)
        found |= inside if space is None else inside & (spaces == space)
    return np.asarray(found & functions["entry_known"])


def _check_one(name: str, found: list[tuple[str, int]]) -> None:
    """Refuse several names; those that were called most come first in the message."""
    counts: dict[str, int] = {}
    for one, count in found:
        counts[one] = counts.get(one, 0) + count
    if len(counts) <= 1:
        return
    most = sorted(counts, key=lambda one: -counts[one])
    listed = ", ".join(map(repr, most[:_NEAR]))  # not cut: the ends of overloads tell them apart
    more = f" and {len(most) - _NEAR} more" if len(most) > _NEAR else ""
    raise ConfigError(f"{name!r} is {len(counts):,} functions that were called: give one of {listed}{more}")
