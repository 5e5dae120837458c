"""Recordings by ptkit-capture.exe in Wine of what the model executes, and the comparison with its log.

The traced program (tests/machines/windows/recorder/traced_program.c) has the model execute random blocks
according to a script. Blocks begin at multiples of their size, and no other instruction does: so the
instructions at such addresses, in order, are the blocks that were executed.
"""

from __future__ import annotations

import array
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from wine import SECONDS, Wine

import ptkit

BASE, IMAGE_BYTES = 0x140000000, 0x5000  # as the model's user code is mapped
BLOCK_BYTES = 32
TRACED, STORED, BRANCH = 1 << 63, 1 << 62, 1 << 61
IP = (1 << 61) - 1  # of an entry of the log: the model has user code below
OTHER_THREAD = 4  # the model's threads from here on execute another program at the same addresses
OTHER_PID, OTHER_TID = 4444, 80001  # a process that only the model knows
FIRST_TID = 70000  # the model's thread N of the traced process is FIRST_TID + N to ETW


def kernel_name(path: Path) -> str:
    """A file as the kernel names it."""
    return "\\??\\Z:" + str(path).replace("/", "\\")


@dataclass
class Script:
    """Lines for the traced program."""

    lines: list[str] = field(default_factory=list)

    def add(self, *words: object) -> None:
        self.lines.append(" ".join(map(str, words)))

    def map(self, file: Path, pid: int = 0, address: int = BASE, size: int = IMAGE_BYTES) -> None:
        self.add("image", pid, hex(address), hex(size), kernel_name(file))

    def run(self, cpu: int, blocks: int, thread: int = 0) -> None:
        """A thread of the traced process executes blocks."""
        self.add("run", cpu, thread, FIRST_TID + thread, 0, blocks)

    def run_other(self, cpu: int, blocks: int, thread: int = 1) -> None:
        """A thread of another process does."""
        self.add("run", cpu, thread, OTHER_TID, OTHER_PID, blocks)

    def know(self, *threads: int) -> None:
        """ETW tells of threads of both processes."""
        for thread in threads:
            self.add("thread", 0, FIRST_TID + thread)
        self.add("thread", OTHER_PID, OTHER_TID)


@dataclass(frozen=True)
class Stay:
    """Execution of a thread on a processor: entries of the model's log."""

    cpu: int
    thread: int
    entries: list[int]


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

    @property
    def other_image(self) -> Path:
        """The file of the other program at the same addresses."""
        return self.wine.folder / "other.dll"

    def folder(self, name: str, script: Script) -> Path:
        """A new folder with a script."""
        folder = self.wine.folder / name
        folder.mkdir()
        (folder / "script").write_text("\n".join(script.lines) + "\n")
        return folder

    def command(self, folder: Path, *options: str, verb: str = "record") -> list[str]:
        """Arguments of a recording of the traced program."""
        program = [str(self.program), "play", str(folder)]
        return [verb, "-o", str(folder / "trace.ptk"), *options, "--", *program]

    def record(self, name: str, script: Script, *options: str, verb: str = "record", **settings: str) -> Path:
        """The folder with the bundle and the log of a recording; `settings` are for etw_double.c."""
        folder = self.folder(name, script)
        environment = {f"PTKIT_TEST_{key}": value for key, value in settings.items()}
        environment["PTKIT_TEST_EVENTS"] = str(folder / "events")
        self.wine.run(
            self.recorder, *self.command(folder, *options, verb=verb), seconds=120, environment=environment
        )
        return folder


def wandering(image: Path, blocks: int) -> Script:
    """A thread goes from one processor to the next. Another process runs where it was."""
    script = Script()
    script.map(image)
    at_once = 400
    for turn in range(-(-blocks // at_once)):
        script.run(turn % 4, min(at_once, blocks - turn * at_once))
        script.run_other(turn % 4, 3)
    return script


def wait_for(path: Path, process: subprocess.Popen[bytes] | None) -> str:
    """The text of a file, when it is whole. The process, if one is given, has to run until then."""
    end = time.monotonic() + SECONDS
    while not path.exists() or not path.read_text().endswith("\n"):
        assert process is None or process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.1)
    return path.read_text().strip()


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


def executed(folder: Path, cpu: int, thread: int = 0) -> list[int]:
    """Blocks of one of the model's threads on a processor. All of them were traced."""
    entries = [
        entry for stay in stays(folder) if (stay.cpu, stay.thread) == (cpu, thread) for entry in stay.entries
    ]
    assert all(entry & TRACED for entry in entries)
    return [entry & IP for entry in entries]


def decoded(trace: ptkit.Trace, cpu: int, **wanted: int) -> list[int]:
    """Blocks of the decoded trace on a processor, and with these values in other columns."""
    table = trace.instructions(columns=["ip", "cpu", *wanted])
    chosen = table["cpu"] == cpu
    for column, value in wanted.items():
        chosen = chosen & (table[column] == value)
    ips = table["ip"][chosen]
    return [int(ip) for ip in ips[(ips - BASE) % BLOCK_BYTES == 0]]
