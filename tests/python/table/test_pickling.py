"""Tables that are copied, and tables that go to other processes without their trace."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.support.schema import tables

TABLES = tuple(tables())


def assert_equal(found: Any, table: Any) -> None:
    """The same columns, values, what is known of them, texts and sides."""
    assert type(found) is type(table)
    assert found.name == table.name
    assert found.columns == table.columns
    assert found.available == table.available
    assert len(found) == len(table)
    for name in table.available:
        assert found.column(name) == table.column(name)
        assert found[name].dtype == table[name].dtype, name
        assert found[name].tolist() == table[name].tolist(), name
        assert found.named(name) == table.named(name), name
        assert not found[name].flags.writeable, name
    assert repr(found) == repr(table)
    assert found._repr_html_() == table._repr_html_()
    for side in ("errors", "gaps"):
        one, other = getattr(found, side), getattr(table, side)
        assert (one is None) == (other is None)
        if other is not None:
            assert one.messages() == other.messages()


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("name", TABLES)
def test_pickled_tables_are_equal(name: str, protocol: int, ask: Callable[..., Any]) -> None:
    table = ask(name)
    found = pickle.loads(pickle.dumps(table, protocol))
    assert_equal(found, table)
    assert_equal(pickle.loads(pickle.dumps(found, protocol)), table)
    assert_equal(found[:2], table[:2])
    mask = np.arange(len(table)) % 2 == 0
    assert_equal(found[mask], table[mask])


def test_names_and_times_are_there(ask: Callable[..., Any]) -> None:
    functions = pickle.loads(pickle.dumps(ask("functions")))
    assert "again" in functions.named("function")
    assert (functions["p99_ns"] == functions["p99"]).all()  # a clock of 1 GHz
    branches = pickle.loads(pickle.dumps(ask("branches")))
    assert set(branches.named("from_symbol")) == {"again"}
    assert set(branches.named("from_module")) == {"again.elf"}
    assert branches.where(from_symbol="again").named("from_symbol") == ["again"] * len(branches)
    assert "time_ns" in branches.available


def test_columns_that_are_left_out_take_no_room(ask: Callable[..., Any]) -> None:
    table = ask("branches")
    assert len(pickle.dumps(table[["kind"]])) < len(pickle.dumps(table)) / 10
    assert pickle.loads(pickle.dumps(table[["kind"]])).data.arrays.keys() <= {"kind", "flags"}


@pytest.mark.parametrize("name", TABLES)
def test_copies_are_equal(name: str, ask: Callable[..., Any]) -> None:
    table = ask(name)
    for found in (copy.copy(table), copy.deepcopy(table)):
        assert found is not table
        assert_equal(found, table)


def test_deep_copies_have_memory_of_their_own(clocked: Any) -> None:
    parts = clocked.iter_branches(rows=100, reuse=True)
    first = next(parts)
    kept, shared = copy.deepcopy(first), copy.copy(first)
    before = first["from_ip"].tolist(), first["offset"].tolist()
    assert np.shares_memory(shared["from_ip"], first["from_ip"])
    assert not np.shares_memory(kept["from_ip"], first["from_ip"])
    next(parts)
    assert (kept["from_ip"].tolist(), kept["offset"].tolist()) == before


def test_sums_over_calls(clocked: Any) -> None:
    calls = clocked.calls()
    for found in (copy.copy(calls), copy.deepcopy(calls), copy.deepcopy(calls)[:]):
        assert repr(found.functions()) == repr(calls.functions())
    pickled = pickle.loads(pickle.dumps(calls))
    assert isinstance(pickled, ptkit.CallTable)
    assert pickled.histogram().counts.tolist() == calls.histogram().counts.tolist()
    with pytest.raises(ptkit.ConfigError, match=r"functions: the calls were pickled.* calls\.functions\(\)"):
        pickled.functions()
    with pytest.raises(ptkit.ConfigError, match=r"tree: the calls were pickled.* calls\.tree\(\)"):
        pickled.tree()


def _functions_of(path: str) -> ptkit.Table:
    return ptkit.open(path, tsc_hz=1_000_000_000).functions()


def test_processes_return_tables(clocked: Any, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.ptk") for number in range(3)]
    for path in paths:
        clocked.save(path)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(_functions_of, paths)
    for table in found:
        assert_equal(table, clocked.functions())
