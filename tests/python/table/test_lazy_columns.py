"""The column ``offset``, which is kept as runs until it is asked for."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.table.lazy_columns import LazyColumn
from ptkit.table.table import concatenate

TABLES = ("branches", "blocks", "instructions")


@pytest.fixture(scope="module")
def open_engine(loop: Any, packets: Any, open_trace: Any) -> Any:
    psb = bytes([2, 0x82]) * 8 + packets.fup(loop.BASE) + bytes([2, 0x23])
    data = (psb + packets.pge(loop.BASE) + packets.tnt("111111") * 2000) * 2
    return lambda engine: open_trace(data, images=loop.images(), engine=engine)


@pytest.fixture(scope="module")
def trace(open_engine: Any) -> Any:
    return open_engine("ptkit")


def _in_parts(trace: Any, name: str) -> Any:
    parts = list(getattr(trace, f"iter_{name}")(rows=777))
    return np.concatenate([np.asarray(part["offset"]) for part in parts])


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("engine", ["ptkit", "simple"])
def test_offsets_equal_those_of_parts(open_engine: Any, trace: Any, name: str, engine: str) -> None:
    wanted = _in_parts(trace, name)
    assert len(set(wanted.tolist())) > 1000
    for threads in (1, 2, 3):
        table = getattr(open_engine(engine), name)(threads=threads)
        runs = table.nbytes
        assert not table.data.arrays.is_made("offset")
        found = table["offset"]
        assert np.array_equal(found, wanted)
        assert not found.flags.writeable
        assert found.dtype == np.uint64
        assert found is not table["from_ip" if name == "branches" else "ip"]
        assert np.shares_memory(found, table["offset"])
        assert table.data.arrays.is_made("offset")
        assert table.nbytes - runs > 0.4 * wanted.nbytes


def test_only_a_column_that_is_asked_for_is_made(trace: Any) -> None:
    table = trace.branches(columns=["from_ip", "offset"])
    assert table.columns == ("from_ip", "offset")
    assert "offset" in table
    assert table["from_ip"].any()
    assert not table.data.arrays.is_made("offset")
    assert trace.branches(columns=["offset"])["offset"].tolist() == _in_parts(trace, "branches").tolist()
    with pytest.raises(ptkit.ColumnError, match="offset"):
        trace.branches(columns=["from_ip"])["offset"]


def test_slices_stay_late_and_share_the_array(trace: Any) -> None:
    wanted = _in_parts(trace, "branches")
    table = trace.branches()
    part = table[100:5000:3]
    inner = part[10:20]
    assert not part.data.arrays.is_made("offset")
    assert inner["offset"].tolist() == wanted[100:5000:3][10:20].tolist()
    assert np.shares_memory(inner["offset"], table["offset"])
    assert part.data.arrays.is_made("offset")
    assert part["offset"].tolist() == wanted[100:5000:3].tolist()
    assert table[:0]["offset"].tolist() == []


def test_selected_rows_have_their_offsets(trace: Any) -> None:
    wanted = _in_parts(trace, "branches")
    table = trace.branches()
    mask = np.arange(len(table)) % 7 == 2
    assert table[mask]["offset"].tolist() == wanted[mask].tolist()
    assert table[np.array([5, 1])]["offset"].tolist() == wanted[[5, 1]].tolist()
    joined = concatenate([trace.branches()[:10], table[30:40]])
    assert joined["offset"].tolist() == [*wanted[:10].tolist(), *wanted[30:40].tolist()]
    assert trace.branches().where(offset=int(wanted[-1]))["offset"].tolist() == [wanted[-1]] * int(
        np.count_nonzero(wanted == wanted[-1])
    )


def test_consumers_get_the_array(trace: Any) -> None:
    wanted = _in_parts(trace, "blocks")
    assert np.array_equal(trace.blocks().to_arrow()["offset"].to_numpy(), wanted)
    assert np.array_equal(trace.blocks().to_pandas()["offset"].to_numpy(), wanted)
    late = trace.blocks().data.arrays._columns["offset"]
    assert isinstance(late, LazyColumn)
    assert np.array_equal(pickle.loads(pickle.dumps(late)), wanted)
    assert np.array_equal(copy.deepcopy(late), wanted)


def test_threads_make_the_array_once(trace: Any) -> None:
    table = trace.instructions()
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(table["offset"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(np.shares_memory(array, found[0]) for array in found)


def test_an_array_that_does_not_fit_is_refused(trace: Any, monkeypatch: Any) -> None:
    table = trace.instructions()
    monkeypatch.setattr("ptkit.support.memory._SMALL", 0)
    monkeypatch.setattr("ptkit.support.memory.free", lambda: (10, "RLIMIT_AS"))
    monkeypatch.setattr("ptkit._core.pool_bytes", lambda: 0)
    with pytest.raises(ptkit.OutOfMemoryError, match="column 'offset'"):
        table["offset"]
