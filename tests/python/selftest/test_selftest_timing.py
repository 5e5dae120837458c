"""Contradictions between timing packets: planted ones are found and named, and true streams have none."""

from __future__ import annotations

import numpy as np
import pytest

from ptkit import PacketKind
from ptkit.selftest.timing import Clock, Packets, contradictions, cycles_per_tick

RATIO = (84, 2)  # 42 TSC ticks for each tick of the crystal clock
PERIOD = 3
NONTURBO = 30
CLOCK = Clock(RATIO, PERIOD, NONTURBO)
MTC_TICKS = (1 << PERIOD) * RATIO[0] // RATIO[1]

Row = tuple[PacketKind, int, int]


def stream(anchors: int = 4, mtcs: int = 40, rate: float = 2.0) -> list[Row]:
    """TSC, TMA and CBR, then MTC packets with CYC packets between them, again and again."""
    rows: list[Row] = []
    ctc = 12_345
    for _ in range(anchors):
        tsc = ctc * RATIO[0] // RATIO[1] + 5
        rows += [(PacketKind.TSC, tsc, 0), (PacketKind.TMA, ctc & 0xFFFF, 5)]
        rows.append((PacketKind.CBR, int(NONTURBO * rate), 0))
        for _ in range(mtcs):
            ctc = ((ctc >> PERIOD) + 1) << PERIOD
            rows += [(PacketKind.CYC, int(MTC_TICKS * rate / 2), 0)] * 2
            rows.append((PacketKind.MTC, ctc >> PERIOD & 0xFF, 0))
        ctc += 2
    return rows


def packets(rows: list[Row]) -> Packets:
    kind, payload, payload2 = (list(column) for column in zip(*rows, strict=True))
    return Packets(
        np.array([int(one) for one in kind], dtype=np.uint8),
        np.array(payload, dtype=np.uint64),
        np.array(payload2, dtype=np.uint64),
    )


def rows_of(rows: list[Row], kind: PacketKind) -> list[int]:
    return [number for number, row in enumerate(rows) if row[0] == kind]


def test_true_stream_has_none() -> None:
    assert contradictions(packets(stream()), CLOCK) == []


def test_cycles_are_counted_for_each_tick() -> None:
    assert cycles_per_tick(packets(stream(rate=1.5)), RATIO, PERIOD) == pytest.approx(1.5, rel=0.01)


def test_tsc_that_goes_back() -> None:
    rows = stream()
    at = rows_of(rows, PacketKind.TSC)[2]
    rows[at] = (PacketKind.TSC, rows[at][1] - 40_000, 0)
    found = contradictions(packets(rows), CLOCK)
    assert any(sentence.startswith("TSC packet 2 is ") and "before" in sentence for sentence in found)


def test_mtc_counter_that_skips() -> None:
    rows = stream()
    del rows[rows_of(rows, PacketKind.MTC)[5]]
    found = contradictions(packets(rows), CLOCK)
    assert len(found) == 1
    assert found[0].startswith("MTC packet 5 has the counter")


def test_mtc_may_skip_where_packets_were_lost() -> None:
    rows = stream()
    at = rows_of(rows, PacketKind.MTC)[5]
    rows[at] = (PacketKind.OVF, 0, 0)
    assert contradictions(packets(rows), CLOCK) == []


def test_crystal_clock_at_another_rate() -> None:
    found = contradictions(packets(stream()), Clock((105, 2), PERIOD, NONTURBO))
    assert any("crystal clock advanced by" in sentence for sentence in found)


def test_mtc_packets_that_are_too_many() -> None:
    rows = stream()
    at = rows_of(rows, PacketKind.TSC)[1]
    (_, last, _) = rows[at - 1]
    more: list[Row] = [(PacketKind.MTC, (last + number) % 256, 0) for number in range(1, 4)]
    found = contradictions(packets(rows[:at] + more + rows[at:]), CLOCK)
    assert len(found) == 1
    assert found[0].startswith("between TSC packets 0 and 1 that have a TMA packet there are 43 MTC packets")


def test_mtc_packets_that_are_mostly_too_few() -> None:
    rows = stream()
    kept = [number for number in rows_of(rows, PacketKind.MTC) if number % 120 < 70]
    few = [row for number, row in enumerate(rows) if row[0] != PacketKind.MTC or number in kept]
    found = [one for one in contradictions(packets(few), CLOCK) if one.startswith("MTC packets come at 0.")]
    assert len(found) == 1


def test_mtc_packets_may_be_missing_while_tracing_was_off() -> None:
    rows = stream()
    first, last = rows_of(rows, PacketKind.MTC)[30], rows_of(rows, PacketKind.TSC)[1]
    assert contradictions(packets(rows[:first] + rows[last:]), CLOCK) == []


def test_first_mtc_after_a_tma_packet() -> None:
    rows = stream()
    at = rows_of(rows, PacketKind.TMA)[1]
    rows[at] = (PacketKind.TMA, rows[at][1] + (3 << PERIOD), rows[at][2])
    found = contradictions(packets(rows), Clock(None, PERIOD, None))
    assert len(found) == 1
    assert found[0].startswith("after TMA packet 1 the first MTC packet has the counter")


def test_cycles_against_the_core_bus_ratio() -> None:
    rows = [
        (kind, first // 2 if kind == PacketKind.CBR else first, second) for kind, first, second in stream()
    ]
    found = contradictions(packets(rows), CLOCK)
    assert found == [
        "CYC packets count 2.00 core cycles for each TSC tick, and CBR packets (30 of 30) give 1.00"
    ]


def test_ratio_that_is_not_known_leaves_the_order_of_mtc() -> None:
    rows = stream()
    del rows[rows_of(rows, PacketKind.MTC)[5]]
    assert len(contradictions(packets(rows), Clock(None, PERIOD, None))) == 1


@pytest.mark.parametrize("kinds", [[], [PacketKind.TSC], [PacketKind.TSC, PacketKind.TMA]])
def test_few_packets_are_no_contradiction(kinds: list[PacketKind]) -> None:
    rows = [row for row in stream() if row[0] in kinds]
    empty = Packets(*(np.zeros(0, dtype=kind) for kind in (np.uint8, np.uint64, np.uint64)))
    assert contradictions(packets(rows) if rows else empty, CLOCK) == []
