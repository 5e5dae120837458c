"""Selection by stream, thread, time, address, symbol and direction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptkit


def test_ip_selects_rows_at_addresses(loop_trace: Any, loop: Any) -> None:
    whole = loop_trace.branches()
    low, high = loop.JMP, loop.JMP + 2
    mask = ((whole["from_ip"] >= low) & (whole["from_ip"] < high)) | (
        (whole["to_ip"] >= low) & (whole["to_ip"] < high)
    )
    part = loop_trace.branches(ip=(low, high))
    assert 0 < len(part) < len(whole)
    for name in whole.columns:
        assert (part[name] == whole[name][mask]).all()
    instructions = loop_trace.instructions(ip=[(loop.JMP, loop.JMP + 1), (loop.BASE, loop.BASE + 1)])
    assert set(instructions["ip"].tolist()) == {loop.JMP, loop.BASE}
    assert len(instructions) == 200 * 7
    assert len(loop_trace.branches(ip=(0x5000, 0x6000))) == 0


def test_time_selects_rows_in_an_interval(loop_trace: Any) -> None:
    whole = loop_trace.branches()
    known = whole["time_known"]
    t0, t1 = (int(t) for t in np.quantile(whole["tsc"][known], [0.25, 0.5]))
    mask = known & (whole["tsc"] >= t0) & (whole["tsc"] < t1)
    part = loop_trace.branches(time=(t0, t1))
    assert 0 < len(part) < len(whole)
    assert (part["from_ip"] == whole["from_ip"][mask]).all()
    assert (part["tsc"] == whole["tsc"][mask]).all()
    assert len(loop_trace.branches(time=(t0, None))) > len(part)


def test_taken_selects_rows_by_direction(loop_trace: Any) -> None:
    assert len(loop_trace.branches(taken=True)) == 200 * 6
    assert len(loop_trace.branches(taken=False)) == 200
    assert int(loop_trace.edges(taken=False)["count"].sum()) == 200


@pytest.mark.parametrize(
    "kinds", ["COND", ("COND", "RETURN"), [ptkit.BranchKind.CALL, 5], np.array([1, 3], np.uint8), ()]
)
@pytest.mark.parametrize("engine", ["ptkit", "simple"])
def test_kind_selects_branches(open_trace: Any, loop: Any, kinds: Any, engine: str) -> None:
    trace = open_trace(loop.stream(40), images=loop.images(), engine=engine)
    whole = trace.branches()
    wanted = [
        ptkit.BranchKind[k] if isinstance(k, str) else k
        for k in ([kinds] if isinstance(kinds, str) else kinds)
    ]
    mask = np.isin(whole["kind"], wanted)
    assert mask.sum() == sum((whole["kind"] == kind).sum() for kind in wanted)
    part = trace.branches(kind=kinds)
    for name in whole.columns:
        assert (part[name] == whole[name][mask]).all(), name
    assert sum(len(one) for one in trace.iter_branches(kind=kinds, reuse=True, rows=7)) == len(part)
    taken = mask & whole["taken"]
    assert (trace.branches(kind=kinds, taken=True)["tsc"] == whole["tsc"][taken]).all()
    edges = trace.edges()
    some = trace.edges(kind=kinds)
    for name in edges.columns:
        assert (some[name] == edges[name][np.isin(edges["kind"], wanted)]).all(), name


@pytest.mark.parametrize(
    "kinds", ["EXEC_MODE", ("enabled", "disabled"), [ptkit.EventKind.CBR, 0], "DISABLED", ()]
)
@pytest.mark.parametrize("engine", ["ptkit", "simple"])
def test_kind_selects_events(open_trace: Any, loop: Any, packets: Any, kinds: Any, engine: str) -> None:
    leaves = packets.pge(loop.BASE) + packets.tnt("111110") + packets.pgd(loop.BASE)
    stream = loop.stream(40) + packets.pgd(loop.BASE) + (leaves * 30 + loop.header(None, 9000)) * 5
    trace = open_trace(stream, images=loop.images(), engine=engine)
    whole = trace.events()
    wanted = [ptkit.EventKind[k.upper()] if isinstance(k, str) else k for k in np.atleast_1d(kinds)]
    mask = np.isin(whole["kind"], wanted)
    assert mask.any() or len(wanted) == 0
    for part in (trace.events(kind=kinds), trace.events(kind=kinds)):  # the numbers of rows are known now
        assert len(part) == mask.sum()
        for name in whole.columns:
            assert (part[name] == whole[name][mask]).all(), name
    assert sum(len(one) for one in trace.iter_events(kind=kinds, reuse=True, rows=3)) == mask.sum()
    assert len(trace.events()) == len(whole)


def test_selections_combine(loop_trace: Any, loop: Any) -> None:
    part = loop_trace.branches(ip=(loop.JNZ, loop.JNZ + 1), taken=False, columns=["to_ip"])
    assert part["to_ip"].tolist() == [loop.JMP] * 200


def test_selection_does_not_hide_errors(open_trace: Any, loop: Any) -> None:
    trace = open_trace(loop.stream(3) + b"\x02\xff" + loop.stream(3), images=loop.images())
    part = trace.branches(ip=(1, 2))
    assert len(part) == 0
    assert len(part.errors) == len(trace.errors) == 1


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"stream": 1}, "no stream 1 in this trace: it has stream 0 only"),
        ({"stream": -1}, "stream=-1"),
        ({"stream": []}, "selects nothing"),
        ({"tid": "main"}, "tid='main'"),
        ({"time": (5, 1)}, "t0 must not be above t1"),
        ({"time": 5}, "must be"),
        ({"ip": (5, 5)}, "is empty"),
        ({"ip": (0, 2**65)}, r"2\*\*64"),
        ({"ip": "main"}, "names go to symbol="),
        ({"ip": 5.5}, "ip=5.5 must be an address"),
        ({"ip": []}, "selects nothing"),
        ({"symbol": []}, "selects nothing"),
        ({"symbol": 5}, "symbol: expected a name, or a list of names"),
        ({"taken": 1}, "True or False"),
        ({"order": "random"}, "'stream', 'time'"),
        ({"errors": "ignore"}, "'rows', 'raise'"),
        ({"threads": 0}, "threads=0"),
        ({"columns": "from_ip"}, r"columns=\['from_ip'\]"),
    ],
)
def test_bad_arguments_name_the_limit(loop_trace: Any, query: dict[str, Any], text: str) -> None:
    with pytest.raises((ptkit.ConfigError, TypeError), match=text):
        loop_trace.branches(**query)


def test_misspelt_arguments_are_type_errors(loop_trace: Any) -> None:
    with pytest.raises(TypeError, match="no argument 'colums'"):
        loop_trace.branches(colums=["from_ip"])
    with pytest.raises(ptkit.ColumnError, match="no column 'from'"):
        loop_trace.branches(columns=["from"])
    with pytest.raises(ptkit.ConfigError, match="taken selects branches"):
        loop_trace.instructions(taken=True)
    with pytest.raises(ptkit.ConfigError, match="kind selects branches, edges and events, not blocks"):
        loop_trace.blocks(kind="CALL")


def test_unknown_symbol_names_the_nearest(loop_trace: Any) -> None:
    with pytest.raises(ptkit.SymbolError, match="no symbol 'main'"):
        loop_trace.branches(symbol="main")
