"""The table of recording options (``record_options.def``): its rows, and how a value is read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ptkit import _core
from ptkit.capture.filters import filters_of
from ptkit.capture.sizes import size_of
from ptkit.capture.systems import platform
from ptkit.capture.triggers import triggers_of
from ptkit.errors import ConfigError
from ptkit.support.arguments import chosen, flag, integer, several

__all__ = ["OptionRow", "default_timing", "option_rows", "read_option", "seconds_range"]


@dataclass(frozen=True)
class OptionRow:
    """One option. ``record_options.def`` describes the columns."""

    name: str
    kind: str
    default: str
    least: int
    most: int
    unit: str
    choices: str
    back_ends: list[str]
    systems: list[str]
    flags: str
    metavar: str
    section: str
    rare: bool
    help: str
    details: str

    @property
    def is_on(self) -> bool:
        """Whether a flag is true by default."""
        return self.default == "true"


@functools.lru_cache(maxsize=1)
def option_rows() -> dict[str, OptionRow]:
    """All options, by name."""
    return {row["name"]: OptionRow(**row) for row in _core.record_options()}


def default_timing(backend: str) -> tuple[tuple[str, ...], int]:
    """The timing packets and the MTC period that a back end uses if they are not given."""
    timing, period = _core.default_timing(backend)
    return tuple(timing), period


def seconds_range(row: OptionRow) -> str:
    """The range of a duration: ``0.001 to 10`` seconds."""
    return f"{row.least / 1000:g} to {row.most // 1000}"


def _flag(row: OptionRow, value: Any) -> bool | None:
    given = flag(row.name, value)
    return None if given == row.is_on else given


def _number(row: OptionRow, value: Any) -> int:
    return integer(row.name, value, row.least, row.most)


def _power_of_two(row: OptionRow, value: Any) -> int:
    number = _number(row, value)
    if number & (number - 1):
        raise ConfigError(
            f"{row.name}: expected a power of two from {row.least} to {row.most} {row.unit}, found {number}"
        )
    return number


def _milliseconds(row: OptionRow, value: Any) -> int:
    number = not isinstance(value, bool) and isinstance(value, int | float)
    if not number or not row.least <= value * 1000 <= row.most:
        expected = f"a number from {seconds_range(row)}"
        raise ConfigError(f"{row.name}: expected {expected}, found {value!r}")
    return round(float(value) * 1000)


def _text(row: OptionRow, value: Any) -> str:
    if not isinstance(value, str) or not value.isascii() or "\0" in value:
        raise ConfigError(f"{row.name}: expected ASCII text: {row.help}, found {value!r}")
    return value


def _choice(row: OptionRow, value: Any) -> str:
    names = row.choices.split(",")
    if value not in names:
        raise ConfigError(f"{row.name}: expected one of {', '.join(names)}, found {value!r}")
    return str(value)


def _names(row: OptionRow, value: Any) -> list[str]:
    found = chosen(row.name, value, tuple(row.choices.split(",")))
    return [name for name in found if name != "none"]


def _cpus(row: OptionRow, value: Any) -> str | list[int]:
    if isinstance(value, str) and value == "all":
        return value
    numbers = [value] if isinstance(value, int) else value
    if isinstance(value, str) or not isinstance(numbers, Iterable):
        raise ConfigError(f"{row.name}: expected 'all' or numbers, found {value!r}")
    found = sorted({_number(row, number) for number in numbers})
    if not found:
        raise ConfigError(f"{row.name}: expected 'all' or numbers, found none")
    return found


def _branches(row: OptionRow, value: Any) -> str | None:
    if isinstance(value, bool):
        return "any" if value else None
    expected = "kinds of branches such as 'any_call'"
    names = several(row.name, value.split(",") if isinstance(value, str) else value, str, expected)
    if not names or not all(name and name.isascii() for name in names):
        raise ConfigError(f"{row.name}: expected {expected}, found {value!r}")
    return ",".join(names)


_READERS: dict[str, Callable[[OptionRow, Any], Any]] = {
    "FLAG": _flag,
    "NUMBER": _number,
    "POWER_OF_TWO": _power_of_two,
    "SIZE": lambda row, value: size_of(row.name, value, row.least, row.most),
    "DURATION": _milliseconds,
    "TEXT": _text,
    "WORD": _text,
    "CHOICE": _choice,
    "NAMES": _names,
    "CPUS": _cpus,
    "FILTERS": lambda _, value: filters_of(value) or None,
    "TRIGGERS": lambda _, value: triggers_of(value) or None,
    "BRANCHES": _branches,
    "USER": lambda _, value: platform.owner_of(value),
}


def read_option(name: str, value: Any) -> Any:
    """Check the value of an option, and return it as the core takes it; None: it is the default.

    Raises
    ------
    ConfigError
        If it has a wrong type, or is out of range.
    """
    row = option_rows()[name]
    return None if value is None else _READERS[row.kind](row, value)
