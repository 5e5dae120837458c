"""What a raw stream was recorded with: address ranges, IA32_RTIT_CTL; packets before the first PSB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit import _core

_CALL_OUT = {0x1000: bytes.fromhex("e8 fb1f0000 90 90 ffe0")}  # call 3000; nop; nop; jmp rax
_RETURN = {0x1000: bytes.fromhex("e8 0b000000 7400 ffe0") + bytes(7) + b"\xc3"}  # call 1010; jz; ...; ret
_DIS_RETC = 1 << 11
_MTC_EN, _MTC_FREQ_5 = 1 << 9, 5 << 14
_NINE = bytes.fromhex("711093388506f80000")
ENGINES = ["ptkit", "simple", *(["libipt"] if "libipt" in _core.engines() else [])]


def _calls_out(packets: Any) -> bytes:
    """A call out of the range of the filter, and the stream behind it."""
    header = packets.PSB + packets.MODE_64 + packets.PSBEND
    return bytes(header + packets.pge(0x1000) + packets.TIP_PGD + packets.pge(0x1005) + packets.tip(0x1000))


@pytest.mark.parametrize("engine", ENGINES)
def test_ranges_say_where_a_direct_call_left(packets: Any, open_trace: Any, engine: str) -> None:
    stream = _calls_out(packets)
    ranges = [("filter", 0x1000, 0x1FFF)]
    trace = open_trace(stream, images=_CALL_OUT, engine=engine, ranges=ranges)
    assert trace.info.ranges == tuple(ranges)
    branches = trace.branches()
    assert branches.errors.messages() == []
    assert branches["from_ip"].tolist()[:2] == [0x1000, 0x1007]
    if engine == "libipt":
        return  # it does not say where the call went
    assert branches["to_ip"].tolist()[0] == 0x3000
    bare = open_trace(stream, images=_CALL_OUT, engine=engine).branches()
    assert bare.errors.named("code") == ["NO_CODE"]


def test_ranges_are_checked(loop: Any, open_trace: Any) -> None:
    assert open_trace(loop.stream(1), ranges=[]).info.ranges == ()
    for ranges in ([("on", 1, 2)], [("filter", 2, 1)], [("filter", 1, 2)] * 5, [3], 7, "filter"):
        with pytest.raises(ptkit.ConfigError, match="ranges"):
            open_trace(loop.stream(1), ranges=ranges)


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
def test_rtit_ctl_says_whether_returns_are_compressed(packets: Any, open_trace: Any, engine: str) -> None:
    header = packets.PSB + packets.MODE_64 + packets.PSBEND
    stream = header + packets.pge(0x1000) + packets.tnt("1") + packets.tip(0x1005)
    plain = open_trace(stream, images=_RETURN, engine=engine, rtit_ctl=_DIS_RETC)
    assert plain.info.rtit_ctl == _DIS_RETC
    assert plain.branches().errors.messages() == []
    assert plain.branches().named("kind") == ["CALL", "RETURN", "COND"]
    assert open_trace(stream, images=_RETURN, engine=engine).branches().errors.named("code") == [
        "TNT_MISMATCH"
    ]


def test_rtit_ctl_has_the_mtc_period(loop: Any, open_trace: Any) -> None:
    def period(**settings: int) -> Any:
        return open_trace(loop.stream(1), **settings).info.mtc_period

    assert period(rtit_ctl=_MTC_EN | _MTC_FREQ_5) == 5
    assert period(rtit_ctl=_MTC_EN | _MTC_FREQ_5, mtc_period=3) == 3
    assert period(rtit_ctl=_MTC_FREQ_5) is None
    with pytest.raises(ptkit.ConfigError, match="rtit_ctl"):
        period(rtit_ctl=2**64)


def test_settings_stay_in_a_saved_bundle(packets: Any, open_trace: Any, tmp_path: Path) -> None:
    ranges = [("filter", 0x1000, 0x1FFF), ("stop", 0x5000, 0x5FFF)]
    open_trace(_calls_out(packets), ranges=ranges, rtit_ctl=0x2409).save(tmp_path / "a.ptk")
    info = open_trace(tmp_path / "a.ptk").info
    assert info.ranges == tuple(ranges)
    assert info.rtit_ctl == 0x2409


def test_packets_before_the_first_psb(loop: Any, open_trace: Any, tmp_path: Path) -> None:
    path = tmp_path / "nine.bin"
    path.write_bytes(_NINE)
    with pytest.raises(ptkit.FormatError, match="without a PSB packet"):
        open_trace(path)
    trace = open_trace(path, sync=False)
    table = trace.packets()
    assert table.named("kind") == ["TIP_PGE", "PAD"]
    assert int(table["ip"][0]) == 0xFFFFF80685389310
    assert len(table.errors) == len(table.gaps) == 0
    assert trace.packet_counts()[ptkit.PacketKind.TIP_PGE] == 1
    path.write_bytes(_NINE + loop.stream(3))
    assert open_trace(path).packets().named("kind")[0] == "PSB"
    assert open_trace(path, sync=False).packets().named("kind")[:3] == ["TIP_PGE", "PAD", "PSB"]
    with pytest.raises(ptkit.ConfigError, match="sync"):
        open_trace(path, sync=1)


_PATCHED = {0x1000: bytes.fromhex("90 ffd0 0f05")}  # nop; call rax; syscall


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
@pytest.mark.parametrize("settings", [{"ranges": []}, {"rtit_ctl": 0x2009}], ids=["ranges", "rtit_ctl"])
def test_no_filter_means_that_no_call_disables(
    packets: Any, open_trace: Any, engine: str, settings: Any
) -> None:
    header = packets.PSB + packets.MODE_64 + packets.PSBEND
    stream = header + packets.pge(0x1000) + packets.TIP_PGD + packets.pge(0x1000) + packets.tip(0x1003)
    stream += packets.TIP_PGD
    known = open_trace(stream, images=_PATCHED, engine=engine, **settings)
    assert known.branches().named("kind") == ["CALL_INDIRECT", "SYSCALL"]
    assert known.errors.named("code") == ["TNT_MISMATCH"]
    assert "cannot disable them" in known.errors.messages()[0]
    unknown = open_trace(stream, images=_PATCHED, engine=engine)
    assert unknown.branches().named("kind") == ["CALL_INDIRECT", "CALL_INDIRECT", "SYSCALL"]
    assert len(unknown.errors) == 0


# 1000 call 1010; 1005 jmp rax; 1010 jz 1012; 1012 ret: calls of 1010 leave the filter without an IP.
_FILTERED = {0x1000: bytes.fromhex("e80b000000 ffe0") + bytes(9) + bytes.fromhex("7400 c3")}


def test_signs_of_a_filter_make_a_warning(packets: Any, open_trace: Any) -> None:
    header = packets.PSB + packets.MODE_64 + packets.PSBEND
    once = packets.pge(0x1000) + packets.TIP_PGD + packets.pge(0x1005) + packets.tip(0x1000) + packets.TIP_PGD
    one = open_trace(header + packets.pge(0x1000) + packets.TIP_PGD, images=_FILTERED, cpu="6/142/9")
    for _ in range(3):  # the same address is no second sign
        assert len(one.branches()) == 2
    assert len(one.edges()) == 1
    assert one.info.warnings == ()
    trace = open_trace(header + once, images=_FILTERED, cpu="6/142/9")
    with pytest.warns(ptkit.PtkitWarning, match="--range"):
        trace.branches()
    assert [warning.code for warning in trace.info.warnings] == ["FILTER_LIKELY"]
    trace.branches()  # said once
    given = open_trace(header + once, images=_FILTERED, ranges=[("filter", 0x1000, 0x1007)])
    assert [int(ip) for ip in given.branches()["from_ip"]] == [0x1000, 0x1005, 0x1000]
