"""A file that is not what ran is said once, where its code contradicts the packets again and again."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from small_elf import elf

import ptkit
from ptkit import capture

BASE, SIZE, FUNCTIONS = 0x400000, 32, 12
JNZ = bytes.fromhex("750090")  # jnz +0; nop
SHARED = bytes.fromhex("909090")


def program(changed: range = range(0)) -> bytes:
    """Functions of three conditional branches, of two where they are changed, that lead to each other."""
    return b"".join(
        (JNZ * 2 + (SHARED if number in changed else JNZ) + bytes.fromhex("ffe0")).ljust(SIZE, b"\xcc")
        for number in range(FUNCTIONS)
    )


def stream(loop: Any, packets: Any, steps: int) -> bytes:
    """Functions in any order: after an error, decoding may go on several functions later."""
    chance = random.Random(steps)
    parts = [loop.header(None, 1000), packets.pge(BASE)]
    for step in range(1, steps + 1):
        ip = BASE + chance.randrange(FUNCTIONS) * SIZE
        parts.append(packets.tnt("101") + packets.tip(ip))
        if step % 300 == 0:
            parts.append(loop.header(ip, 1000 + step))
    return b"".join(parts)


@pytest.fixture
def opened(tmp_path: Path, open_trace: Any) -> Callable[..., Any]:
    """A trace of the program, or of one with other functions."""

    def make(data: bytes, changed: range = range(0), **options: Any) -> Any:
        path = tmp_path / "prog"
        path.write_bytes(elf(program(changed), BASE, "functions"))
        return open_trace(data, images=[path], **options)

    return make


def found(trace: Any) -> list[tuple[str, tuple[str, ...]]]:
    """Code and arguments of the warnings that came about after the trace was opened."""
    return [
        (one.code, tuple(one.arguments)) for one in trace.info.warnings if one.code == "FILE_LIKELY_OTHER"
    ]


def quietly(action: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return action()


READS: dict[str, Callable[[Any, int], Any]] = {
    "branches": lambda trace, threads: trace.branches(threads=threads),
    "instructions": lambda trace, threads: trace.instructions(threads=threads),
    "edges": lambda trace, threads: trace.edges(threads=threads),
    "calls": lambda trace, threads: trace.calls(threads=threads),
    "functions": lambda trace, threads: trace.functions(threads=threads),
    "errors": lambda trace, threads: trace.errors,
    "parts": lambda trace, threads: list(trace.iter_branches(rows=100, threads=threads)),
    "parts in reused memory": lambda trace, threads: sum(
        map(len, trace.iter_branches(rows=100, threads=threads, reuse=True))
    ),
    "parts of calls": lambda trace, threads: list(trace.iter_calls(threads=threads)),
}


@pytest.mark.parametrize("read", sorted(READS))
def test_another_build_is_said_once(read: str, opened: Any, loop: Any, packets: Any, tmp_path: Path) -> None:
    trace = opened(stream(loop, packets, 400), range(FUNCTIONS))
    with pytest.warns(
        ptkit.PtkitWarning, match=r"prog contradicts the packets \(\d+ decode errors\).*--image"
    ):
        READS[read](trace, 1)
    ((code, (count, path)),) = found(trace)
    assert code == "FILE_LIKELY_OTHER"
    assert int(count) >= 8
    assert path == str(tmp_path / "prog")
    READS[read](trace, 1)  # a second warning would be an error
    right = opened(stream(loop, packets, 400))
    READS[read](right, 1)
    assert found(right) == []


@pytest.mark.parametrize("read", sorted(READS))
def test_engines_and_threads_agree(read: str, opened: Any, loop: Any, packets: Any) -> None:
    data = stream(loop, packets, 36_000)  # cut into segments where there are threads
    said = {}
    for engine, threads in (("ptkit", 1), ("ptkit", 3), ("simple", 1)):
        trace = opened(data, range(FUNCTIONS), engine=engine)
        quietly(lambda: READS[read](trace, threads))  # noqa: B023
        said[engine, threads] = found(trace)
    assert len(said["ptkit", 1]) == 1
    assert said["ptkit", 3] == said["ptkit", 1]
    assert said["simple", 1] == said["ptkit", 1]


def test_a_patch_is_no_other_build(opened: Any, loop: Any, packets: Any) -> None:
    trace = opened(stream(loop, packets, 6000), range(3, 6))
    assert len(trace.branches().errors) > 300
    assert found(trace) == []


def test_rare_errors_are_no_other_build(opened: Any, loop: Any, packets: Any) -> None:
    """One in each 64 KiB, all at different addresses: trace was lost without a record."""
    data = b"".join(
        stream(loop, packets, 6600 + number) + packets.tnt("1") * 2 + packets.tip(BASE + number * SIZE)
        for number in range(FUNCTIONS)
    )
    trace = opened(data)
    assert len(trace.branches().errors) >= FUNCTIONS
    assert found(trace) == []


def test_damaged_packets_are_no_other_build(opened: Any, loop: Any, packets: Any) -> None:
    data = bytearray(stream(loop, packets, 36_000))
    chance = random.Random(7)
    for _ in range(len(data) // 400):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    trace = opened(bytes(data))
    assert len(quietly(trace.branches).errors) > 100
    assert found(trace) == []


def test_errors_without_a_file_are_not_counted(open_trace: Any, loop: Any, packets: Any) -> None:
    trace = open_trace(stream(loop, packets, 400), images=[{BASE: program(range(FUNCTIONS))}])
    assert len(trace.branches().errors) > 20
    assert found(trace) == []


@pytest.mark.skipif(
    not any(one.name == "emulator" and one.available for one in capture.probe()),
    reason="no emulator here: " + "; ".join(f"{one.name}: {one.detail}" for one in capture.probe()),
)
def test_recorded_program_with_code_that_moved(tmp_path: Path, open_trace: Any) -> None:
    path = build("branches", tmp_path, "-static")
    recording = ptkit.Recorder([path], tmp_path / "out.ptk", backend="emulator", quiet=True).run()
    trace = ptkit.open(recording)
    trace.export(tmp_path / "raw.pt", format="raw", stream=0)
    data = (tmp_path / "raw.pt").read_bytes()
    right = open_trace(data, images=[path], ranges=[])
    assert len(right.branches().errors) == 0
    assert found(right) == []
    image = bytearray(path.read_bytes())
    begin, end = 0x1000, 0x60000  # of the code
    image[begin:end] = image[begin + 4 : end] + bytes(4)
    path.write_bytes(image)
    moved = open_trace(data, images=[path], ranges=[])
    with pytest.warns(ptkit.PtkitWarning, match="contradicts the packets"):
        moved.branches()
    assert [name for name, _ in found(moved)] == ["FILE_LIKELY_OTHER"]
