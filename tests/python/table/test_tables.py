"""Tables: columns, slices, derived columns, units, repr."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.table.derived import derived_of


def test_worked_example_of_the_manual() -> None:
    table = ptkit.packets(bytes.fromhex("711093388506f80000"))
    assert table.named("kind") == ["TIP_PGE", "PAD"]
    assert table["size"].tolist() == [7, 2]
    assert table["offset"].tolist() == [0, 7]
    assert int(table["ip"][0]) == 0xFFFFF80685389310
    assert table["ip_known"].tolist() == [True, False]
    assert len(table.errors) == 0


def test_branches_of_a_loop(loop_trace: Any, loop: Any) -> None:
    table = loop_trace.branches()
    assert len(table) == 200 * 7
    first = table[:7]
    assert first.named("kind") == ["COND"] * 6 + ["JUMP_INDIRECT"]
    assert first["taken"].tolist() == [True] * 5 + [False, True]
    assert first["from_ip"].tolist() == [loop.JNZ] * 6 + [loop.JMP]
    assert first["to_ip"].tolist() == [loop.BASE] * 5 + [loop.JMP, loop.BASE]
    assert table["from_known"].all()
    assert table["to_known"].all()
    assert len(table.errors) == 0


@pytest.mark.parametrize("name", ["branches", "blocks", "instructions", "events", "packets", "edges"])
def test_contains_says_what_available_lists(loop_trace: Any, name: str) -> None:
    whole = getattr(loop_trace, name)()
    every = {*whole.available, *whole.data.schema.columns, *derived_of(name), "nothing"}
    for table in (whole, whole[whole.columns[:1]], whole[:1]):
        assert {one for one in every if one in table} == set(table.available)
        assert 3 not in table


def test_instructions_and_blocks_agree(loop_trace: Any, loop: Any) -> None:
    instructions = loop_trace.instructions()
    blocks = loop_trace.blocks()
    assert len(instructions) == 200 * 13
    assert instructions["ip"][:13].tolist() == [loop.BASE, loop.JNZ] * 6 + [loop.JMP]
    assert instructions["size"][:13].tolist() == [2] * 13
    assert int(blocks["instructions"].sum()) == len(instructions)
    assert int(blocks["size"].sum()) == int(instructions["size"].sum())
    assert set(instructions["mode"].tolist()) == {64}


def test_edges_count_branches(loop_trace: Any, loop: Any) -> None:
    edges = loop_trace.edges()
    rows = list(zip(edges["from_ip"].tolist(), edges["to_ip"].tolist(), edges["count"].tolist(), strict=True))
    assert rows == [(loop.JNZ, loop.BASE, 1000), (loop.JNZ, loop.JMP, 200), (loop.JMP, loop.BASE, 200)]
    assert edges["count"].dtype == np.int64


def test_events_keep_their_position_among_instructions(loop_trace: Any) -> None:
    events = loop_trace.events()
    kinds = events.named("kind")
    enabled = kinds.index("ENABLED")
    assert int(events["instruction"][enabled]) == 0
    assert int(events["ip"][enabled]) == 0x1000
    headers = events["instruction"][events["status"]]
    assert headers[-1] == 199 * 13
    assert (np.diff(events["order"].astype(np.int64)) > 0).all()


def test_dtypes_and_units(loop_trace: Any) -> None:
    table = loop_trace.branches()
    assert table.columns == ("from_ip", "to_ip", "kind", "flags", "tsc", "tsc_error", "tsc_source", "offset")
    wanted = {"from_ip": "u8", "to_ip": "u8", "kind": "u1", "flags": "u1", "tsc": "u8", "tsc_error": "u4"}
    for name, dtype in wanted.items():
        assert table[name].dtype == np.dtype(dtype), name
        assert table.dtypes[name] == np.dtype(dtype)
    assert table.units["from_ip"] == "address"
    assert table.units["tsc"] == "TSC ticks"
    assert table.units["kind"] == "BranchKind"


def test_columns_are_read_only(loop_trace: Any) -> None:
    table = loop_trace.branches(columns=["from_ip", "taken", "tid"])
    for name in table.columns:
        with pytest.raises(ValueError, match="read-only"):
            table[name][0] = 0


def test_tables_have_only_requested_columns(loop_trace: Any) -> None:
    table = loop_trace.branches(columns=["taken"])
    assert table.columns == ("taken",)
    assert list(table) == ["taken"]
    whole = loop_trace.branches()
    assert (table["taken"] == whole["taken"]).all()
    with pytest.raises(ptkit.ColumnError, match="was not asked for"):
        table["from_ip"]
    with pytest.raises(ptkit.ColumnError, match="did you mean 'to_ip'"):
        whole["too_ip"]


def test_times_are_the_same_whatever_else_is_asked_for(loop_trace: Any) -> None:
    whole = loop_trace.branches()
    part = loop_trace.branches(columns=["tsc", "tsc_error", "time_known"])
    for name in part.columns:
        assert (part[name] == whole[name]).all()
    assert whole["time_known"].any()
    known = whole["tsc"][whole["time_known"]]
    assert (np.diff(known.astype(np.int64)) >= 0).all()


def test_slices_masks_and_positions(loop_trace: Any) -> None:
    table = loop_trace.branches()
    for index in (slice(3, 9), slice(None, None, 5), table["taken"], np.array([5, 1, 1]), slice(0, 0)):
        part = table[index]
        assert len(part) == len(table["from_ip"][index])
        for name in table.available:
            assert (part[name] == table[name][index]).all(), name
    assert len(table[[]]) == 0
    with pytest.raises(TypeError, match="no row objects"):
        table[0]
    with pytest.raises(ptkit.ConfigError, match="mask of 2"):
        table[np.array([True, False])]


def test_where_selects_rows(loop_trace: Any) -> None:
    table = loop_trace.branches()
    assert len(table.where(kind=ptkit.BranchKind.COND, taken=False)) == 200
    assert len(table.where(kind=[ptkit.BranchKind.COND, ptkit.BranchKind.JUMP_INDIRECT])) == len(table)


def test_where_takes_names_and_all_kinds_of_lists(loop_trace: Any) -> None:
    table = loop_trace.branches()
    conditionals = table["kind"] == int(ptkit.BranchKind.COND)
    for wanted in (
        "COND",
        0,
        0.0,
        np.uint64(0),
        ["COND"],
        np.array([0]),
        np.array(0),
        range(1),
        {"COND", "CALL"},
    ):
        assert len(table.where(kind=wanted)) == int(conditionals.sum()) == 1200, wanted
    assert len(table.where(taken=np.True_)) == len(table.where(taken=1)) == 1200
    assert len(table.where(taken=[True, False])) == len(table)
    assert len(table.where(from_ip=-1)) == len(table.where(from_ip=[2**64, -5])) == 0
    assert len(table.where(from_ip=[])) == 0
    assert len(table.where(from_ip=np.array([0x1002, 0x1004]))) == len(table)


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ({"kind": "CONDITIONAL"}, "BranchKind has no member of this name"),
        ({"kind": ptkit.EventKind.ENABLED}, "is no BranchKind"),
        ({"kind": None}, "cannot match"),
        ({"kind": b"COND"}, "cannot match"),
        ({"kind": ["COND", 1.5]}, "cannot match"),
        ({"from_ip": "main"}, "from_ip='main' cannot match"),
        ({"taken": "yes"}, "True or False"),
        ({"taken": 2}, "True or False"),
        ({"stream": True}, "cannot match: the column has integers"),
    ],
)
def test_where_refuses_what_cannot_match(loop_trace: Any, conditions: dict[str, Any], text: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=text):
        loop_trace.branches().where(**conditions)


def test_a_list_of_names_is_a_table_of_these_columns(loop_trace: Any) -> None:
    table = loop_trace.branches()
    part = table[["to_ip", "taken"]]
    assert part.columns == ("to_ip", "taken")
    assert len(part) == len(table)
    assert (part["taken"] == table["taken"]).all()
    assert "to_ip" in repr(part)
    with pytest.raises(ptkit.ColumnError, match="did you mean 'to_ip'"):
        table[["too_ip"]]


def test_context_is_kept_as_runs(loop: Any) -> None:
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    for number in range(3):
        bundle.add_stream(loop.stream(2), name=str(number), cpu=number, pid=100, tid=100 + number)
    bundle.add_stream(loop.stream(2))
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    table = trace.branches()
    rows = 14
    assert table["stream"].tolist() == [0] * rows + [1] * rows + [2] * rows + [3] * rows
    assert table["tid"][: 3 * rows].tolist() == [100] * rows + [101] * rows + [102] * rows
    assert table["tid_known"].tolist() == [True] * 3 * rows + [False] * rows
    assert table["cpu_known"].tolist() == [True] * 3 * rows + [False] * rows
    assert table.named("tid")[-1] is None
    assert len(table.data.runs) == 4
    assert len(trace.branches(tid=101)) == rows
    assert set(trace.branches(tid=[100, 102])["tid"].tolist()) == {100, 102}
    assert set(trace.branches(stream=[1, 2])["stream"].tolist()) == {1, 2}


def test_context_switches_separate_threads(loop: Any) -> None:
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    data = loop.stream(100, psb_every=1, step=100)  # a TSC packet per round, from 1100 on
    switches = [(0, 1, 11, 0), (5_000, 1, 12, 0), (8_000, None, None, 0)]
    bundle.add_stream(data, cpu=3, switches=switches)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    for table in ("branches", "packets", "instructions", "events"):
        rows = getattr(trace, table)(columns=["tid", "tid_known", "cpu", "tsc", "tsc_error"])
        surely = {
            11: rows["tsc"] + rows["tsc_error"] < 4_900,
            12: (rows["tsc"] > 5_100) & (rows["tsc"] < 7_800),
        }
        for tid, mask in surely.items():
            assert mask.any(), (table, tid)
            assert set(rows["tid"][mask].tolist()) == {tid}, (table, tid)
        assert not rows["tid_known"][rows["tsc"] > 8_200].any(), table
        assert set(rows["cpu"].tolist()) == {3}
        chosen = getattr(trace, table)(tid=12, columns=["tsc", "tid"])
        assert len(chosen) == int(((rows["tid"] == 12) & rows["tid_known"]).sum())


def test_repr_shows_head_and_tail(loop_trace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = repr(loop_trace.branches())
    assert "0x1002" in text
    assert "COND" in text
    assert "..." in text
    assert "[branches: 1,400 rows x 8 columns]" in text
    assert len(text.splitlines()) == 13
    html = loop_trace.branches()._repr_html_()
    assert html.startswith('<table class="ptkit">')
    assert "JUMP_INDIRECT" in html
    empty = loop_trace.branches()[:0]
    assert "0 rows" in repr(empty)


def test_unknown_values_show_as_a_dash() -> None:
    text = repr(ptkit.packets(b"\x00\x00", columns=["kind", "ip"]))
    assert text.splitlines()[1].split() == ["0", "PAD", "-"]


def test_a_real_trace_in_a_terminal(corpus: Any, open_trace: Any) -> None:
    trace = open_trace(corpus / "libxdc" / "mruby")
    table = trace.branches()
    assert len(table) == len(trace.branches(columns=["kind"]))
    assert "CALL_INDIRECT" in repr(table)
    assert "713,168" in str(trace.info)
