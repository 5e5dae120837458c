"""Columns as users get them: NumPy arrays that know their enumeration and refuse names that cannot match."""

from __future__ import annotations

from enum import Enum, IntEnum
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError
from ptkit.support.arguments import member

__all__ = ["ColumnArray", "column_array"]

_COMPARISONS: dict[Any, str] = {np.equal: "==", np.not_equal: "!="}
_SAME_VALUES = {
    np.append,
    np.compress,
    np.concatenate,
    np.flip,
    np.hstack,
    np.repeat,
    np.roll,
    np.sort,
    np.take,
    np.unique,
}
_TEXT = (str, bytes)


class ColumnArray(np.ndarray):
    """One column of a table: a read-only array of numbers, without a copy.

    Comparing a column of an enumeration with a str looks the member up, in any case:
    ``branches["kind"] == "call"``; `numpy.isin` takes names, too. Any other column compared with a str
    raises, because no number equals a str. Slices, `numpy.concatenate` and the like give columns again;
    arithmetic and NumPy's other functions give plain arrays. A single value of an enumeration is a NumPy
    scalar that compares with names in the same way.

    Raises
    ------
    ConfigError
        By ``==``, ``!=`` and `numpy.isin`: the enumeration has no such member, or the column has no names.
    """

    _name: str = ""
    _enum: type[IntEnum] | None = None

    def __array_finalize__(self, source: Any) -> None:
        if isinstance(source, ColumnArray) and source.dtype == self.dtype:
            self._name, self._enum = source._name, source._enum

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in _COMPARISONS:
            inputs = tuple(self._as_numbers(item, _COMPARISONS[ufunc]) for item in inputs)
        out = options.get("out")
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.isin and len(args) > 1:
            args = (args[0], self._as_numbers(args[1], "isin"), *args[2:])
        elif function is np.isin and "test_elements" in kwargs:
            kwargs = kwargs | {"test_elements": self._as_numbers(kwargs["test_elements"], "isin")}
        result = super().__array_function__(function, types, args, kwargs)
        if isinstance(result, (list, tuple)):
            return result
        if function in _SAME_VALUES and isinstance(result, np.ndarray) and result.dtype == self.dtype:
            return column_array(result, self._name, self._enum)
        return _plain(result)

    def __eq__(self, other: Any) -> Any:
        return np.equal(self, other) if _comparable(other) else super().__eq__(other)

    def __ne__(self, other: Any) -> Any:
        return np.not_equal(self, other) if _comparable(other) else super().__ne__(other)

    __hash__ = None

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        if self._enum is None or not isinstance(value, np.integer):
            return value
        return _value_type(value.dtype.str, self._name, self._enum)(value)

    def __reduce__(self) -> Any:
        made_by: tuple[Any, ...] = super().__reduce__()  # type: ignore[assignment]
        function, arguments, state = made_by
        return function, arguments, (state, self._name, self._enum)

    def __setstate__(self, state: Any) -> None:
        array, self._name, self._enum = state
        super().__setstate__(array)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def _as_numbers(self, other: Any, operator: str) -> Any:
        """Replace names by numbers: of a str, or of a list, set or array of them."""
        if other is self or isinstance(other, ColumnArray):
            return other
        if isinstance(other, _TEXT):
            return self._number(other, operator)
        if isinstance(other, Enum) and self._enum is not None and not isinstance(other, self._enum):
            raise ConfigError(f"{self._name} {operator} {other!r}: the column is of {self._enum.__name__}")
        if isinstance(other, np.ndarray) and other.dtype.kind in "SU":
            numbers = [self._number(name, operator) for name in other.ravel().tolist()]
            return np.array(numbers, dtype=self.dtype).reshape(other.shape)
        if isinstance(other, (list, tuple, set, frozenset)) and any(
            isinstance(item, _TEXT) for item in other
        ):
            return [self._as_numbers(item, operator) for item in other]
        return other

    def _number(self, name: str | bytes, operator: str) -> int:
        if self._enum is None or isinstance(name, bytes):
            raise ConfigError(f"{self._name} {operator} {name!r}: {self._remedy()}")
        return int(member(self._name, self._enum, name))

    def _remedy(self) -> str:
        if self._enum is not None:
            return f"compare with a str, or a member of {self._enum.__name__}"
        if self.dtype == np.bool_:
            return "the column has True and False; use it as a mask, or ~ of it"
        if self._name == "ip" or self._name.endswith("_ip"):
            return "the column has addresses; select by name with symbol= or trace.touching(name)"
        return f"the column has numbers ({self.dtype}), no names"


def _plain_value(value: Any) -> Any:
    """A NumPy scalar of the type that the array has."""
    return value.dtype.type(int(value))


@cache
def _value_type(dtype: str, name: str, enum: type[IntEnum]) -> type[Any]:
    """Make the type of single values of an enumeration: NumPy's for a dtype, and it compares with names."""

    def number(other: Any) -> Any:
        return int(member(name, enum, other)) if isinstance(other, str) else other

    members = {
        "__eq__": lambda self, other: _plain_value(self) == number(other),
        "__ne__": lambda self, other: _plain_value(self) != number(other),
        "__hash__": lambda self: hash(int(self)),
        "__reduce__": lambda self: _plain_value(self).__reduce__(),
    }
    return type(f"{enum.__name__}Value", (np.dtype(dtype).type,), members)


def _comparable(other: Any) -> bool:
    """Whether NumPy would answer False for all rows instead of asking `__array_ufunc__`."""
    if isinstance(other, np.ndarray):
        return other.dtype.kind in "SU"
    return isinstance(other, (*_TEXT, list, tuple, Enum))


def _plain(item: Any) -> Any:
    return item.view(np.ndarray) if isinstance(item, ColumnArray) else item


def column_array(values: NDArray[Any], name: str, enum: type[IntEnum] | None) -> NDArray[Any]:
    """View the values of a column as a `ColumnArray`; values that are no numbers are returned as they are."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biu":
        return values
    array: ColumnArray = values.view(ColumnArray)
    array._name, array._enum = name, enum
    return array
