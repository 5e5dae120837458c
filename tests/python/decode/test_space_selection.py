"""Selection by address space: by its index, and by CR3."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptkit

_CR3 = (0x1_0000_A000, 0x2_0000_B000)
TABLES = ("branches", "blocks", "instructions", "events", "packets")


@pytest.fixture(params=["ptkit", "simple"])
def two_spaces(request: pytest.FixtureRequest, loop: Any, packets: Any) -> Any:
    """One stream of two processes that take turns, and another one of the second process."""

    def pip(cr3: int) -> bytes:
        return b"\x02\x43" + (cr3 >> 5 << 1).to_bytes(6, "little")

    def stay(cr3: int, rounds: int) -> bytes:
        turns = (packets.tnt("10") + packets.tip(loop.BASE)) * rounds
        return pip(cr3) + packets.pge(loop.BASE) + turns + packets.fup(loop.BASE) + packets.TIP_PGD

    header = packets.PSB + packets.MODE_64 + packets.PSBEND
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    for pid, cr3 in zip((11, 22), _CR3, strict=True):
        bundle.add_space(pid=pid, cr3=cr3)
    bundle.add_code(loop.BASE, loop.CODE)
    bundle.add_stream(header + b"".join(stay(_CR3[i % 2], 20 + i) for i in range(6)))
    bundle.add_stream(loop.stream(7), space=2, pid=22, tid=22)
    return ptkit.Trace(bundle, ptkit.decode.Settings(engine=request.param))


@pytest.mark.parametrize("table", TABLES)
def test_spaces_select_rows(two_spaces: Any, table: str) -> None:
    read = getattr(two_spaces, table)
    whole = read()
    for query, spaces in (
        ({"space": 1}, [1]),
        ({"space": [1, 2]}, [1, 2]),
        ({"cr3": _CR3[1]}, [2]),
        ({"cr3": _CR3[1] | 2}, [2]),  # with a PCID
        ({"cr3": list(_CR3), "space": 2}, [2]),
        ({"cr3": _CR3[0], "space": 2}, []),
    ):
        mask = np.isin(whole["space"], spaces)
        part = read(**query)
        assert len(part) == mask.sum(), query
        assert np.array_equal(part["offset"], np.asarray(whole["offset"])[mask]), query
    # Packets have the space of context switches, not of PIP packets.
    assert 0 < len(read(space=2)) < len(whole)
    assert table == "packets" or 0 < len(read(space=1)) < len(whole)


def test_edges_of_a_space(two_spaces: Any) -> None:
    whole = two_spaces.edges()
    part = two_spaces.edges(space=2)
    assert part["count"].tolist() == whole[whole["space"] == 2]["count"].tolist()
    assert len(part) > 0


def test_spaces_that_the_trace_does_not_have(two_spaces: Any) -> None:
    with pytest.raises(
        ptkit.ConfigError, match=r"no address space 7 in this trace: it has .*pid 22, CR3 0x2"
    ):
        two_spaces.branches(space=7)
    with pytest.raises(ptkit.ConfigError, match=r"no CR3 0x7000 in this trace: it has 0x10000a000, 0x2"):
        two_spaces.branches(cr3=0x7000)


def test_a_trace_without_cr3(loop_trace: Any) -> None:
    with pytest.raises(ptkit.ConfigError, match="no CR3 0x7000 in this trace: it has no CR3 of any process"):
        loop_trace.branches(cr3=0x7000)
    assert len(loop_trace.branches(space=0)) == len(loop_trace.branches())
