"""The other commands of ptkit-capture.exe in Wine, and Ctrl-C."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from windows_recording import Recorder, Script, decoded, executed, wait_for
from wine import SECONDS, errors_of

import ptkit

pytestmark = pytest.mark.slow

BLOCKS = 600  # that a step executes on each processor


@dataclass(frozen=True)
class Running:
    """A program that was not started by the recorder, and executes blocks when it is told to."""

    folder: Path
    process: subprocess.Popen[bytes]
    pid: int

    @property
    def bundle(self) -> str:
        return str(self.folder / "trace.ptk")

    def go_on(self, step: str) -> None:
        """Has it do a step, when it is traced, and waits for the end of the step."""
        (self.folder / f"begin-{step}").touch()
        wait_for(self.folder / f"done-{step}", self.process)


@contextmanager
def running(recorder: Recorder, name: str, *steps: str) -> Iterator[Running]:
    script = Script()
    script.add("mark", "ready")
    for step in steps:
        script.add("wait", f"begin-{step}")
        script.add("traced", 4)
        script.map(recorder.image)
        for cpu in range(4):
            script.run(cpu, BLOCKS)
        script.add("mark", f"done-{step}")
    script.add("wait", "end")
    folder = recorder.folder(name, script)
    log = folder / "program.log"
    process = recorder.wine.begin(log, recorder.program, "play", str(folder), environment={})
    try:
        yield Running(folder, process, int(wait_for(folder / "ready", process)))
    finally:
        (folder / "end").touch()
        assert process.wait(SECONDS) == 0, errors_of(log).read_text(errors="replace")


@dataclass(frozen=True)
class Pressed:
    """A recorder in a console of its own, in which Ctrl-C will be pressed."""

    file: Path
    process: subprocess.Popen[bytes]
    pid: int

    def press(self) -> int:
        """The exit status of the recorder."""
        self.file.touch()
        return self.process.wait(SECONDS)


def begin(recorder: Recorder, press_ctrl_c: Path, folder: Path, *arguments: str) -> Pressed:
    file = folder / "press"
    words = [str(file), str(recorder.recorder), *arguments]
    process = recorder.wine.begin(folder / "recorder.log", press_ctrl_c, *words, environment={})
    return Pressed(file, process, int(wait_for(folder / "press.pid", process)))


def opened(folder: Path) -> ptkit.Trace:
    with pytest.warns(ptkit.PtkitWarning, match="ETW refuses"):
        return ptkit.open(folder / "trace.ptk")


def check_all(folder: Path, blocks: int) -> None:
    trace = opened(folder)
    assert len(trace.errors) == 0
    for cpu in range(4):
        assert decoded(trace, cpu) == executed(folder, cpu)
        assert len(executed(folder, cpu)) == blocks


def test_ctrl_c_ends_a_recording_of_a_running_process(recorder: Recorder, press_ctrl_c: Path) -> None:
    with running(recorder, "attached", "one") as program:
        arguments = ("attach", "-o", program.bundle, str(program.pid))
        recording = begin(recorder, press_ctrl_c, program.folder, *arguments)
        program.go_on("one")
        assert recording.press() == 0
        check_all(program.folder, BLOCKS)


def test_ctrl_c_ends_a_started_program_too(recorder: Recorder, press_ctrl_c: Path) -> None:
    script = Script()
    script.map(recorder.image)
    for cpu in range(4):
        script.run(cpu, BLOCKS)
    script.add("mark", "done")
    script.add("wait", "never")
    folder = recorder.folder("started", script)
    recording = begin(recorder, press_ctrl_c, folder, *recorder.command(folder))
    wait_for(folder / "done", recording.process)
    assert recording.press() == 0  # of the program: Wine's Ctrl-C ends one with 0, Windows' with 0xC000013A
    said = (folder / "recorder.errors").read_text(errors="replace")
    assert "the program runs on" not in said
    check_all(folder, BLOCKS)


def test_snapshot_has_what_the_ring_had(recorder: Recorder, press_ctrl_c: Path) -> None:
    with running(recorder, "snapshot", "one", "two") as program:
        arguments = ("attach", "-o", program.bundle, "--ring", "64K", str(program.pid))
        recording = begin(recorder, press_ctrl_c, program.folder, *arguments)
        program.go_on("one")
        recorder.wine.run(recorder.recorder, "snapshot", str(recording.pid))
        program.go_on("two")
        assert recording.press() == 0
        check_all(program.folder, 2 * BLOCKS)
        assert ", 1 snapshot, " in (program.folder / "recorder.errors").read_text()


def test_driver_records_the_code_of_one_driver(recorder: Recorder) -> None:
    bundle = recorder.wine.folder / "driver.ptk"
    options = ("--seconds", "0.5", "-o", str(bundle))
    recorder.wine.run(recorder.recorder, "driver", *options, "mountmgr.sys")
    with pytest.warns(ptkit.PtkitWarning) as warned:
        trace = ptkit.open(bundle)
    assert "mountmgr.sys): its file cannot be read" in " ".join(str(one.message) for one in warned)
    # Wine says so of the driver, which is not there: the range is right, and no instruction is in it.
    said = str(trace.info)
    assert said.count("filter range:") == 1
    assert "filter range:  [0x10400000, 0x105fffff]" in said
    assert len(trace.instructions(columns=["ip"])) == 0


def test_doctor_says_what_driver_and_processor_can_do(recorder: Recorder) -> None:
    said = recorder.wine.run(recorder.recorder, "doctor")
    assert "processors: 4, TSC of 3000000 kHz, 4 address ranges" in said
    assert "yes  Branch Trace Store" in said
    assert "recording:  possible" in said


def test_lbr_prints_the_stacks_as_they_are(recorder: Recorder) -> None:
    said = recorder.wine.run(recorder.recorder, "lbr")
    for cpu in range(4):
        assert f"CPU {cpu}: 32 branches, newest first (none is recorded now)" in said
    # The model's register number I of the stack has its number and which one it is; number 5 is the newest.
    assert "  0000000100000005 -> 0000000200000005  info 0000000300000005\n  0000000100000004" in said


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("attach",), 2, "expected the number of a process"),
        (("attach", "0"), 2, "attach: expected a number from 1"),
        (("attach", "999996"), 1, "cannot open process 999996"),
        (("driver",), 2, "expected the name of a kernel driver"),
        (("driver", "no-such.sys"), 1, "no kernel driver of this name is loaded"),
        (("snapshot", "999996"), 2, "process 999996 is no recorder"),
        (("record", "--", "no-such.exe"), 1, 'cannot start "no-such.exe"'),
        (("record", "-a", "--filter", "stop 1/2"), 2, "--filter: expected"),
        (("lbr", "3"), 2, "lbr: expected nothing after it"),
    ],
)
def test_wrong_arguments_get_one_line(
    recorder: Recorder, arguments: tuple[str, ...], status: int, words: str
) -> None:
    log = recorder.wine.folder / "wrong"
    process = recorder.wine.begin(log, recorder.recorder, *arguments, environment={})
    assert process.wait(SECONDS) == status
    said = errors_of(log).read_text(errors="replace").replace("\r", "")
    lines = [line for line in said.splitlines() if line.startswith("ptkit-capture:")]
    assert len(lines) == 1
    assert words in lines[0]
    assert log.read_text() == ""
    assert not (recorder.wine.folder / "trace.ptk").exists()
