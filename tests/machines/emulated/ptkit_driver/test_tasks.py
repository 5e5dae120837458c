"""Our module follows processes and tasks: all that they execute is in the trace.

The machine's log leaves out the WRMSR that changes TraceEn, and so says what was executed while it was set
(`traced`). Where tracing is switched with the tasks, both ends of a stretch lie in the kernel's function that
switches them: what comes behind that WRMSR when the task is switched to belongs to it, up to the one when it
is switched away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import boot_image
import numpy as np
import pytest
from compare import Decoded, assert_same, instructions
from executed import PROCESS, Executed, Truth, merge
from kernels import ROOT, build_module, debian_kernel
from machine import Machine, Run
from numpy.typing import NDArray

import ptkit
from ptkit import _core

pytestmark = pytest.mark.emulated

Mask = NDArray[np.bool_]
Words = tuple[str, str, str]

WRMSR = b"\x0f\x30"
FIRST, ANOTHER, END = 0x10000000, 0x20000000, 0x30000000  # where the two programs are
WHOLE = ("topa", "ring")  # the log has all that was executed, not only what was traced
RING_BYTES = 64 << 10  # as in guest/session.h
SPACE = np.uint64(PROCESS)

# guest/follow.c says what they mean: scenario, levels, output.
RECORDINGS = [
    ("process", "both", "topa"),
    ("exec", "user", "topa"),
    ("exec", "kernel", "topa"),
    ("exec", "both", "topa"),
    ("children", "both", "topa"),
    ("children", "user", "topa"),
    ("task", "both", "topa"),
    ("task", "user", "topa"),
    ("task", "both", "ring"),
    ("task", "both", "wake"),
    ("task", "both", "slow"),
]


@dataclass(frozen=True)
class Recorded:
    """Recordings of a run of the machine."""

    run: Run
    truth: Truth
    cpus: int
    codes: dict[str, tuple[int, int]]  # addresses of threads' code, by name
    waited: int  # how often tracing had to wait for the slow reader


def record(machine: Machine, folder: Path, cpus: int) -> Recorded:
    """One run in which everything is recorded."""
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    source = boot_image.GUEST / "follow.c"
    programs = {"bin/ptkit.ko": module}
    for name, start in (("follow", FIRST), ("another", ANOTHER)):
        flags = (f"-I{ROOT / 'kernel/include'}", "-pthread", f"-Wl,-Ttext-segment={start:#x}")
        programs[f"bin/{name}"] = boot_image.compile_static(source, folder / name, *flags)
    script = "insmod /bin/ptkit.ko || exit 1\n"
    for words in RECORDINGS:
        name = "-".join(words)
        script += f"follow {' '.join(words)} /tmp/{name} || exit 1\n"
        script += f"for cpu in /tmp/{name}.*; do host put ${{cpu##*/}} $cpu; rm $cpu; done\n"
    script += "rmmod ptkit || exit 1\n"
    run = machine.run(script, folder / "run", files=programs, cpus=cpus)
    log = run.files.get("log", run.serial.encode()).decode()
    assert run.status == 0, log
    codes = {
        name: (int(first, 16), int(end, 16))
        for name, first, end in re.findall(r"code (\w+) (\S+) (\S+)", log)
    }
    (waited,) = re.findall(r"waited (\d+) times", log)
    return Recorded(run, Truth(run.truth), cpus, codes, int(waited))


@pytest.fixture(scope="session", params=[1, 2], ids=["one_cpu", "two_cpus"])
def recorded(machine: Machine, run_folder: Path, request: pytest.FixtureRequest) -> Recorded:
    """The run on one CPU, and the one on two."""
    cpus = int(request.param)
    return record(machine, run_folder / f"tasks{cpus}", cpus)


def traced(executed: Executed, code: dict[int, bytes]) -> tuple[Mask, NDArray[np.int64]]:
    """Which instructions were executed while TraceEn was set, and how often it had changed before each."""
    addresses = [
        page + match.start() for page, content in code.items() for match in re.finditer(WRMSR, content)
    ]
    here = np.array(addresses, dtype=np.uint64)
    changed = np.isin(executed.ip, here + np.uint64(2))
    # Straight on, and yet not in the log.
    changed[1:] &= executed.ip[:-1] + executed.size[:-1] + np.uint64(2) == executed.ip[1:]
    changes = np.cumsum(changed, dtype=np.int64)
    assert changes[-1] % 2 == 0, "it is clear in the end"
    return changes % 2 == 1, changes


def within(executed: Executed, codes: Iterable[tuple[int, int]]) -> Mask:
    """Which instructions lie there."""
    found = np.zeros(len(executed.ip), dtype=bool)
    for first, end in codes:
        found |= (executed.ip >= first) & (executed.ip < end)
    return found


def of_spaces(executed: Executed, workers: list[Executed]) -> Mask:
    """Which instructions were executed with the page tables of those who executed `workers`."""
    spaces = np.unique(np.concatenate([each.cr3 & SPACE for each in workers]))
    return np.isin(executed.cr3 & SPACE, spaces)


class Recording:
    """One of the recordings, with what was executed meanwhile on each processor."""

    def __init__(self, recorded: Recorded, words: Words) -> None:
        self.scenario, self.levels, self.output = words
        self.by_tables = self.scenario == "exec" and self.levels != "both"  # the processor looks for these
        part = 2 * RECORDINGS.index(words) + 1
        truth = recorded.truth
        self.executed = [truth.executed(part, cpu) for cpu in range(recorded.cpus)]
        self.code: dict[int, bytes] = {}
        for space in np.unique(np.concatenate([each.cr3 for each in self.executed])).tolist():
            self.code |= truth.code(part, space)  # programs lie at addresses of their own
        name = "-".join(words)
        self.streams = [
            recorded.run.files[f"{name}.{cpu}"]
            for cpu in range(1 if self.scenario == "task" else recorded.cpus)
        ]
        self.workers = [codes for name, codes in recorded.codes.items() if name != "noise"]
        self.codes = recorded.codes
        self.waited = recorded.waited
        self.expected = self._expected()  # in the streams

    def who_executed(self, codes: Iterable[tuple[int, int]]) -> list[Executed]:
        """Instructions of those who were there."""
        return [each.select(within(each, codes)) for each in self.executed]

    def of_followed(self, executed: Executed) -> Mask:
        """Which instructions are of whom it followed: by page tables, of a task by its code."""
        if self.scenario == "task":
            return within(executed, [self.codes["first"], self.codes["long_one"]])
        return of_spaces(executed, self.who_executed([*self.workers, (ANOTHER, END)]))

    def of_tables(self, executed: Executed, changes: NDArray[np.int64]) -> Mask:
        """Which instructions were executed with the page tables in CR3_MATCH: exec() gave it new ones."""
        old = of_spaces(executed, self.who_executed([self.codes["followed"]]))
        new = of_spaces(executed, self.who_executed([(ANOTHER, END)]))
        # Under page-table isolation the user's table is in the page behind the kernel's.
        table = (executed.cr3 >> np.uint64(12) & np.uint64(1)) == (self.levels == "user")
        found: Mask = np.where(changes == 1, old, new) & table
        return found

    def _expected(self) -> list[Executed]:
        found = []
        for executed in self.executed:
            if self.output not in WHOLE:
                found.append(executed)
                continue
            mask, changes = traced(executed, self.code)
            if self.levels != "both":
                mask &= (executed.cpl == 3) == (self.levels == "user")
            if self.by_tables:
                assert changes[-1] == 4, "from start to exec(), and from there to the pause"
                mask &= self.of_tables(executed, changes)
            found.append(executed.select(mask))
        return [merge(found)] if self.scenario == "task" else found


def count_same(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> int:
    """How many are the same, from the first one on."""
    both = min(len(left), len(right))
    differing = np.flatnonzero(left[:both] != right[:both])
    return int(differing[0]) if len(differing) else both


def count_pieces(found: Decoded, expected: Executed) -> tuple[int, int]:
    """Of how many pieces of what was executed it is made, in order, and how many instructions are of none."""
    window = 5000  # instructions that identify a position
    pieces = wrong = position = done = 0
    while done < len(found):
        known = found.ip[done : done + window]
        starts = position + np.flatnonzero(expected.ip[position:] == known[0])
        positions = [at for at in starts.tolist() if np.array_equal(expected.ip[at : at + len(known)], known)]
        if not positions:
            wrong, done = wrong + 1, done + 1
            continue
        # Loops look alike for a while.
        same, position = max((count_same(found.ip[done:], expected.ip[at:]), at) for at in positions)
        pieces, done, position = pieces + 1, done + same, position + same
    return pieces, wrong


def each(recordings: list[Words]) -> pytest.MarkDecorator:
    """A test of these."""
    return pytest.mark.parametrize("recording", recordings, indirect=True, ids="-".join)


@pytest.fixture(scope="module")
def recording(recorded: Recorded, request: pytest.FixtureRequest) -> Recording:
    """One after the other: what is executed takes much memory."""
    return Recording(recorded, request.param)


@each(RECORDINGS)
@pytest.mark.parametrize("engine", _core.engines())
def test_streams_are_what_was_executed(recording: Recording, engine: str) -> None:
    if recording.levels == "kernel" and engine == "libipt":
        pytest.skip("libipt ends a stretch of kernel code at MOV CR3 (docs/kernel-driver.md)")
    for stream, expected in zip(recording.streams, recording.expected, strict=True):
        found = instructions(stream, recording.code, engine)
        assert len(found) > 1000
        if recording.output == "ring":
            assert len(stream) == RING_BYTES
            expected = expected.select(np.arange(len(expected.ip)) >= len(expected.ip) - len(found))
        elif recording.output in ("wake", "slow"):
            assert len(stream) > RING_BYTES
        if recording.output == "slow":
            pieces, wrong = count_pieces(found, expected)
            assert 2 <= pieces <= recording.waited + 1
            assert wrong <= 100 * recording.waited  # where the packet is cut that did not fit any more
        else:
            assert_same(found, expected)


@each([words for words in RECORDINGS if words[2] in WHOLE and words[1] != "kernel"])
def test_all_of_their_user_code_is_traced_and_no_other(recording: Recording) -> None:
    for executed in recording.executed:
        mask, _ = traced(executed, recording.code)
        user = executed.cpl == 3
        followed = user & recording.of_followed(executed)
        if recording.by_tables:
            mask &= followed  # these tell
        assert np.count_nonzero(followed) > 1000
        assert np.array_equal(user & mask, followed)


@each([words for words in RECORDINGS if words[0] != "task" and words[1] == "both"])
def test_no_code_of_other_tasks_follows_a_stretch(recording: Recording) -> None:
    """A stretch begins in the kernel, at the switch from another task; a task that exits lost its tables."""
    for executed in recording.executed:
        mask, changes = traced(executed, recording.code)
        theirs = recording.of_followed(executed)
        others = of_spaces(executed, [executed.select((executed.cpl == 3) & ~theirs)])
        stretches = np.unique(changes[mask])
        assert len(stretches) > 5
        for stretch in stretches.tolist():
            piece = slice(*np.searchsorted(changes, [stretch, stretch + 1]).tolist())
            assert not others[piece][np.cumsum(theirs[piece]) > 0].any()


@each([words for words in RECORDINGS if words[0] == "task" and words[2] == "topa"])
def test_a_stretch_on_another_processor_begins_with_a_psb(recording: Recording) -> None:
    """It needs nothing of what that processor's trace unit remembers."""
    stretches = []  # order and processor of each
    for cpu, executed in enumerate(recording.executed):
        mask, changes = traced(executed, recording.code)
        firsts = np.flatnonzero(mask & (np.diff(changes, prepend=0) > 0))
        stretches += [(int(order), cpu) for order in executed.order[firsts]]
    cpus = [cpu for _, cpu in sorted(stretches)]
    moves = np.count_nonzero(np.diff(cpus))
    assert (moves > 5) == (len(recording.executed) > 1)
    assert int(ptkit.packet_counts(recording.streams[0])[ptkit.PacketKind.PSB]) > moves
