"""Tenet's text has the rows of `instructions()` of a thread, and refuses what it cannot hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit.export import tenet


def addresses(path: Path, register: str = "rip") -> list[int]:
    """Read a file as Tenet does: values of a register, each after the instruction before it."""
    found = []
    for line in path.read_text().splitlines():
        name, _, value = line.partition("=")
        assert name == register
        found.append(int(value, 16))
    return found


def test_lines_are_the_instructions_in_order(
    loop_trace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenet, "_ROWS", 100)
    out = tmp_path / "loop.tenet.txt"
    done = loop_trace.export(out)
    assert (done.format, done.bytes, done.notes) == ("tenet", out.stat().st_size, ())
    assert addresses(out) == loop_trace.instructions()["ip"].tolist()
    ip = int(loop_trace.blocks()["ip"][-1])
    loop_trace.touching(ip).export(out)
    assert addresses(out) == loop_trace.touching(ip).instructions()["ip"].tolist()


def test_code_that_is_not_64_bit_has_another_register(open_trace: Any, packets: Any, tmp_path: Path) -> None:
    code = bytes.fromhex("90 90 cd 80")  # nop; nop; int 0x80
    stream = packets.PSB + bytes.fromhex("9902") + packets.PSBEND + packets.pge(0x1000) + packets.TIP_PGD
    trace = open_trace(stream, images=[(code, 0x1000)])
    trace.export(tmp_path / "x.tenet.txt")
    assert addresses(tmp_path / "x.tenet.txt", "eip") == [0x1000, 0x1001, 0x1002]


def test_threads_are_not_mixed(spaces: Any, tmp_path: Path) -> None:
    out = tmp_path / "x.tenet.txt"
    with pytest.raises(
        ptkit.ConfigError, match=r"thread 1 of process 1 and thread 2 of process 2 are .*--tid"
    ):
        spaces.export(out)
    assert not list(tmp_path.glob("x*"))
    spaces.export(out, tid=2)
    assert addresses(out) == spaces.instructions(tid=2)["ip"].tolist()


def two_processors(packets: Any, times: tuple[bytes, bytes]) -> ptkit.Trace:
    """A thread that was executed on two processors."""
    bundle = ptkit._core.Bundle()
    for time, ip in zip(times, (0x1000, 0x2000), strict=True):
        bundle.add_code(ip, bytes.fromhex("90 0f 05"))  # nop; syscall
        begin = packets.PSB + time + packets.MODE_64 + packets.PSBEND
        bundle.add_stream(begin + packets.pge(ip) + packets.TIP_PGD, pid=7, tid=7)
    return ptkit.Trace(bundle, ptkit.decode.Settings())


def test_a_thread_of_several_processors_is_in_order_of_time(packets: Any, tmp_path: Path) -> None:
    trace = two_processors(packets, (packets.tsc(9000), packets.tsc(1000)))  # the second one is earlier
    assert trace.export(tmp_path / "x.tenet.txt").notes == ()
    assert addresses(tmp_path / "x.tenet.txt") == [0x2000, 0x2001, 0x1000, 0x1001]


@pytest.mark.parametrize(("first", "said"), [(b"", "streams 0, 1"), (b"time", "stream 1")])
def test_without_times_it_is_said_that_the_order_of_processors_is_not_known(
    packets: Any, tmp_path: Path, first: bytes, said: str
) -> None:
    trace = two_processors(packets, (first and packets.tsc(9000), b""))
    [note] = trace.export(tmp_path / "x.tenet.txt").notes
    assert note.startswith(f"no times in {said}: ")
    assert trace.export(tmp_path / "x.tenet.txt", stream=1).notes == ()


def test_losses_and_long_files_are_noted(
    loop: Any, open_trace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenet, "_RECOMMENDED", 10)
    trace = open_trace(loop.stream(5), images=loop.images())
    rows, *others = trace.export(tmp_path / "x.tenet.txt").notes
    assert rows.startswith(f"{len(trace.instructions()):,} instructions: Tenet is made for 10 at most")
    assert not others
    stream = loop.stream(5)
    broken = open_trace(stream[: len(stream) // 2] + b"\x02\xff" + stream, images=loop.images())
    assert len(broken.errors)
    assert any("rows may be missing" in note for note in broken.export(tmp_path / "x.tenet.txt").notes)
