"""Each column of each table can be asked for alone, in every form."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from make_tables_doc import ROOT
from ptkit.support.schema import tables
from ptkit.table.derived import derived_of

TABLES = tuple(tables())
FORMS: dict[str, Callable[[Any], Any]] = {
    "values": lambda table: table[table.columns[0]],
    "named": lambda table: table.named(table.columns[0]),
    "repr": repr,
    "html": lambda table: table._repr_html_(),
    "pandas": lambda table: table.to_pandas(),
    "pandas by pyarrow": lambda table: table.to_pandas(dtype_backend="pyarrow"),
    "polars": lambda table: table.to_polars(),
    "arrow": lambda table: table.to_arrow(),
    "capsule": lambda table: table.__arrow_c_stream__(),
    "rows": np.asarray,
    "sort": lambda table: table.sort(table.columns[0], descending=True),
    "where": lambda table: table.where(**{table.columns[0]: table[table.columns[0]][:1]}),
    "pickle": lambda table: pickle.loads(pickle.dumps(table)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def documented(name: str) -> list[str]:
    """Columns of a table in docs/tables.md, without those that are calculated while a trace is read."""
    return [*tables()[name].columns, *derived_of(name)]


@pytest.mark.parametrize("name", TABLES)
def test_documented_columns_are_documented(name: str) -> None:
    page = (ROOT / "docs" / "tables.md").read_text()
    (part,) = (part for part in page.split("\n### ") if part.startswith(f"{name}\n"))
    for column in documented(name):
        assert f"| `{column}` |" in part, column


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", TABLES)
def test_each_column_alone(name: str, form: str, ask: Callable[..., Any]) -> None:
    for module in ("pandas", "polars", "pyarrow"):
        if module in form or (module == "pyarrow" and form in ("polars", "arrow")):
            pytest.importorskip(module)
    whole = ask(name)
    there = [column for column in documented(name) if not _is_not_offered(whole, column)]
    assert len(there) > 5
    for column in there:
        one = ask(name, [column])
        assert one.columns == (column,)
        assert one.named(column) == ask(name, [column, *_flags(whole)]).named(column)
        try:
            found = FORMS[form](one)
        except Exception as error:
            raise AssertionError(f"{name}: {column} alone, as {form}: {error}") from error
        if form in ("copy", "deepcopy", "pickle"):
            assert found.columns == (column,)
            assert found.named(column) == one.named(column), column


def _flags(table: Any) -> list[str]:
    return ["flags"] if "flags" in table.data.schema.columns else []


def _is_not_offered(table: Any, column: str) -> bool:
    """Names of files where a table has none, and phases, which need limits."""
    derived = table._derived(column)
    if column in ("bin", "file") and table.name == "edges":
        return True
    return derived is not None and not derived.offered(table.data.context)
