"""Recordings by ptkit-capture.exe in Wine, with the driver's test build, decoded here.

The traced program (traced_program.c) has the model execute random blocks on all of its processors. Blocks
begin at multiples of their size, and no other instruction does: so the instructions at such addresses, in
order, are the blocks that were executed.
"""

from __future__ import annotations

import array
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mingw import compile_program
from small_pe import pe
from windows_driver import INCLUDES, TEST_INCLUDES
from wine import SECONDS, Wine

import ptkit

HERE = Path(__file__).resolve().parent
BASE, IMAGE_BYTES = 0x140000000, 0x5000  # as traced_program.c has them
BLOCK_BYTES = 32
TRACED, STORED, BRANCH = 1 << 63, 1 << 62, 1 << 61
IP = (1 << 61) - 1  # of an entry of the log: the model has user code below

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Recorder:
    """The recorder and the traced program, with the driver loaded."""

    wine: Wine
    recorder: Path
    program: Path

    @property
    def image(self) -> Path:
        """The file of the model's code."""
        return self.wine.folder / "model.exe"

    def command(self, folder: Path, verb: str, blocks: int, *options: str) -> list[str]:
        """Arguments of a recording; its files are in `folder`, which is made here."""
        folder.mkdir()
        kernel_name = "\\??\\Z:" + str(self.image).replace("/", "\\")
        return [
            "record", "-o", str(folder / "trace.ptk"), *options, "--",
            str(self.program), verb, str(folder), kernel_name, str(blocks),
        ]  # fmt: skip

    def record(self, name: str, blocks: int, *options: str) -> Path:
        """The folder with the bundle and the log of a recording."""
        folder = self.wine.folder / name
        self.wine.run(self.recorder, *self.command(folder, "run", blocks, *options), seconds=120)
        return folder


@pytest.fixture(scope="module")
def recorder(wine: Wine, recorder_program: Path, model_driver: Path) -> Iterator[Recorder]:
    shutil.copy(model_driver, wine.folder)
    program = compile_program(
        wine.folder / "traced.exe", *INCLUDES, *TEST_INCLUDES, f"-I{HERE}", HERE / "traced_program.c",
        HERE / "device_windows.c", HERE / "service.c", HERE / "kernel" / "host_windows.c",
        "-ladvapi32", "-lntdll", "-Wl,--image-base,0x180000000",
    )  # fmt: skip
    found = Recorder(wine, recorder_program, program)
    held = wine.folder / "held"
    holder = wine.begin(wine.folder / "holder", program, "hold", str(held), environment={})
    try:
        wait_for(held, holder)
        wine.run(program, "code", str(wine.folder / "code"))
        found.image.write_bytes(pe((wine.folder / "code").read_bytes(), BASE, IMAGE_BYTES))
        yield found
    finally:
        held.unlink(missing_ok=True)
        assert holder.wait(SECONDS) == 0, (wine.folder / "holder").read_text(errors="replace")


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the process has written the file."""
    end = time.monotonic() + SECONDS
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.1)


@dataclass(frozen=True)
class Stay:
    """What a thread executed on a processor: entries of the model's log."""

    cpu: int
    thread: int
    entries: list[int]


def stays(folder: Path) -> list[Stay]:
    words = array.array("Q")
    words.frombytes((folder / "log.u64").read_bytes())
    found = []
    at = 0
    while at < len(words):
        cpu, thread, count = words[at : at + 3]
        found.append(Stay(cpu, thread, list(words[at + 3 : at + 3 + count])))
        at += 3 + count
    return found


def opened(folder: Path, words: str = "Windows calls no driver at a context switch") -> ptkit.Trace:
    """The bundle, which says what it cannot tell."""
    with pytest.warns(ptkit.PtkitWarning, match=words):
        return ptkit.open(folder / "trace.ptk")


def executed(folder: Path, cpu: int) -> list[int]:
    """Blocks of the traced process on a processor. All of them were traced."""
    entries = [
        entry for stay in stays(folder) if (stay.cpu, stay.thread) == (cpu, 0) for entry in stay.entries
    ]
    assert all(entry & TRACED for entry in entries)
    return [entry & IP for entry in entries]


def decoded(trace: ptkit.Trace, cpu: int) -> list[int]:
    table = trace.instructions(columns=["ip", "cpu"])
    ips = table["ip"][table["cpu"] == cpu]
    return [int(ip) for ip in ips[(ips - BASE) % BLOCK_BYTES == 0]]


def branch_targets(folder: Path, cpu: int) -> list[int]:
    """Where taken branches led, of all threads that ran on a processor."""
    targets: dict[int, list[int]] = {}
    for stay in stays(folder):
        targets.setdefault(stay.thread, []).extend(entry & IP for entry in stay.entries)
    place = dict.fromkeys(targets, 0)
    found = []
    for stay in stays(folder):
        for entry in stay.entries:
            place[stay.thread] += 1
            after = targets[stay.thread][place[stay.thread] : place[stay.thread] + 1]
            if stay.cpu == cpu and entry & BRANCH:
                assert entry & STORED
                found += after
    return found


def test_recorded_program_is_what_the_model_executed(recorder: Recorder) -> None:
    folder = recorder.record("program", 40000)
    trace = opened(folder)
    assert len(trace.errors) == 0
    assert len(trace.gaps) == 0
    for cpu in range(4):
        assert decoded(trace, cpu) == executed(folder, cpu)


def test_nothing_is_lost_of_buffers_that_are_filled_again_and_again(recorder: Recorder) -> None:
    folder = recorder.record("wraps", 1_200_000, "-m", "64K")
    trace = opened(folder)
    assert len(trace.instructions(columns=["ip"])) > 10_000_000
    assert len(trace.errors) == 0
    for cpu in range(4):
        assert decoded(trace, cpu) == executed(folder, cpu)


def test_a_ring_has_the_newest_blocks(recorder: Recorder) -> None:
    folder = recorder.record("ring", 400_000, "--ring", "16K")
    trace = opened(folder)
    for cpu in range(4):
        found, all_blocks = decoded(trace, cpu), executed(folder, cpu)
        assert 1000 < len(found) < len(all_blocks)
        assert found == all_blocks[-len(found) :]


def test_branch_trace_store_has_each_taken_branch(recorder: Recorder) -> None:
    folder = recorder.record("branches", 40000, "--bts", "-m", "256K")
    trace = opened(folder)
    table = trace.branches(columns=["to_ip", "taken", "cpu"])
    for cpu in range(4):
        found = [int(to) for to in table["to_ip"][table["taken"] & (table["cpu"] == cpu)]]
        expected = branch_targets(folder, cpu)
        assert found[: len(expected)] == expected
        assert (
            len(found) - len(expected) <= 1
        )  # the last branch of a thread leads to a block that was not executed


def test_killed_recorder_ends_the_session(recorder: Recorder) -> None:
    folder = recorder.wine.folder / "killed"
    process = recorder.wine.begin(
        recorder.wine.folder / "killed.log",
        recorder.recorder,
        *recorder.command(folder, "wait", 40000),
        environment={},
    )
    wait_for(folder / "done", process)
    time.sleep(1.5)  # what is older than a second was flushed
    process.kill()
    process.wait(SECONDS)
    trace = opened(folder, "")
    assert decoded(trace, 0) == executed(folder, 0)[: len(decoded(trace, 0))]
    assert len(decoded(trace, 0)) > 1000
    again = recorder.record("after_killed", 4000)  # another session has no processor any more
    assert decoded(opened(again), 1) == executed(again, 1)
