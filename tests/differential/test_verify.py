"""`verify` finds differences, and leaves out only what libipt cannot judge."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from figures import need_libipt

import ptkit
from ptkit.analysis.known_differences import EventFilter
from ptkit.analysis.lockstep import Allowed, Arrays, Part, Rows, compare
from ptkit.analysis.verify import Report, verify

BASE = 0x401000
PSB = bytes.fromhex("0282") * 8
MODE_64 = bytes.fromhex("9901")
PSBEND = bytes.fromhex("0223")


def ip_packet(opcode: int, ip: int) -> bytes:
    return bytes([0x60 | opcode]) + ip.to_bytes(6, "little")


DISABLED = ip_packet(0x01, 0x700000)


def enabled(ip: int) -> bytes:
    return PSB + MODE_64 + PSBEND + ip_packet(0x11, ip)


def tip(ip: int) -> bytes:
    return ip_packet(0x0D, ip)


def verified(stream: bytes, code: bytes) -> Report:
    need_libipt()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return verify(ptkit.open(stream, images={BASE: code}))


def test_equal() -> None:
    # nop; jne +1; nop; jmp rax
    stream = enabled(BASE) + b"\x04" + tip(BASE) + b"\x06" + DISABLED + enabled(BASE) + b"\x04"
    report = verified(stream, bytes.fromhex("90750190ffe0"))
    assert report.same, str(report)
    assert report.matched["branches"] == 3
    assert not any(report.unjudged.values())


def test_pebs_blocks_are_expected() -> None:
    block = bytes.fromhex("026301") + b"\x04" + bytes(8) + bytes.fromhex("0233")  # BBP, BIP, BEP
    stream = enabled(BASE) + block + b"\x04" + tip(BASE) + DISABLED + enabled(BASE) + b"\x06" + tip(BASE)
    report = verified(stream, bytes.fromhex("90750190ffe0"))
    assert report.same, str(report)
    assert report.unjudged["packets"] > 3
    assert report.unjudged["instructions"] > 0
    assert any("PEBS" in reason for reason in report.reasons)
    assert "not judged by libipt" in str(report)


def test_exits_without_ip_are_expected() -> None:
    once = enabled(BASE) + b"\x04" + tip(BASE) + b"\x06\x01"  # TIP.PGD without IP at the second jmp rax
    for stream in (once, once + once):
        report = verified(stream, bytes.fromhex("90750190ffe0"))
        assert report.same, str(report)
        assert report.matched["instructions"] >= 7
        assert any("TIP.PGD without IP" in reason for reason in report.reasons) == (not libipt_knows_exits())


def test_cut_streams_are_expected() -> None:
    # The TIP of jmp rax is cut: libipt ends without an error, and names the code up to there.
    stream = enabled(BASE) + b"\x04" + tip(BASE)[:3]
    report = verified(stream, bytes.fromhex("90750190ffe0"))
    assert report.same, str(report)
    assert (report.errors, report.reference_errors) == (1, 0)


@pytest.mark.parametrize(
    ("version", "rtit_ctl", "judged"),
    [
        ((2, 3), 1 << 31, True),
        ((2, 3), 0x2000, False),  # event trace was off: neither gives any
        ((2, 3), None, False),  # libipt was not told
        ((2, 0), 1 << 31, False),
    ],
)
def test_interrupt_flags_are_judged_where_libipt_was_told(
    version: tuple[int, int], rtit_ctl: int | None, judged: bool
) -> None:
    kinds = np.array([ptkit.EventKind.IFLAG, ptkit.EventKind.PTWRITE], dtype=np.uint8)
    events: Arrays = {"kind": kinds, "flags": np.zeros(2, dtype=np.uint16), "payload": np.ones(2, np.uint64)}
    left = EventFilter(version, rtit_ctl).prepare(events)["kind"].tolist()
    assert left == kinds.tolist()[0 if judged else 1 :]


def libipt_knows_exits() -> bool:
    from ptkit import _core

    version = _core.reference_version()
    return version is not None and version[1] >= (2, 1)


def test_uncompressed_return_is_found() -> None:
    # main: call a; jmp rax.  a: call b; ret.  b: ret.  b returns by a TIP, a by a compressed return.
    code = bytearray(b"\x90" * 0x21)
    code[0:7] = bytes.fromhex("e80b000000ffe0")
    code[0x10:0x16] = bytes.fromhex("e80b000000c3")
    code[0x20] = 0xC3
    report = verified(enabled(BASE) + tip(BASE + 0x15) + b"\x06" + tip(BASE) + DISABLED, bytes(code))
    assert not report.same
    found = report.difference
    assert found is not None
    assert found.level == "instructions"
    assert found.ours is not None
    assert found.ours["ip"] == BASE + 5
    assert found.hint is not None
    assert [one.ip for one in found.ours_before][-2:] == [BASE + 0x15, BASE + 5]
    assert found.ours_before[-2].text.startswith("ret")
    assert any("TIP" in packet for packet in found.packets)
    text = str(report)
    assert "first difference: instructions" in text
    assert report.as_dict()["difference"]["row"] == found.row


class Fixed:
    """A reader of given rows."""

    def __init__(self, values: Sequence[int], errors: Sequence[int] = ()) -> None:
        self._values = list(values)
        self._errors = list(errors)

    def read(self, rows: int | None, stop_on_error: bool = False) -> Part:
        assert rows is not None
        taken, self._values = self._values[:rows], self._values[rows:]
        arrays: Arrays = {
            "ip": np.array([value % 1000 for value in taken], dtype=np.uint64),
            "offset": np.array(taken, dtype=np.uint64),
        }
        return len(taken), arrays, {}

    def errors(self) -> Part | None:
        taken, self._errors = self._errors, []
        return len(taken), {"offset": np.array(taken, dtype=np.uint64)}, {}


def because(error: Mapping[str, int]) -> str | None:
    return "known" if error["offset"] != 13 else None


@pytest.mark.parametrize(
    ("ours", "theirs", "errors", "matched", "unjudged", "differs"),
    [
        ([], [], [], 0, 0, False),
        (range(9), range(9), [], 9, 0, False),
        (range(9), range(8), [], 8, 0, True),
        (range(8), range(9), [], 8, 0, True),
        ([0, 1, 7, 3], range(4), [], 2, 0, True),
        (range(30), [*range(5), *range(20, 30)], [4], 15, 15, False),
        (range(30), [*range(5), *range(20, 30)], [], 5, 0, True),
        (range(30), [*range(5), *range(20, 30)], [13], 5, 0, True),
        (range(30), range(5), [4], 5, 25, False),
        (range(5), [*range(5), *range(20, 30)], [4], 5, 0, True),
        (range(30), [*range(5), *range(20, 30)], [4, 10], 15, 15, False),
        (range(40), [*range(5), *range(10, 15), *range(30, 40)], [4, 14], 20, 20, False),
    ],
)
def test_lockstep(
    ours: Sequence[int],
    theirs: Sequence[int],
    errors: Sequence[int],
    matched: int,
    unjudged: int,
    differs: bool,
) -> None:
    result = compare(Rows(Fixed(ours), ["ip"]), Rows(Fixed(theirs, errors), ["ip"]), Allowed(because))
    assert (result.matched, result.unjudged, result.differs) == (matched, unjudged, differs)
    assert (result.unexplained is not None) == (13 in errors)


def test_lockstep_across_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptkit.analysis.lockstep.PART_ROWS", 7)
    ours = Rows(Fixed(range(1000)), ["ip"])
    theirs = Rows(Fixed([*range(501), *range(700, 990), 5], [500]), ["ip"])
    result = compare(ours, theirs, Allowed(because))
    assert (result.matched, result.unjudged, result.differs) == (501 + 290, 199, True)
    assert ours.row() == {"ip": 990, "offset": 990}
    assert [row["ip"] for row in ours.history()] == list(range(974, 990))
