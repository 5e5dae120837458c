"""Encode, then decode: the same packets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptkit
from ptkit import PacketFlag, PacketKind

encode = getattr(ptkit._core, "encode_packets", None)
if encode is None:
    pytest.skip("the core has no encoder", allow_module_level=True)

U64 = st.integers(0, 2**64 - 1)
IP_FIELDS = {0: 0, 1: 16, 2: 32, 3: 48, 4: 48, 6: 64}  # IPBytes: bits of payload
ADDRESS_52 = st.integers(0, 2**52 - 1)


def _packet(kind: PacketKind, payload: Any = 0, payload2: Any = 0, flags: Any = 0) -> st.SearchStrategy[Any]:
    def constant(value: Any) -> Any:
        return value if isinstance(value, st.SearchStrategy) else st.just(value)

    return st.tuples(st.just(int(kind)), constant(payload), constant(payload2), constant(flags))


def _flag(flag: PacketFlag) -> st.SearchStrategy[int]:
    return st.sampled_from([0, int(flag)])


@st.composite
def _ip(draw: Any, kind: PacketKind) -> Any:
    field = draw(st.sampled_from(sorted(IP_FIELDS)))
    return int(kind), draw(st.integers(0, 2 ** IP_FIELDS[field] - 1)), field, 0


@st.composite
def _tnt(draw: Any, kind: PacketKind, most: int) -> Any:
    count = draw(st.integers(1, most))
    return int(kind), draw(st.integers(0, 2**count - 1)), count, 0


@st.composite
def _trig(draw: Any) -> Any:
    flags = draw(_flag(PacketFlag.MULT)) | draw(_flag(PacketFlag.ICNT)) | draw(_flag(PacketFlag.IP_BIT))
    icnt = draw(st.integers(0, 0xFFFF)) if flags & PacketFlag.ICNT else 0
    return int(PacketKind.TRIG), draw(st.integers(0, 0xFF)), icnt, flags


@st.composite
def _mode_exec(draw: Any) -> Any:
    bits = draw(st.integers(0, 7))  # CS.L | CS.D << 1 | IF << 2
    width = {0: 16, 1: 64, 2: 32, 3: 0}[bits & 3]
    return int(PacketKind.MODE_EXEC), width, bits, 0


K = PacketKind
BYTE, WORD, DWORD = st.integers(0, 0xFF), st.integers(0, 0xFFFF), st.integers(0, 2**32 - 1)
PACKETS = st.one_of(
    *(_ip(kind) for kind in (K.TIP, K.TIP_PGE, K.TIP_PGD, K.FUP)),
    _tnt(K.TNT_8, 6),
    _tnt(K.TNT_64, 47),
    _trig(),
    _packet(K.PIP, st.integers(0, 2**47 - 1).map(lambda n: n << 5), 0, _flag(PacketFlag.NR)),
    _packet(K.VMCS, st.integers(0, 2**40 - 1).map(lambda n: n << 12)),
    _packet(K.MODE_TSX, st.integers(0, 2)),
    _packet(K.TSC, st.integers(0, 2**56 - 1)),
    _packet(K.MTC, BYTE),
    _packet(K.TMA, WORD, st.integers(0, 0x1FF)),
    _packet(K.CYC, st.integers(0, 2**40)),
    _packet(K.CBR, BYTE),
    _packet(K.OVF),
    _packet(K.TRACE_STOP),
    _packet(K.MNT, U64),
    _packet(K.PTW, DWORD, 0, _flag(PacketFlag.IP_BIT)),
    _packet(K.PTW, U64, 1, _flag(PacketFlag.IP_BIT)),
    _packet(K.EXSTOP, 0, 0, _flag(PacketFlag.IP_BIT)),
    _packet(K.EVD, st.integers(0, 0x1F), U64),
    _packet(K.CFE, st.integers(0, 0x1F), BYTE, _flag(PacketFlag.IP_BIT)),
    _packet(K.MWAIT, BYTE, st.integers(0, 3)),
    _packet(K.PWRE, BYTE, 0, _flag(PacketFlag.HW)),
    _packet(K.PWRX, BYTE, st.sampled_from([0, 1, 4, 5, 8, 9, 12, 13])),
    _packet(K.PSB),
    _packet(K.PSBEND),
    _mode_exec(),
)


@st.composite
def _block(draw: Any) -> list[Any]:
    """BBP, its items, and BEP."""
    size_bit = draw(st.integers(0, 1))
    rows = [(int(K.BBP), draw(st.integers(0, 0x1F)), size_bit, 0)]
    for _ in range(draw(st.integers(0, 4))):
        value = draw(DWORD if size_bit else U64)
        rows.append((int(K.BIP), draw(st.integers(0, 0x1F)), value, 0))
    return [*rows, (int(K.BEP), 0, 0, draw(_flag(PacketFlag.IP_BIT)))]


SEQUENCES = st.lists(st.one_of(PACKETS.map(lambda row: [row]), _block()), min_size=1, max_size=40)


@settings(deadline=None, max_examples=150)
@given(sequences=SEQUENCES)
def test_encode_then_decode_is_the_identity(sequences: list[list[tuple[int, int, int, int]]]) -> None:
    assert encode is not None
    rows = [row for sequence in sequences for row in sequence]
    columns = [np.array(column, dtype=np.uint64) for column in zip(*rows, strict=True)]
    data = encode(*columns)
    table = ptkit.packets(data, columns=["kind", "payload", "payload2", "flags", "size"])
    assert len(table.errors) == 0
    carried = int(PacketFlag.IP_BIT | PacketFlag.NR | PacketFlag.HW | PacketFlag.MULT | PacketFlag.ICNT)
    decoded = zip(
        table["kind"].tolist(),
        table["payload"].tolist(),
        table["payload2"].tolist(),
        (table["flags"] & carried).tolist(),
        strict=True,
    )
    assert list(decoded) == rows
    assert int(table["size"].sum()) == len(data)


def test_every_kind_is_covered() -> None:
    covered = {row[0] for row in _examples()}
    missing = {kind.name for kind in PacketKind if int(kind) not in covered}
    # A run of PAD is one row, however it was written; INVALID has no bytes of its own.
    assert missing <= {"PAD", "INVALID"}


def _examples() -> list[tuple[int, int, int, int]]:
    found: list[tuple[int, int, int, int]] = []

    @settings(deadline=None, max_examples=300, database=None, derandomize=True)
    @given(sequences=SEQUENCES)
    def collect(sequences: list[list[tuple[int, int, int, int]]]) -> None:
        found.extend(row for sequence in sequences for row in sequence)

    collect()
    return found


@given(st.lists(st.integers(1, 100), min_size=1, max_size=5))
def test_runs_of_pad_are_one_row(sizes: list[int]) -> None:
    table = ptkit.packets(b"\x02\x23".join(b"\x00" * size for size in sizes))
    assert table["payload"][table["kind"] == PacketKind.PAD].tolist() == sizes
