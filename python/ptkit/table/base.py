"""Columns of a table: those in memory, and those that are made of them on access."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ColumnError, ConfigError
from ptkit.support import memory
from ptkit.support.schema import Column
from ptkit.table.cells import is_uniform, read_only, where_set
from ptkit.table.column_array import column_array
from ptkit.table.columns import Columns
from ptkit.table.derived import Derived, derived_of, from_arrays, other_form
from ptkit.table.labels import Labels

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BaseTable"]

_INDEX_BYTES = 16  # for each row that is copied, while its run is looked up


class BaseTable:
    """Columns by name, and parts of a table; `Table` has the rest.

    Parameters
    ----------
    data : Columns
        Columns that were read.
    columns : sequence of str, optional
        Names of the columns that are shown; by default all that are stored.
    errors, gaps : table, optional
        Errors and gaps that came up while it was read.
    """

    def __init__(
        self,
        data: Columns,
        *,
        columns: Sequence[str] | None = None,
        errors: BaseTable | None = None,
        gaps: BaseTable | None = None,
    ) -> None:
        self.data = data
        self._columns = tuple(columns) if columns is not None else tuple(data.arrays)
        self.errors = errors
        self.gaps = gaps

    # Shape and names.

    @property
    def name(self) -> str:
        """Name of the table: ``"branches"``, ``"packets"``, ..."""
        return self.data.name

    def __len__(self) -> int:
        return self.data.rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were asked for: the stored ones by default."""
        return self._columns

    @property
    def available(self) -> tuple[str, ...]:
        """Every name that ``table[name]`` takes."""
        names = dict.fromkeys(self._columns)
        if self.data.runs is not None:
            names.update(dict.fromkeys(self.data.schema.names("run", "run flag")))
        if "flags" in self._columns:
            names.update(dict.fromkeys(self.data.schema.names("flag")))
        for name in derived_of(self.name):
            derived = self._derived(name)
            assert derived is not None
            has_other = other_form(name) in self._columns and self._can_make(name)
            if has_other or (derived.offered(self.data.context) and names.keys() >= set(derived.needs)):
                names[name] = None
        return tuple(names)

    def column(self, name: str) -> Column:
        """Dtype, unit and meaning of a column.

        Parameters
        ----------
        name : str
            One of `available`.

        Raises
        ------
        ColumnError
            If there is none, or it was not asked for.
        """
        column = self._find(name)
        if column is None:
            raise self._no_column(name)
        return column

    def _find(self, name: str) -> Column | None:
        """The column of this name if it is one of `available`, without a list of them all."""
        column = self.data.schema.columns.get(name)
        if column is None:
            derived = self._derived(name)
            return derived.column if derived is not None and self._offers(name, derived) else None
        if column.role in ("run", "run flag"):
            there = self.data.runs is not None or name in self._columns
        else:
            there = name in self._columns or (column.role == "flag" and "flags" in self._columns)
        return column if there else None

    def _offers(self, name: str, derived: Derived) -> bool:
        if name in self._columns or (other_form(name) in self._columns and self._can_make(name)):
            return True
        return derived.offered(self.data.context) and all(need in self for need in derived.needs)

    @property
    def dtypes(self) -> dict[str, np.dtype[np.generic]]:
        """NumPy dtype by column."""
        return {name: self.column(name).dtype for name in self._columns}

    @property
    def units(self) -> dict[str, str]:
        """Unit by column: ``"address"``, ``"bytes"``, ``"TSC ticks"``, an enumeration's name, or empty."""
        return {name: self.column(name).unit for name in self._columns}

    def _no_column(self, name: str) -> ColumnError:
        from difflib import get_close_matches

        derived = self._derived(name)
        if name in self.data.schema.columns or (derived is not None and derived.offered(self.data.context)):
            return ColumnError(f"column {name!r} of {self.name} was not asked for: add it to columns=[...]")
        near = get_close_matches(name, self.available)
        hint = (
            f"; did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"; there are {', '.join(self.available)}"
        )
        return ColumnError(f"{self.name} has no column {name!r}{hint}")

    # Columns and parts.

    @overload
    def __getitem__(self, key: str) -> NDArray[Any]: ...
    @overload
    def __getitem__(
        self, key: slice | NDArray[Any] | Sequence[int] | list[str] | tuple[str, ...]
    ) -> Self: ...

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            column = self.column(key)
            return column_array(self._values(column), key, column.enum)
        if isinstance(key, (int, np.integer)):
            raise TypeError("a table has no row objects: write table['column'][i], or table[i:i+1]")
        if isinstance(key, (list, tuple)) and key and all(isinstance(name, str) for name in key):
            return self._with_columns(key)
        index = self._checked_index(key)
        if isinstance(index, np.ndarray):
            self._require_copy(index)
        return self._rows_of(index, self.errors, self.gaps)

    def _require_copy(self, index: NDArray[Any]) -> None:
        rows = int(np.count_nonzero(index)) if index.dtype == np.bool_ else len(index)
        self._require_memory(
            f"a copy of {rows:,} rows", rows * (self.data.arrays.copied_row_bytes() + _INDEX_BYTES)
        )

    def _checked_index(self, key: Any) -> slice | NDArray[Any]:
        if isinstance(key, slice):
            return key
        index = np.asarray(key)
        if index.ndim != 1 or (len(index) and index.dtype.kind not in "biu"):
            raise ConfigError(
                f"table[{key!r}]: give a column's name, a list of names, a slice, a mask or row numbers"
            )
        if index.dtype == np.bool_ and len(index) != self.data.rows:
            raise ConfigError(f"a mask of {len(index)} does not fit a table of {self.data.rows} rows")
        return index if len(index) else slice(0, 0)

    def _with_columns(self, names: Sequence[str]) -> Self:
        for name in names:
            self.column(name)
        return self._part(self.data, tuple(dict.fromkeys(names)), self.errors, self.gaps)

    def _part(
        self, data: Columns, columns: Sequence[str], errors: BaseTable | None, gaps: BaseTable | None
    ) -> Self:
        """Make a table of some of the rows or columns."""
        return type(self)(data, columns=columns, errors=errors, gaps=gaps)

    def _rows_of(
        self,
        index: slice | NDArray[Any],
        errors: BaseTable | None = None,
        gaps: BaseTable | None = None,
    ) -> Self:
        return self._part(self.data.take(index), self._columns, errors, gaps)

    def _require_memory(self, subject: str, size: int) -> None:
        """Raise OutOfMemoryError if so many bytes are not free."""
        memory.require_memory(f"{self.name}: {subject}", size, f"read parts: iter_{self.name}()")

    def _values(self, column: Column) -> NDArray[Any]:
        name = column.name
        if not self._is_free(column):
            self._require_memory(
                f"column {name!r} of {self.data.rows:,} rows", self.data.rows * column.dtype.itemsize
            )
        if column.role in ("stored", "on demand"):
            return self.data.arrays[name]
        if column.role == "derived":
            values = self._derived_values(name)
            return read_only(values.texts() if isinstance(values, Labels) else values)
        if column.role == "flag":
            return read_only(where_set(self.data.arrays["flags"], column.mask))
        assert self.data.runs is not None
        if column.role == "run":
            return read_only(self.data.runs.spread(name))
        return read_only(where_set(self.data.runs.spread("flags"), column.mask))

    def _is_free(self, column: Column) -> bool:
        """Whether a column takes no memory for each row, as it is there, or as all rows have one value."""
        name, role = column.name, column.role
        if role in ("stored", "on demand"):
            return self.data.arrays.is_made(name)
        if role == "flag":
            return is_uniform(self.data.arrays["flags"])
        if role in ("run", "run flag") and self.data.runs is not None:
            return self.data.runs.is_uniform(name if role == "run" else "flags")
        return False

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the table holds.

        A column that has one value in all rows takes that of one value. ``offset`` takes that of its runs,
        one for each packet, until it is asked for.
        """
        return self.data.nbytes

    def _derived(self, name: str) -> Derived | None:
        found = derived_of(self.name).get(name)
        return found if found is None or name not in self.data.context.kept else from_arrays(found)

    def _derived_values(self, name: str) -> NDArray[Any] | Labels:
        """Make a derived column that is available."""
        derived = self._derived(name)
        assert derived is not None
        return derived.values(self.data)

    def _can_make(self, name: str) -> bool:
        """Whether a derived column can be made, available or not."""
        derived = self._derived(name)
        if derived is None or not derived.offered(self.data.context):
            return False
        return name in self.data.context.kept or self.data.has(derived.needs)

    def known(self, name: str) -> NDArray[np.bool_] | None:
        """Which values of a column mean something.

        Parameters
        ----------
        name : str
            One of `available`.

        Returns
        -------
        numpy.ndarray of bool, shape (rows,), or None
            None: all of them, or the column ``flags`` was not asked for.
        """
        derived = self._derived(name)
        return self.data.known(name) if derived is None else derived.known(self.data)

    def named(self, name: str) -> list[Any]:
        """A column as Python values: enumerations by name, None where a value is not known.

        Parameters
        ----------
        name : str
            One of `available`.

        Returns
        -------
        list
            One int, bool, str or None per row.

        Raises
        ------
        ColumnError
            If there is no such column, or it was not asked for.
        """
        values: list[Any] = self[name].tolist()
        enum = self.column(name).enum
        if enum is not None:
            names = {int(member): member.name for member in enum}
            values = [names.get(value, value) for value in values]
        known = self.known(name)
        if known is not None and not known.all():
            values = [value if ok else None for value, ok in zip(values, known.tolist(), strict=True)]
        return values
