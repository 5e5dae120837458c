"""Branch records decode to the tables of Processor Trace."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from branch_records import KERNEL, records, user_records
from rounds import needs_emulator, record
from warned import warned

import ptkit
from ptkit import BranchKind, ErrorCode, GapCause, RecordFlag, RowFlag
from ptkit.cli import main

LOOP = bytes.fromhex("90 74fd 90 ebfa")  # 1000 nop; 1001 jz 1000; 1003 nop; 1004 jmp 1000
CODE = {0x1000: LOOP}
STORED = int(RowFlag.TAKEN | RowFlag.FROM_KNOWN | RowFlag.TO_KNOWN)


def as_records(trace: ptkit.Trace, stream: int, *, returns: bool) -> Any:
    """The same recording, as branch records, with the same code."""
    made = user_records(trace, stream, returns=returns)
    return ptkit.open_branches(made, image_callback=lambda ip, size, space: trace.code(ip, size))


def assert_same_flow(records: Any, trace: ptkit.Trace, stream: int) -> None:
    """Instructions, blocks, branches and edges of both, but for what the kernel is seen to do.

    No record has the path from the last branch to the program's end.
    """
    names = ["ip", "size", "cls"]
    ours, theirs = records.instructions(columns=names), trace.instructions(stream=stream, columns=names)
    assert 0 <= len(theirs) - len(ours) < 20
    for name in names:
        assert np.array_equal(ours[name], theirs[name][: len(ours)]), name
    assert_same_blocks(records, trace, stream)
    names = ["from_ip", "to_ip", "kind", "flags"]
    ours, theirs = records.branches(columns=names), trace.branches(stream=stream, columns=names)
    user = ours["from_ip"] != KERNEL
    count = int(user.sum())
    assert 0 <= len(theirs) - count < 10
    for name in ("from_ip", "to_ip", "kind"):
        assert np.array_equal(ours[name][user], theirs[name][:count]), name
    assert np.array_equal(ours["flags"][user] & STORED, theirs["flags"][:count] & STORED)
    assert set(ours["kind"][~user].tolist()) == {int(BranchKind.UNKNOWN)}
    known = (theirs["flags"] & int(RowFlag.TO_KNOWN)) != 0
    known[count:] = False
    expected = Counter(zip(*(theirs[name][known].tolist() for name in names[:3]), strict=True))
    edges = records.edges()
    edges = edges[edges["from_ip"] != KERNEL]
    rows = zip(*(edges[name].tolist() for name in names[:3]), strict=True)
    assert dict(zip(rows, edges["count"].tolist(), strict=True)) == expected


def assert_same_blocks(records: Any, trace: ptkit.Trace, stream: int) -> None:
    """Blocks of records are those of packets, where a PSB may have cut one in two."""
    names = ["ip", "instructions"]
    ours, theirs = records.blocks(columns=names), trace.blocks(stream=stream, columns=names)
    ends, their_ends = (np.cumsum(table["instructions"], dtype=np.uint64) for table in (ours, theirs))
    ours_in_theirs = np.searchsorted(their_ends, ends)
    assert np.array_equal(their_ends[ours_in_theirs], ends)
    assert np.array_equal(ours["ip"], theirs["ip"][np.append(0, ours_in_theirs[:-1] + 1)])
    kinds = trace.packets(stream=stream, columns=["kind"])["kind"]
    assert ours_in_theirs[-1] + 1 - len(ours) <= np.count_nonzero(kinds == ptkit.PacketKind.PSB)


@needs_emulator
@pytest.mark.parametrize("returns", [True, False], ids=["returns", "user_only"])
def test_recording_decodes_as_its_packets_do(rounds: Path, tmp_path: Path, returns: bool) -> None:
    trace = record([rounds, "10"], tmp_path)
    again = as_records(trace, 0, returns=returns)
    assert len(again.errors) == 0, str(again.errors)
    assert len(again.gaps) == 0
    if returns:
        assert_same_flow(again, trace, 0)
        return
    # No record has the path before the first taken branch and after the last one.
    ips = again.instructions(columns=["ip"])["ip"]
    truth = trace.instructions(columns=["ip"])["ip"]
    begin = int(np.argmax(truth == ips[0]))
    assert np.array_equal(ips, truth[begin : begin + len(ips)])
    assert len(truth) - len(ips) < 100


def test_branches_of_arrays() -> None:
    flags = [0, RecordFlag.PREDICTION_KNOWN, RecordFlag.PREDICTION_KNOWN | RecordFlag.PREDICTED]
    trace = ptkit.open_branches(
        {"from_ip": [0x1004, 0x1001, 0x1004], "to_ip": [0x1000] * 3, "flags": flags},
        images=CODE,
        tid=7,
        pid=3,
    )
    table = trace.branches()
    assert table.named("kind") == ["JUMP", "COND", "COND", "JUMP"]
    assert table["taken"].tolist() == [True, True, False, True]
    assert table["prediction_known"].tolist() == [False, True, False, True]
    assert table["predicted"].tolist() == [False, False, False, True]
    assert table["offset"].tolist() == [0, 1, 2, 2]
    assert table["tid"].tolist() == [7] * 4
    assert trace.instructions()["ip"].tolist() == [0x1004, 0x1000, 0x1001, 0x1000, 0x1001, 0x1003, 0x1004]
    assert trace.streams[0].kind == "branch records"
    assert "  0: 3 branch records, pid 3, tid 7" in str(trace.info)
    assert len(trace.events()) == 0


def test_arrays_of_every_form_are_records() -> None:
    pairs = np.array([[0x1004, 0x1000], [0x1001, 0x1000]], np.uint64)
    structured = records(pairs[:, 0], pairs[:, 1])
    ds = np.zeros((2, 3), "<u8")
    ds[:, :2] = pairs
    expected = ptkit.open_branches(structured, images=CODE).branches()
    assert expected["kind"].tolist() == [BranchKind.JUMP, BranchKind.COND]
    for form in (pairs, ds.tobytes(), bytearray(ds.tobytes() + bytes(24))):
        table = ptkit.open_branches(form, images=CODE).branches()
        for name in ("from_ip", "to_ip", "kind", "flags", "offset"):
            assert np.array_equal(table[name], expected[name]), name
    small = ptkit.open_branches(ds.astype("<u4").tobytes(), record_bytes=12, images=CODE)
    assert small.branches()["from_ip"].tolist() == [0x1004, 0x1001]
    assert set(small.blocks()["mode"].tolist()) == {32}


@pytest.mark.parametrize(
    ("branches", "error", "words"),
    [
        ({"from_ip": [1]}, ptkit.ConfigError, "no to_ip"),
        ({"from_ip": [1], "to_ip": [1, 2]}, ptkit.ConfigError, "same length"),
        ({"from_ip": [1], "to_ip": [-1]}, ptkit.ConfigError, "to_ip must be in"),
        ({"from_ip": [1], "to_ip": [1.5]}, ptkit.ConfigError, "integers"),
        ({"from_ip": [1], "to_ip": [1], "flags": [2**32]}, ptkit.ConfigError, "flags must be in"),
        ({"from_ip": [1], "to_ip": [1], "colour": [1]}, ptkit.ConfigError, "no field 'colour'"),
        ({"from_ip": [], "to_ip": []}, ptkit.FormatError, "no branches"),
        (bytes(25), ptkit.FormatError, "no whole number"),
        (bytes(48), ptkit.FormatError, "no branches"),
        (7, TypeError, "cannot open branches of int"),
        (
            np.zeros(96, np.uint8)[::2],
            ptkit.ConfigError,
            r"not contiguous in memory.*give numpy\.ascontiguousarray",
        ),
        (np.zeros((24, 4), np.uint8).T, ptkit.ConfigError, r"give numpy\.ascontiguousarray\(branches\)"),
    ],
)
def test_arrays_that_are_not_records_are_refused(branches: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ptkit.open_branches(branches)


def test_bad_size_of_records() -> None:
    with pytest.raises(ptkit.ConfigError, match="12, 24"):
        ptkit.open_branches(bytes(48), record_bytes=16)


def test_records_without_code_are_branches() -> None:
    trace = ptkit.open_branches({"from_ip": [0x1004] * 2, "to_ip": [0x1000] * 2})
    assert trace.branches().named("kind") == ["UNKNOWN"] * 2
    assert len(trace.instructions()) == 0
    assert len(trace.errors) == len(trace.gaps) == 0


def test_packets_are_one_error() -> None:
    trace = ptkit.open_branches({"from_ip": [0x1004], "to_ip": [0x1000]}, images=CODE)
    table = trace.packets()
    assert len(table) == 0
    assert table.errors["code"].tolist() == [ErrorCode.NO_PACKETS]
    assert "no packets" in table.errors.messages()[0]
    assert trace.packet_counts().errors == 0
    with pytest.raises(ptkit.DecodeError, match="no packets"):
        trace.packets(errors="raise")


@pytest.fixture
def timed() -> ptkit.Trace:
    """Times of every fourth record, a bad one, one that does not fit."""
    made = records([0x1004] * 16, [0x1000] * 16)
    made["tsc"][3::4] = [100, 200, 300, 400]
    made["to_ip"][9] = 1 << 60
    made["to_ip"][13] = 0x1003
    made["from_ip"][14] = 0x1001
    return ptkit.open_branches(made, images=CODE)


def test_damaged_records_are_errors_and_gaps(timed: ptkit.Trace) -> None:
    assert timed.errors["code"].tolist() == [ErrorCode.BAD_RECORD, ErrorCode.RECORD_MISMATCH]
    assert timed.gaps["cause"].tolist() == [GapCause.ERROR] * 2
    assert "impossible address" in timed.errors.messages()[0]
    assert "(at record 9, ip 0x1000000000000000)" in timed.errors.messages()[0]
    assert timed.errors["offset"].tolist() == [9, 14]
    assert timed.gaps["end"].tolist() == [10, 14]
    assert "control flow between records 8 and 10 is unknown" in timed.gaps.messages()[0]
    assert "from 0x1003 the code leads to the branch at 0x1004" in timed.errors.messages()[1]
    with pytest.raises(ptkit.DecodeError, match="impossible address"):
        timed.branches(errors="raise")


def test_record_times_are_row_times(timed: ptkit.Trace) -> None:
    table = timed.branches(taken=True)
    index = table["offset"]
    assert table["time_known"].tolist() == (index >= 4).tolist()
    known = index >= 4
    assert np.array_equal(table["tsc"][known], index[known] // 4 * 100)
    assert set(table["tsc_error"][known].tolist()) == {100}
    assert set(table.named("tsc_source")[4:]) == {"RECORD"}
    part = timed.branches(time=(200, 300), taken=True)
    assert set(part["offset"].tolist()) == {8, 10, 11}
    assert (
        timed.between(200, 300).instructions()["ip"].tolist()
        == timed.instructions(time=(200, 300))["ip"].tolist()
    )


TABLES = ("branches", "blocks", "instructions", "errors", "gaps")


def table_of(trace: ptkit.Trace, name: str) -> ptkit.Table:
    whole = getattr(trace, name)
    return whole() if callable(whole) else whole


def rows_of(table: ptkit.Table) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in zip(*(table[column].tolist() for column in table.columns), strict=True)]


def test_parts_are_the_whole(timed: ptkit.Trace) -> None:
    for name in TABLES[:3]:
        whole = table_of(timed, name)
        assert len(whole) > 3
        for reuse in (False, True):
            parts = getattr(timed, f"iter_{name}")(rows=3, reuse=reuse, columns=whole.columns)
            assert [row for part in parts for row in rows_of(part)] == rows_of(whole)


def test_engines_are_the_same(timed: ptkit.Trace, tmp_path: Path) -> None:
    path = tmp_path / "records.ptk"
    ptkit._core.save_bundle(timed.opened.bundle, bytes(path))
    simple = ptkit.open(path, engine="simple")
    assert simple.info.engine == "simple"
    for name in TABLES:
        rows = rows_of(table_of(timed, name))
        assert rows, name
        assert rows_of(table_of(simple, name)) == rows, name


def test_selections_of_records_select_rows(timed: ptkit.Trace) -> None:
    every = timed.branches(columns=["from_ip", "to_ip", "kind", "flags"])
    assert len(timed.branches(taken=False)) == int((~every["taken"]).sum()) > 0
    only = timed.branches(kind="COND", columns=["kind"])
    assert set(only["kind"].tolist()) == {int(BranchKind.COND)}
    assert len(timed.branches(ip=(0x1004, 0x1005))) > 0
    assert len(timed.instructions(ip=(0x1003, 0x1004))) == int((timed.instructions()["ip"] == 0x1003).sum())
    with pytest.raises(ptkit.ConfigError, match="no thread 5"):
        timed.branches(tid=5)


def test_format_of_records_is_forced(tmp_path: Path) -> None:
    ds = np.zeros((3, 3), "<u8")
    ds[:, 0], ds[:, 1], ds[1, 2] = 0x1004, 0x1000, 0x10
    path = tmp_path / "dump.bts"
    path.write_bytes(ds.tobytes() + bytes(48) + b"cut")
    with warned("BTS_RECORD_CUT", 3, 24):
        trace = ptkit.open(path, format="bts", images=CODE)
    assert len(trace.branches(taken=True)) == 3
    assert trace.branches(taken=True)["predicted"].tolist() == [False, True, False]
    assert trace.branches(taken=True)["prediction_known"].all()
    path.write_bytes(ds.astype("<u4").tobytes() + bytes(12))
    trace = ptkit.open(path, format="bts32", images=CODE)
    assert trace.branches(taken=True)["from_ip"].tolist() == [0x1004] * 3
    path.write_bytes(bytes(100))
    with pytest.raises(ptkit.FormatError, match="24 bytes each, found none"):
        ptkit.open(path, format="bts")
    with pytest.raises(ptkit.FormatError):  # nothing tells what it is
        ptkit.open(path)
    path.write_bytes(bytes(96))
    with pytest.raises(ptkit.FormatError, match="give the format bts or bts32"):
        ptkit.open(path)


@pytest.mark.skipif("libipt" not in ptkit._core.engines(), reason="libipt is not in this build")
def test_libipt_refuses_branch_records(tmp_path: Path) -> None:
    path = tmp_path / "dump.bts"
    path.write_bytes(np.array([0x1004, 0x1000, 0, 0, 0, 0], "<u8").tobytes())
    trace = ptkit.open(path, format="bts", images=CODE, engine="libipt")
    with pytest.raises(ptkit.UnsupportedError, match='use engine="ptkit"'):
        trace.branches()


# From, to, and what is printed before the record's own branch.
PRINTED = (
    (0x5000, 0x1003, "error gap"),  # no code at the first record
    (0x1004, 0x1000, ""),
    (0x1001, 0x5000, ""),
    (0x5010, 0x1000, "error gap"),  # none from 0x5000 on; one gap for as long as code is missing
    (0x1004, 0x1003, "0x1001"),
    (0x1001, 0x1000, "error gap"),  # 0x1003 does not lead to it
    (0, 0, "error gap"),
    (0x1004, 0x1000, ""),
)


def _dump(folder: Path) -> list[str]:
    """Arguments that open the records, with their code."""
    ds = np.zeros((len(PRINTED), 3), "<u8")
    ds[:, :2] = [row[:2] for row in PRINTED]
    dump, code = folder / "dump.bts", folder / "code.bin"
    dump.write_bytes(ds.tobytes())
    code.write_bytes(LOOP)
    return [str(dump), "--format", "bts", "--bts-index", "0", "--code", f"{code}@0x1000"]


@pytest.mark.parametrize("verb", ["branches", "branches --json", "packets --branches"])
def test_errors_and_gaps_stand_before_the_branch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    assert main([*verb.split(), *_dump(tmp_path)]) == 0
    lines = [_printed(line) for line in capsys.readouterr().out.splitlines()]
    wanted: list[str] = []
    for source, _, before in PRINTED:
        wanted += [*before.split(), *([hex(source)] if source else [])]
    assert [line for line in lines if line] == wanted


def test_a_limit_keeps_errors_with_their_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["branches", *_dump(tmp_path), "--limit", "3"]) == 0
    lines = [_printed(line) for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line][-3:] == ["0x1001", "error", "gap"]


def _printed(line: str) -> str:
    """``error``, ``gap``, or where a branch is."""
    if line.startswith("{"):
        row = json.loads(line)
        return {"errors": "error", "gaps": "gap"}.get(row["table"], row.get("from_ip", ""))
    kind = re.match(r"\[(error|gap):", line)
    if kind:
        return kind[1]
    source = re.search(r"\b([0-9a-f]{16}|0x[0-9a-f]+) (?:=>|--|>) ", line)
    return hex(int(source[1], 16)) if source else ""


def test_bundle_keeps_records(tmp_path: Path) -> None:
    made = records([0x1004] * 5, [0x1000] * 5)
    bundle = ptkit._core.Bundle()
    bundle.add_stream(made.view(np.uint8), kind="branch records", tid=9, pid=8)
    bundle.add_stream(bytes.fromhex("0282" * 8 + "0223"))
    bundle.add_code(0x1000, LOOP)
    for redact in (False, True):
        path = tmp_path / "x.ptk"
        ptkit._core.save_bundle(bundle, bytes(path), redact=redact)
        with warned("CPU_UNKNOWN"):
            trace = ptkit.open(path)
        assert [stream.kind for stream in trace.streams] == ["branch records", "packets"]
        assert trace.branches()["from_ip"].tolist()[:2] == [0x1004, 0x1001]
        assert trace.index(save=False).segments == 2
        assert len(trace.branches(ip=(0x1004, 0x1005), stream=0)) == 5


@pytest.mark.skipif("libipt" not in ptkit._core.engines(), reason="libipt is not in this build")
def test_verify_leaves_records_out(tmp_path: Path) -> None:
    from ptkit.analysis import verify

    bundle = ptkit._core.Bundle()
    bundle.add_stream(bytes.fromhex("0282" * 8 + "0223"))
    bundle.add_stream(records([0x1004], [0x1000]).tobytes(), kind="branch records")
    path = tmp_path / "x.ptk"
    ptkit._core.save_bundle(bundle, bytes(path))
    with warned("CPU_UNKNOWN"):
        trace = ptkit.open(path)
    done: list[int] = []
    report = verify.verify(trace, progress=done.append)
    assert report.same
    assert report.reasons[verify.NO_PACKETS] == 1
    with pytest.raises(ptkit.UnsupportedError, match="only branch records"):
        verify.verify(trace, streams=[1])
