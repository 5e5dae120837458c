"""Rows that have one of some values."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError
from ptkit.support.arguments import member
from ptkit.support.schema import Column
from ptkit.table.labels import Labels

__all__ = ["matching"]


def matching(values: NDArray[Any] | Labels, column: Column, wanted: Any) -> NDArray[np.bool_]:
    """Mask of the values of a column that are among those wanted.

    Raises
    ------
    ConfigError
        If a wanted value is of a type that the column cannot have.
    """
    several = isinstance(wanted, Iterable) and not isinstance(wanted, (str, bytes))
    if isinstance(wanted, np.ndarray):
        wanted, several = wanted.tolist(), wanted.ndim > 0
    items = wanted if several else [wanted]
    if isinstance(values, Labels):
        return values.among([_text(column, item) for item in items])
    numbers = {_number(column, item) for item in items}
    if column.dtype == np.bool_:
        return np.isin(values, [bool(number) for number in numbers])
    limits = np.iinfo(column.dtype)  # type: ignore[type-var]
    possible = [number for number in numbers if limits.min <= number <= limits.max]
    if len(possible) == 1:
        return np.asarray(values == column.dtype.type(possible[0]))
    return np.isin(values, np.array(sorted(possible), dtype=column.dtype))


def _text(column: Column, wanted: Any) -> str | None:
    if wanted is None or isinstance(wanted, str):
        return wanted
    raise ConfigError(f"{column.name}={wanted!r} cannot match: the column has names, or None")


def _is_whole(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and float(value).is_integer()


def _number(column: Column, wanted: Any) -> int:
    if isinstance(wanted, str) and column.enum is not None:
        return int(member(column.name, column.enum, wanted))
    if isinstance(wanted, enum.Enum) and column.enum is not None and not isinstance(wanted, column.enum):
        raise ConfigError(f"{column.name}={wanted!r} is no {column.enum.__name__}")
    boolean = isinstance(wanted, (bool, np.bool_))
    if column.dtype == np.bool_:
        if boolean or (hasattr(wanted, "__index__") and int(wanted) in (0, 1)):
            return int(wanted)
    elif not boolean and (hasattr(wanted, "__index__") or _is_whole(wanted)):
        return int(wanted)
    kind = "True or False" if column.dtype == np.bool_ else "integers"
    if column.enum is not None:
        kind = f"names, members or numbers of {column.enum.__name__}"
    raise ConfigError(f"{column.name}={wanted!r} cannot match: the column has {kind}")
