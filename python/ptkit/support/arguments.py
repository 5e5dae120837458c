"""Checks of arguments: numbers of NumPy and of Python are accepted, others are refused by name."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError

__all__ = [
    "LAST_ADDRESS",
    "address_ranges",
    "addresses",
    "chosen",
    "flag",
    "integer",
    "integers",
    "member",
    "names",
    "numbers",
    "several",
]

LAST_ADDRESS = 2**64 - 1
_MOST_RANGES = 4  # ADDRn_A and ADDRn_B


def _bounds(low: int, high: int) -> str:
    end = f"{high}]"
    if high >= 2**31 - 1 and high & (high + 1) == 0:
        end = f"2**{high.bit_length()})"
    elif high >= 2**31 and high & (high - 1) == 0:
        end = f"2**{high.bit_length() - 1}]"
    return f"it must be an integer in [{low}, {end}"


def integer(name: str, value: Any, low: int, high: int, *, floats: bool = False, hint: str = "") -> int:
    """Return an integer of [low, high]; with `floats` also one that is written as a float, as 1e9.

    Raises
    ------
    ConfigError
        If it is another type, or out of range.
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        if floats and isinstance(value, (float, np.floating)) and float(value).is_integer():
            value = int(value)
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise ConfigError(f"{name}={value!r}: {_bounds(low, high)}{hint and '; '}{hint}")
    return number


def integers(name: str, value: Any, low: int, high: int, *, hint: str = "") -> list[int]:
    """Return the integers of a single one, or of any sequence, set, range or array of them.

    Raises
    ------
    ConfigError
        If there are none, or one is no integer of [low, high].
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return [integer(name, value, low, high, hint=hint)]
    found = [integer(name, item, low, high, hint=hint) for item in value]
    if not found:
        raise ConfigError(f"{name}={value!r} selects nothing; leave it out to select everything")
    return found


def flag(name: str, value: Any) -> bool:
    """Return a bool of Python's or NumPy's.

    Raises
    ------
    ConfigError
        If it is another type: 1 is no direction.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise ConfigError(f"{name}={value!r} must be True or False")
    return bool(value)


def addresses(name: str, value: Any) -> NDArray[np.uint64]:
    """Return addresses as an array of one dimension.

    Raises
    ------
    ConfigError
        If there are more dimensions, or one is no integer of [0, 2**64).
    """
    if not hasattr(value, "__array__"):
        return np.array(_listed(name, value), dtype=np.uint64)
    array = np.atleast_1d(np.asarray(value))
    if array.ndim > 1:
        raise ConfigError(f"{name}: an array of {array.ndim} dimensions; give array.ravel()")
    if array.dtype.kind not in "iu":
        return np.array(_listed(name, array.tolist()), dtype=np.uint64)
    if array.dtype.kind == "i" and bool((array < 0).any()):
        raise ConfigError(f"{name}: {int(array.min())} is not in [0, 2**64)")
    return array.astype(np.uint64)


def numbers(value: Any) -> NDArray[Any]:
    """Return values as NumPy has them, but integers on both sides of 2**63 as uint64, not as float64."""
    array = np.asarray(value)
    if array.dtype.kind != "f" or hasattr(value, "__array__") or not isinstance(value, Iterable):
        return array
    items = list(value)
    if all(isinstance(item, (int, np.integer)) and 0 <= item <= LAST_ADDRESS for item in items):
        return np.array([int(item) for item in items], np.uint64)
    return array


def _listed(name: str, value: Any) -> list[int]:
    items = value if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else [value]
    return [integer(name, item, 0, LAST_ADDRESS) for item in items]


def address_ranges(value: Any) -> list[tuple[str, int, int]]:
    """Return address ranges as they were programmed: ("filter" or "stop", first, last).

    Raises
    ------
    ConfigError
        If they are not of this form, or more than a processor has.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ConfigError(f'ranges={value!r} must be a list of ("filter" or "stop", first, last)')
    checked = []
    for item in value:
        if not isinstance(item, tuple) or len(item) != 3 or item[0] not in ("filter", "stop"):
            raise ConfigError(f'ranges: {item!r} is no ("filter" or "stop", first, last)')
        first = integer("ranges: first", item[1], 0, LAST_ADDRESS)
        checked.append((item[0], first, integer("ranges: last", item[2], first, LAST_ADDRESS)))
    if len(checked) > _MOST_RANGES:
        raise ConfigError(f"ranges: {len(checked)} of them; a processor has {_MOST_RANGES} at most")
    return checked


def names(name: str, value: Any) -> list[str]:
    """Return a list of names; a single name is refused, as its letters would be taken for names.

    Raises
    ------
    ConfigError
        If it is no list of strings.
    """
    if isinstance(value, str):
        raise ConfigError(f"{name}={value!r} must be a list of names: {name}=[{value!r}]")
    found = list(value) if isinstance(value, Iterable) else [value]
    if not all(isinstance(item, str) for item in found):
        raise ConfigError(f"{name}={value!r} must be a list of names")
    return [str(item) for item in found]


def several(name: str, value: Any, kinds: type | tuple[type, ...], expected: str) -> list[Any]:
    """Return the values of an argument that takes one value, or a sequence of them.

    Raises
    ------
    ConfigError
        If it is neither; `expected` says what would be.
    """
    items = [value] if isinstance(value, kinds) else value
    if not isinstance(items, Iterable) or isinstance(items, (bytes, bytearray, str, Mapping)):
        raise ConfigError(f"{name}: expected {expected}, found {value!r}")
    items = list(items)
    for item in items:
        if not isinstance(item, kinds):
            raise ConfigError(f"{name}: expected {expected}, found {item!r}")
    return items


def chosen(name: str, value: Any, allowed: tuple[str, ...]) -> list[str]:
    """Return which of some words are given: one, several in a sequence, or as ``"one,other"``.

    Raises
    ------
    ConfigError
        If one is not allowed.
    """
    expected = f"any of {', '.join(allowed)}"
    words = value.split(",") if isinstance(value, str) else value
    found: list[str] = several(name, words, str, expected)
    for one in found:
        if one not in allowed:
            raise ConfigError(f"{name}: expected {expected}, found {one!r}")
    return found


def member(argument: str, enum: type[IntEnum], name: str) -> IntEnum:
    """Return the member of an enumeration by name, in any case.

    Raises
    ------
    ConfigError
        If there is none; the message has names that are near, or all of them.
    """
    found = enum.__members__.get(name.upper())
    if found is not None:
        return found
    near = get_close_matches(name.upper(), enum.__members__)
    hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(enum.__members__)}"
    raise ConfigError(f"{argument}={name!r}: {enum.__name__} has no member of this name; {hint}")
