"""Short and full names of functions in tables."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptkit import _core
from ptkit.table.labels import Labels

# Of the loop's first, second and third instruction.
FULL = ("store::Map<int, long>::insert(int const&)", "store::Map<long, long>::insert(long const&)", "plain")
MANGLED = ("_ZN5store3MapIilE6insertERKi", "_ZN5store3MapIllE6insertERKl", "plain")
SHORT = ("store::Map::insert", "store::Map::insert", "plain")


@pytest.fixture
def trace(loop: Any, open_trace: Any, tmp_path: Path) -> Any:
    """A loop of which each instruction is a function of its own."""
    addresses = (loop.BASE, loop.JNZ, loop.JMP)
    names = tmp_path / "names.txt"
    names.write_text("".join(f"{ip:016x} T {name}\n" for ip, name in zip(addresses, MANGLED, strict=True)))
    return open_trace(loop.stream(10), images={loop.BASE: loop.CODE}, symbols=[names])


def test_labels_with_equal_names_are_one() -> None:
    labels = Labels(np.array([0, 1, -1, 2, 1], np.int32), FULL).renamed(_core.short_names)
    assert labels.names == ["store::Map::insert", "plain"]
    assert labels.codes.tolist() == [0, 0, -1, 1, 0]


def test_names_that_are_no_text_stay() -> None:
    assert _core.short_names(["a\udcff::f(int)", "a::f(int)"]) == ["a\udcff::f(int)", "a::f"]


@pytest.mark.parametrize("table", ["branches", "edges", "blocks", "instructions"])
def test_columns_come_in_pairs(trace: Any, table: str) -> None:
    rows = getattr(trace, table)()
    names = [name for name in rows.available if name.endswith("symbol")]
    assert names
    short_of = dict(zip(FULL, SHORT, strict=True))
    for name in names:
        full = rows[f"{name}_full"].tolist()
        assert set(full) & set(FULL)
        assert rows[name].tolist() == [short_of.get(one) for one in full]
        assert rows.column(f"{name}_full").role == "derived"


def test_rows_are_not_merged(trace: Any) -> None:
    frame = trace.instructions().to_pandas(["ip", "symbol", "symbol_full"])
    found = frame.drop_duplicates()
    assert sorted(found["symbol_full"]) == sorted(FULL)
    assert sorted(found["symbol"]) == sorted(SHORT)
    assert list(frame["symbol"].cat.categories) == ["store::Map::insert", "plain"]


def test_where_takes_both_names(trace: Any) -> None:
    rows = trace.instructions()
    both = rows.where(symbol=SHORT[0])
    assert set(both["symbol_full"]) == set(FULL[:2])
    assert set(rows.where(symbol=FULL[0])["symbol_full"]) == {FULL[0]}
    assert len(rows.where(symbol=[SHORT[0], "plain"])) == len(rows)


def test_selections_take_both_names(trace: Any, loop: Any) -> None:
    for name in (SHORT[0], "Map::insert", "insert", "store::*::insert", "store::Map::insert()"):
        assert set(trace.instructions(symbol=name)["ip"]) == {loop.BASE, loop.JNZ}, name
    assert set(trace.instructions(symbol=FULL[1])["ip"]) == {loop.JNZ}


def test_pickled_tables_have_both(trace: Any) -> None:
    rows = trace.branches()
    kept = pickle.loads(pickle.dumps(rows))
    for name in ("from_symbol", "from_symbol_full"):
        assert kept[name].tolist() == rows[name].tolist()


def test_shown_names_are_short_and_notebooks_have_the_full_ones_at_the_pointer(trace: Any) -> None:
    rows = trace.branches()
    for shown in ("store::Map&lt;int*&gt;::insert", "store::Map&lt;long*&gt;::insert"):
        assert shown in rows._repr_html_()
    assert 'title="store::Map&lt;long, long&gt;::insert(long const&amp;)"' in rows._repr_html_()
    assert "long const" not in repr(rows)
