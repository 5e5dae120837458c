"""Rows between two events, and rows by stream offset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_pe import pe_with_import

import ptkit


@pytest.fixture
def marked(open_trace: Any, loop: Any, packets: Any) -> Any:
    """Six rounds of the loop program; CBR packets stand before the third and the fifth round."""
    parts = [loop.header(None, 1000), packets.pge(loop.BASE)]
    for number in range(6):
        if number in (2, 4):
            parts.append(bytes([0x02, 0x03, number, 0]))
        parts.append(packets.tnt("111110") + packets.tip(loop.BASE))
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    for _ in range(2):
        bundle.add_stream(b"".join(parts))
    return ptkit.Trace(bundle, ptkit.decode.Settings())


def marks(trace: Any, stream: int = 0) -> Any:
    return trace.events(stream=stream).where(kind="CBR")


def test_a_slice_has_what_ran_between(marked: Any, loop: Any) -> None:
    first, second = marks(marked)[:1], marks(marked)[1:]
    part = marked.slice(after=first, before=second)
    low, high = int(first["instruction"][0]), int(second["instruction"][0])
    ips = marked.instructions(stream=0)["ip"][low:high].tolist()
    assert part.instructions()["ip"].tolist() == ips
    assert len(ips) == 2 * 13
    assert len(part.branches()) == 14
    assert len(part.branches(kind="COND")) == 12
    assert int(part.blocks()["instructions"].sum()) == high - low
    assert len(part.events()) == 0
    counts = dict(zip(part.edges()["from_ip"].tolist(), part.edges()["count"].tolist(), strict=True))
    assert counts[loop.JMP] == 2
    assert part.edges(columns=["count"]).columns == ("count",)
    kinds = set(part.packets().named("kind"))
    assert kinds == {"TNT_8", "TIP"}
    assert sum(len(one) for one in part.iter_branches(rows=3)) == 14
    assert part.branches(columns=["from_ip"]).columns == ("from_ip",)


def test_edges_of_a_slice_name_imports_as_those_of_the_trace(
    tmp_path: Path, packets: Any, open_trace: Any
) -> None:
    path = tmp_path / "driver.sys"
    call = bytes.fromhex("ff15") + (0x1100 - 0x1006).to_bytes(4, "little")  # of the import
    path.write_bytes(pe_with_import(call + b"\xff\xe0", 0x10000, "KeBugCheck"))
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(0x11000) + packets.TIP_PGD
    stream += packets.pge(0x11006) + packets.tip(0x11006) + packets.TIP_PGD
    trace = open_trace(stream, images=[(path, 0x10000)], ranges=[("filter", 0x11000, 0x11FFF)])
    edges, part = trace.edges(), trace.slice(after=trace.events()[:1]).edges()
    assert part["to_symbol"].tolist() == edges["to_symbol"].tolist()
    assert part["to_symbol"].tolist()[0] == "KeBugCheck"
    for name in edges.columns:
        assert part[name].tolist() == edges[name].tolist(), name


def test_an_open_end_is_that_of_the_stream(marked: Any) -> None:
    first, second = marks(marked)[:1], marks(marked)[1:]
    assert len(marked.slice(before=first).branches()) == 14
    assert len(marked.slice(after=second).branches()) == 14
    assert set(marked.slice(after=marks(marked, 1)[1:]).branches()["stream"].tolist()) == {1}
    assert (
        marked.slice(before=first).events().named("kind")
        == marked.events(stream=0).named("kind")[
            : int(np.flatnonzero(marked.events(stream=0)["kind"] == ptkit.EventKind.CBR)[0])
        ]
    )


def test_slices_without_rows_have_the_columns(marked: Any) -> None:
    mark = marks(marked)[:1]
    table = marked.slice(after=mark, before=mark).branches(columns=["from_ip", "instruction", "tid"])
    assert (len(table), table.columns) == (0, ("from_ip", "instruction", "tid"))
    assert len(marked.slice(after=mark, before=mark).errors) == 0


def test_misuse_is_said(marked: Any) -> None:
    first, second = marks(marked)[:1], marks(marked)[1:]
    for words, sentence in (
        ({}, "give after=, before= or both"),
        ({"after": second, "before": first}, "must not come after"),
        ({"after": first, "before": marks(marked, 1)[:1]}, "of streams 0 and 1"),
        ({"after": marks(marked)}, "one row of trace.events"),
        ({"after": marked.branches()[:1]}, "one row of trace.events"),
        ({"after": first[["kind"]]}, "lacks columns instruction, order"),
    ):
        with pytest.raises(ptkit.ConfigError, match=sentence):
            marked.slice(**words)
    part = marked.slice(after=first)
    for call, sentence in (
        (lambda: part.branches(stream=1), "the slice is of stream 0"),
        (lambda: part.edges(by="time", bins=2), "a slice has no phases"),
        (lambda: list(part.iter_edges()), "edges have no position"),
    ):
        with pytest.raises(ptkit.ConfigError, match=sentence):
            call()


@pytest.mark.parametrize("table", ["packets", "branches", "blocks", "instructions", "events"])
def test_rows_by_offset(table: str, marked: Any) -> None:
    read = getattr(marked, table)
    every = read()
    low, high = int(every["offset"].min()) + 1, int(every["offset"].max())
    chosen = read(offset=(low, high))
    mask = (every["offset"] >= low) & (every["offset"] < high)
    assert chosen["offset"].tolist() == every["offset"][mask].tolist()
    assert set(chosen["stream"].tolist()) == {0, 1}
    assert len(read(offset=(None, None))) == len(every)
    assert len(read(offset=(0, 0))) == 0


def test_gaps_by_offset(open_trace: Any, loop: Any) -> None:
    trace = open_trace(b"\xff" * 10 + loop.stream(2), images=loop.images())
    (gap,) = trace.gaps.named("end")
    assert len(trace.branches(offset=(0, 1)).gaps) == 1
    assert len(trace.branches(offset=(gap + 1, None)).gaps) == 0
    for offset, sentence in (((5, 4), "must not be above"), (7, "no pair"), ((-1, 5), "offset: first")):
        with pytest.raises(ptkit.ConfigError, match=sentence):
            trace.branches(offset=offset)
    with pytest.raises(ptkit.ConfigError, match="edges have no position"):
        trace.edges(offset=(0, 5))
