"""Columns as arrays: enumerations compare with names, and what no name can equal says so."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest

import ptkit
from ptkit import BranchKind


@pytest.mark.parametrize("name", ["JUMP_INDIRECT", "jump_indirect", BranchKind.JUMP_INDIRECT, 2, np.uint8(2)])
def test_enumerations_compare_with_names_members_and_numbers(loop_trace: Any, name: Any) -> None:
    branches = loop_trace.branches()
    assert int((branches["kind"] == name).sum()) == 200
    assert int((branches["kind"] != name).sum()) == 1200
    assert len(branches[branches["kind"] == name]) == 200
    assert int((name == branches["kind"]).sum()) == 200


def test_a_comparison_is_a_plain_mask(loop_trace: Any) -> None:
    mask = loop_trace.branches()["kind"] == "COND"
    assert type(mask) is np.ndarray
    assert mask.dtype == np.bool_


@pytest.mark.parametrize("names", [["cond", "RETURN"], ("COND",), {"COND"}, np.array(["COND", "call"])])
def test_isin_takes_names(loop_trace: Any, names: Any) -> None:
    kinds = loop_trace.branches()["kind"]
    assert int(np.isin(kinds, names).sum()) == 1200
    assert int(np.isin(kinds, test_elements=names, invert=True).sum()) == 200
    assert int(np.isin(kinds, [BranchKind.COND, 5]).sum()) == 1200


def test_elementwise_comparison_with_names(loop_trace: Any) -> None:
    branches = loop_trace.branches()
    assert (branches["kind"] == np.array(branches.named("kind"))).all()
    assert (branches["kind"] == branches.named("kind")).all()
    assert (branches["kind"] == branches["kind"]).all()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CALLS", r"kind='CALLS': BranchKind has no member of this name; did you mean CALL"),
        ("nonsense", r"BranchKind has no member of this name; it has COND, JUMP, "),
        (b"CALL", "compare with a str"),
        (ptkit.InsnClass.CALL, "the column is of BranchKind"),
    ],
)
def test_an_unknown_name_raises(loop_trace: Any, name: Any, text: str) -> None:
    kinds = loop_trace.branches()["kind"]
    for compare in (lambda: kinds == name, lambda: kinds != name):
        with pytest.raises(ptkit.ConfigError, match=text):
            compare()
    if isinstance(name, str):
        with pytest.raises(ptkit.ConfigError, match=text):
            np.isin(kinds, [name])


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("from_ip", "the column has addresses; select by name with symbol="),
        ("tsc", r"the column has numbers \(uint64\), no names"),
        ("taken", "the column has True and False"),
        ("stream", r"numbers \(uint32\)"),
    ],
)
def test_numbers_do_not_compare_with_names(loop_trace: Any, column: str, text: str) -> None:
    values = loop_trace.branches()[column]
    for compare in (lambda: values == "main", lambda: values != "main", lambda: np.isin(values, ["main"])):
        with pytest.raises(ptkit.ConfigError, match=text):
            compare()
    assert (values == values).all()
    assert not (values == None).any()  # noqa: E711


def test_columns_are_read_only_views(loop_trace: Any) -> None:
    branches = loop_trace.branches()
    kinds = branches["kind"]
    assert isinstance(kinds, np.ndarray)
    assert np.shares_memory(kinds, branches["kind"])
    assert not kinds.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        kinds[0] = 1
    assert repr(kinds[:1]) == "array([0], dtype=uint8)"


@pytest.mark.parametrize(
    "keep",
    [
        lambda kinds: kinds[5:100],
        lambda kinds: kinds[kinds == 2],
        lambda kinds: kinds[[1, 2, 3]],
        lambda kinds: kinds.reshape(2, -1),
        lambda kinds: kinds.copy(),
        lambda kinds: pickle.loads(pickle.dumps(kinds)),
        lambda kinds: np.concatenate([kinds, kinds]),
        lambda kinds: np.sort(kinds),
        lambda kinds: np.unique(kinds),
    ],
)
def test_parts_and_copies_keep_the_enumeration(loop_trace: Any, keep: Any) -> None:
    kinds = keep(loop_trace.branches()["kind"])
    plain = np.asarray(kinds)
    assert type(plain) is np.ndarray
    assert ((kinds == "JUMP_INDIRECT") == (plain == 2)).all()


@pytest.mark.parametrize(
    "compute",
    [
        lambda kinds: kinds + 1,
        lambda kinds: kinds * kinds,
        lambda kinds: kinds > 1,
        lambda kinds: np.diff(kinds),
        lambda kinds: np.bincount(kinds),
        lambda kinds: np.where(kinds > 1, kinds, 0),
        lambda kinds: np.cumsum(kinds),
        lambda kinds: np.add.reduceat(kinds, [0, 5]),
    ],
)
def test_arithmetic_gives_plain_arrays(loop_trace: Any, compute: Any) -> None:
    kinds = loop_trace.branches()["kind"]
    result = compute(kinds)
    assert type(result) is np.ndarray
    assert (result == compute(np.asarray(kinds))).all()


def test_results_go_into_given_arrays(loop_trace: Any) -> None:
    offsets = loop_trace.branches()["offset"]
    out = offsets.copy()
    np.add(offsets, 1, out=out)
    out += 1
    assert (np.asarray(out) == np.asarray(offsets) + 2).all()
    assert int(offsets.max()) == int(np.asarray(offsets).max())


def test_other_libraries_get_their_own_arrays(loop_trace: Any) -> None:
    branches = loop_trace.branches()
    frame = branches.to_pandas(["kind", "from_ip", "taken"])
    assert int((frame["kind"] == "COND").sum()) == 1200
    assert int((frame["from_ip"] == 4).sum()) == 0
    assert int((pandas.Series(branches["kind"]) == 2).sum()) == 200
    assert pyarrow.array(branches["kind"]).to_pylist() == branches["kind"].tolist()


def test_kinds_go_by_name_in_any_case(loop_trace: Any) -> None:
    branches = loop_trace.branches()
    for kind in ("cond", "Cond", ["cond"], BranchKind.COND, 0):
        assert len(loop_trace.branches(kind=kind)) == 1200
        assert len(branches.where(kind=kind)) == 1200
    with pytest.raises(ptkit.ConfigError, match="did you mean COND"):
        loop_trace.branches(kind="conds")
    with pytest.raises(ptkit.ConfigError, match="did you mean COND"):
        branches.where(kind="conds")


def test_one_value_compares_with_names(loop_trace: Any) -> None:
    """As where the user writes ``if kind == "CALL"``."""
    kinds = loop_trace.branches()["kind"]
    row = int(np.flatnonzero(kinds == "COND")[0])
    kind = kinds[row]
    for same in ("COND", "cond", BranchKind.COND, int(BranchKind.COND), np.uint8(BranchKind.COND)):
        assert (kind == same, kind != same) == (True, False)
    for other in ("CALL", BranchKind.CALL, 250):
        assert (kind == other, kind != other) == (False, True)
    with pytest.raises(ptkit.ConfigError, match="CALLS"):
        assert kind == "CALLS"
    assert [one == "COND" for one in kinds] == (kinds == "COND").tolist()
    assert {BranchKind.COND: "found"}[kind] == "found"
    assert isinstance(kind, np.uint8)
    assert BranchKind(kind) is BranchKind.COND
    assert type(pickle.loads(pickle.dumps(kind))) is np.uint8
    assert (np.equal(kinds, kind) == (kinds == "COND")).all()
