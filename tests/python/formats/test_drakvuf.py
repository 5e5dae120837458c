"""DRAKVUF's streams: PTW packets that it inserts name the running thread and the events of its log."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_elf import elf
from warned import of_code, trace_warnings, warned

import ptkit
from ptkit import _core
from ptkit.cli import main

_BASE = 0x1000
_ONE = bytes.fromhex("ffc975fcffe0")  # again: dec ecx; jnz again; jmp rax
_OTHER = bytes.fromhex("48ffc975fbffe0")  # the same with rcx: its branches are one byte further on
_CR3 = {11: 0x1_0000_A000, 22: 0x2_0000_B000}
_CURRENT_CR3, _CURRENT_TID, _EVENT = 0xC3000000, 0x1D000000, 0xCC000000


def _ptw(command: int, data: int) -> bytes:
    return b"\x02\x32" + struct.pack("<II", data & 0xFFFFFFFF, command)


def _run(packets: Any, rounds: int) -> bytes:
    """The loop `rounds` times; the guest then leaves to the hypervisor, where packets are off."""
    turns = b"".join(packets.tnt("10") + packets.tip(_BASE) for _ in range(rounds))
    return bytes(packets.pge(_BASE) + turns + packets.fup(_BASE) + packets.TIP_PGD)


def _comes(tid: int) -> bytes:
    pip = b"\x02\x43" + (_CR3[tid] >> 5 << 1).to_bytes(6, "little")
    return _ptw(_CURRENT_CR3, _CR3[tid]) + _ptw(_CURRENT_TID, tid) + pip


@pytest.fixture
def folder(tmp_path: Path, packets: Any) -> Path:
    """Thread 11, an event, thread 22 of another process, an event, thread 11 again."""
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND
    for tid, rounds, event in ((11, 4, 0x31), (22, 5, 0x32), (11, 6, 0x33)):
        stream += _comes(tid) + _run(packets, rounds) + _ptw(_EVENT, event) + _run(packets, 1)
    (tmp_path / "ipt" / "dumps").mkdir(parents=True)
    (tmp_path / "ipt" / "ipt_stream_vcpu0").write_bytes(stream)
    frames = []
    for tid, code in ((11, _ONE), (22, _OTHER)):
        (tmp_path / "ipt" / "dumps" / f"{tid}").write_bytes(code.ljust(4096, b"\xcc"))
        where = {"CR3": hex(_CR3[tid]), "PageVA": "0x1000", "TrapPA": hex(tid << 12), "DumpFile": f"/x/{tid}"}
        thread = {"PID": tid * 10, "TID": tid, "ProcessName": "C:\\some.exe"}
        frames.append(json.dumps({"EventType": "execframe", **where, **thread}))
    (tmp_path / "codemon.log").write_text("\n".join(frames) + "\n")
    events = [{"Plugin": "syscall", "EventUID": hex(uid), "Method": f"Nt{uid}"} for uid in (0x31, 0x32, 0x33)]
    (tmp_path / "drakmon.log").write_text("".join(json.dumps(event) + "\n" for event in events))
    return tmp_path


@pytest.mark.parametrize("engine", ["ptkit", "simple", "libipt"])
def test_rows_belong_to_threads_and_their_code(folder: Path, open_trace: Any, engine: str) -> None:
    if engine == "libipt" and "libipt" not in _core.engines():
        pytest.skip("built without libipt")
    trace = open_trace(folder, engine=engine)
    assert trace.format == "drakvuf"
    assert trace.errors.messages() == []
    branches = trace.branches(columns=["from_ip", "kind", "pid", "tid", "space"])
    for tid, code, rounds in ((11, _ONE, 4 + 1 + 6 + 1), (22, _OTHER, 5 + 1)):
        own = branches.where(tid=tid, kind=ptkit.BranchKind.COND)
        assert len(own) == 2 * rounds
        assert set(own["from_ip"].tolist()) == {_BASE + code.index(0x75)}
        assert set(own["pid"].tolist()) == {10 * tid}
    events = trace.events(columns=["kind", "ip_known", "tid"])
    assert not events.where(kind=ptkit.EventKind.PTWRITE)["ip_known"].any()


@pytest.mark.parametrize("table", ["branches", "instructions", "packets", "events"])
def test_rows_are_selected_by_cr3(folder: Path, open_trace: Any, table: str) -> None:
    trace = open_trace(folder)
    read = getattr(trace, table)
    for tid, cr3 in _CR3.items():
        of_thread, of_space = read(tid=tid, columns=["offset"]), read(cr3=cr3, columns=["offset"])
        assert np.array_equal(of_space["offset"], of_thread["offset"])
        assert len(of_space) > 0


def test_packets_belong_to_threads(folder: Path, open_trace: Any) -> None:
    trace = open_trace(folder)
    packets = trace.packets(columns=["offset", "kind", "tid"])
    switches = packets["tid"][1:] != packets["tid"][:-1]
    kinds = np.asarray(packets["kind"])[1:][switches]
    assert (kinds == int(ptkit.PacketKind.PTW)).all()
    assert switches.sum() == 3


def test_bundle_keeps_threads(folder: Path, open_trace: Any, tmp_path: Path) -> None:
    first = open_trace(folder)
    ptkit.redact(folder / "ipt", tmp_path / "saved.ptk")
    again = open_trace(tmp_path / "saved.ptk")
    for table in ("branches", "events", "packets"):
        old, new = getattr(first, table)(), getattr(again, table)()
        assert len(old) == len(new) > 0
        for name in ("tid", "pid", "offset"):
            assert np.array_equal(old[name], new[name]), (table, name)


def test_events_are_joined_to_the_log(folder: Path, open_trace: Any) -> None:
    # As docs/formats.md has it.
    pandas = pytest.importorskip("pandas")
    trace = open_trace(folder)
    marks = trace.events().where(kind=ptkit.EventKind.PTWRITE)
    marks = marks.to_pandas(["stream", "offset", "tid", "payload"]).astype({"payload": "uint64"})
    marks["command"], marks["uid"] = marks.payload // 2**32, marks.payload % 2**32
    marks = marks[marks.command == 0xCC000000]
    log = pandas.read_json(folder / "drakmon.log", lines=True)
    log["uid"] = [int(uid, 16) for uid in log.EventUID]
    joined = marks.merge(log, on="uid")
    assert joined.Method.tolist() == ["Nt49", "Nt50", "Nt51"]
    assert joined.tid.tolist() == [11, 22, 11]


def test_annotations_are_printed_in_words(
    folder: Path, open_trace: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"drakvuf: tid 11", "drakvuf: cr3 0xa000 (low 32 bits)", "drakvuf: event 0x31"}
    ptkit.redact(folder / "ipt", tmp_path / "saved.ptk")
    for source in (folder, tmp_path / "saved.ptk"):
        for verb, shown in (
            ("packets", "ptw        1: 1d0000000000000b      drakvuf: tid 11"),
            ("events", "ptwrite: 1d0000000000000b, drakvuf: tid 11"),
            ("instructions", "[ptwrite: 1d0000000000000b, drakvuf: tid 11]"),
        ):
            assert main([verb, str(source), "--processor", "6/142/9"]) == 0
            out = capsys.readouterr().out
            assert shown in out, verb
            assert all(text in out for text in words), verb
    messages = open_trace(folder).packets(columns=["kind", "payload", "payload2", "flags"]).messages()
    assert any(text.endswith("drakvuf: event 0x33") for text in messages)


def test_values_of_the_traced_program_are_no_annotations(loop: Any, packets: Any, open_trace: Any) -> None:
    stream = loop.header(None, 1000) + packets.pge(_BASE) + _ptw(_CURRENT_TID, 11) + packets.tnt("10")
    for rtit_ctl, expected in ((None, False), (1 << 12, False), (0, True)):
        trace = open_trace(stream, images=loop.images(), rtit_ctl=rtit_ctl)
        assert any("drakvuf: tid 11" in text for text in trace.packets().messages()) is expected


def test_images_name_the_code_of_page_dumps(folder: Path, tmp_path: Path) -> None:
    image = tmp_path / "some.exe"
    image.write_bytes(elf(_ONE, _BASE, "again"))
    with pytest.warns(ptkit.PtkitWarning) as said:
        trace = ptkit.open(folder, cpu="6/142/9", images=[image])
    # The page of the second process holds other code.
    (differs,) = of_code(trace_warnings(said), "IMAGE_DIFFERS")
    assert differs.arguments == ("1", "2")
    assert differs.startswith(f"image {image}: ")
    branches = trace.branches(tid=11, columns=["from_symbol"])
    assert set(branches["from_symbol"].tolist()) == {"again"}
    by_name = trace.branches(symbol="again")
    by_address = trace.branches(ip=(_BASE, _BASE + len(_ONE)))
    assert len(by_name) == len(by_address) > 0
    assert np.array_equal(by_name["from_ip"], by_address["from_ip"])
    assert len(trace.instructions(module="some.exe")) == len(trace.instructions())
    assert trace.symbolize([_BASE + 2], space=1) == ["again+0x2"]


def test_symbols_that_no_file_has_are_refused(folder: Path, tmp_path: Path, open_trace: Any) -> None:
    image = tmp_path / "some.exe"
    image.write_bytes(elf(_ONE, _BASE, "again"))
    with pytest.raises(ptkit.SymbolError, match="no symbol 'agin'; did you mean again"):
        open_trace(folder, images=[image]).branches(symbol="agin")
    with pytest.raises(ptkit.SymbolError, match="the trace has no files with symbols: give images="):
        open_trace(folder).branches(symbol="again")


def test_images_beside_page_dumps_are_not_warned_of(folder: Path, tmp_path: Path) -> None:
    image = tmp_path / "some.exe"
    image.write_bytes(elf(_ONE, 0x2000, "again"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ptkit.open(folder, cpu="6/142/9", images=[image])
    assert of_code(trace_warnings(said), "IMAGE_DIFFERS") == []


def test_page_tables_of_another_process_are_warned_of(folder: Path) -> None:
    line = {"EventType": "syscall", "CR3": hex(_CR3[11]), "PID": 999}
    with (folder / "codemon.log").open("a") as log:
        log.write(json.dumps(line) + "\n")
    with warned("DRAKVUF_CR3_REUSED", 1):
        ptkit.open(folder, cpu="6/142/9")
