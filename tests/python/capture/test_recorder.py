"""`Recorder`: life, control and failures. The core's recorder is faked: it only runs the program."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import runs_on

import ptkit
from ptkit import _core, capture
from ptkit.capture import qemu
from ptkit.cli import main

LOOP = [sys.executable, "-S", "-c", "while True: pass"]
# The simplest trace that can be opened: PSB, PSBEND, TIP.PGE, TIP.PGD.
STREAM = bytes.fromhex("0282" * 8 + "0223" + "7100100000000000"[:14] + "01")


class FakeEmulator:
    """The interface of the core's recorder, around a plain process."""

    made: list[FakeEmulator] = []  # noqa: RUF012
    fails: Exception | None = None
    refuses: Exception | None = None
    limited = False

    def __init__(self, **arguments: Any) -> None:
        if FakeEmulator.refuses is not None:
            raise FakeEmulator.refuses
        self.arguments = arguments
        self.pid = 0
        self.calls: list[str] = []
        self.instructions = 0
        self.interrupted = False
        FakeEmulator.made.append(self)

    def run(self) -> dict[str, Any]:
        if FakeEmulator.fails is not None:
            raise FakeEmulator.fails
        Path(os.fsdecode(self.arguments["output"])).write_bytes(STREAM)
        process = subprocess.Popen(self.arguments["argv"])
        self.pid = process.pid
        self.instructions += 1000
        while process.poll() is None:
            self.instructions += 1000
            time.sleep(0.005)
        status = process.returncode
        return {
            "exit_status": status if status >= 0 else 128 - status,
            "instructions": self.instructions,
            "branches": 5,
            "streams": 1,
            "trace_bytes": len(STREAM),
            "bundle_bytes": len(STREAM),
            "dropped_bytes": 0,
            "snapshots": self.calls.count("snapshot"),
            "interrupted": self.interrupted,
            "limited": FakeEmulator.limited,
            "warnings": ["the moon is full"] if "warn" in str(self.arguments["argv"]) else [],
        }

    def stop(self) -> None:
        self.interrupted = True
        while not self.pid:
            time.sleep(0.001)
        os.kill(self.pid, signal.SIGINT)

    def status(self) -> tuple[int, bool, int, int]:
        return self.pid, self.pid != 0, self.instructions, self.instructions // 10

    def __getattr__(self, name: str) -> Any:
        if name not in ("detach", "snapshot", "pause", "resume"):
            raise AttributeError(name)
        return lambda: self.calls.append(name)


@pytest.fixture(autouse=True)
def emulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[FakeEmulator]]:
    """Makes the fake the back end `emulator`; gives those that were made."""
    monkeypatch.setattr(_core, "Recorder", FakeEmulator)
    monkeypatch.setattr(qemu, "find", lambda: qemu.Qemu("/qemu", "7.2.0", "/plugin.so"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(FakeEmulator, "made", [])
    yield FakeEmulator.made
    FakeEmulator.fails = FakeEmulator.refuses = None


def _left(folder: Path) -> list[Path]:
    return list(folder.glob("ptkit-*.ptk"))


def test_a_block_waits_for_the_end(tmp_path: Path) -> None:
    out, end = tmp_path / "a.ptk", tmp_path / "end"
    waits = f"while [ ! -e {end} ]; do sleep 0.05; done; exit 3"
    with ptkit.Recorder(["sh", "-c", waits], out, backend="emulator") as recorder:
        assert recorder.running
        assert recorder.pid is not None
        assert recorder.pid > 0
        assert recorder.backend == "emulator"
        assert not recorder.wait(0.01)
        with pytest.raises(ptkit.ConfigError, match="has not ended"):
            _ = recorder.recording
        before = recorder.progress
        runs_on(recorder, 0)
        assert recorder.progress.seconds > before.seconds
        end.touch()
    assert not recorder.running
    recording = recorder.recording
    assert (recording.exit_status, recording.path, recording.branches) == (3, out, 5)
    assert recording.seconds > before.seconds
    assert recording.reason == ""
    assert not recording.interrupted
    assert recorder.wait()
    recorder.stop()  # in vain, and harmless


def test_control_methods_reach_the_core(emulator: list[FakeEmulator]) -> None:
    with ptkit.Recorder(LOOP, backend="emulator", ring="1M") as recorder:
        recorder.pause()
        recorder.resume()
        recorder.snapshot()
        recorder.detach()
        assert emulator[0].calls == ["pause", "resume", "snapshot", "detach"]
        recorder.stop()
    assert recorder.recording.interrupted
    assert recorder.recording.exit_status == 128 + signal.SIGINT
    assert recorder.recording.snapshots == 1
    assert emulator[0].arguments["ring"] == 1 << 20


def test_snapshot_needs_a_ring() -> None:
    with ptkit.Recorder(["true"], backend="emulator") as recorder:
        with pytest.raises(ptkit.ConfigError, match="there is no ring; give its size"):
            recorder.snapshot()
        assert not recorder.has_ring


def test_an_exception_ends_the_recording() -> None:
    with pytest.raises(ZeroDivisionError), ptkit.Recorder(LOOP, backend="emulator") as recorder:
        raise ZeroDivisionError
    assert recorder.recording.interrupted


def test_ctrl_c_at_the_end_of_a_block_keeps_the_recording() -> None:
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with ptkit.Recorder(LOOP, backend="emulator") as recorder:
        pass
    assert recorder.recording.interrupted


def test_ctrl_c_that_ends_the_program_before_the_recorder_hears_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = ptkit.Recorder([sys.executable, "-S", "-c", "pass"], backend="emulator").start()
    assert recorder.wait(10)
    wait = recorder.wait
    heard = iter([KeyboardInterrupt])

    def late(timeout: float | None = None) -> bool:
        for signalled in heard:
            raise signalled
        return wait(timeout)

    monkeypatch.setattr(recorder, "wait", late)
    assert recorder.run().interrupted


def test_ctrl_c_inside_a_block_ends_it() -> None:
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt), ptkit.Recorder(LOOP, backend="emulator") as recorder:
        recorder.wait()
    assert recorder.recording.interrupted


@pytest.mark.parametrize("temporary", [True, False])
def test_ctrl_c_while_the_thread_begins(
    tmp_path: Path, emulator: list[FakeEmulator], monkeypatch: pytest.MonkeyPatch, temporary: bool
) -> None:
    begin = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        begin(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    recorder = ptkit.Recorder(LOOP, None if temporary else tmp_path / "x.ptk", backend="emulator")
    with pytest.raises(KeyboardInterrupt):
        recorder.run()
    monkeypatch.undo()
    for thread in threading.enumerate():
        if thread.name == "ptkit recorder":
            thread.join(10)
            assert not thread.is_alive()
    assert (emulator[0].pid, emulator[0].calls) == (0, [])  # nothing was run
    assert not recorder.running
    assert not _left(tmp_path)


@pytest.mark.parametrize("block", [True, False])
def test_ctrl_c_before_the_program_is_there(monkeypatch: pytest.MonkeyPatch, block: bool) -> None:
    heard = iter([False, KeyboardInterrupt()])

    def has_begun(core: object) -> bool:
        for one in heard:
            if one:
                raise one
            return False
        return True

    monkeypatch.setattr("ptkit.capture.recorder._has_begun", has_begun)
    recorder = ptkit.Recorder(LOOP, backend="emulator")
    if block:
        with pytest.raises(KeyboardInterrupt), recorder:
            raise AssertionError
        assert not recorder.running
        assert recorder.recording.interrupted
    else:
        assert recorder.run().interrupted
    assert not recorder.running


def test_recorder_methods_need_a_start() -> None:
    recorder = ptkit.Recorder(["true"], backend="emulator")
    assert recorder.pid is None
    assert recorder.progress == capture.Progress()
    assert not recorder.running
    for use in (recorder.wait, recorder.stop, recorder.pause, lambda: recorder.recording):
        with pytest.raises(ptkit.ConfigError, match="was not started"):
            use()
    recorder.run()
    with pytest.raises(ptkit.ConfigError, match="was started before"):
        recorder.start()


def test_failures_come_out_at_once(tmp_path: Path) -> None:
    FakeEmulator.fails = ptkit.OpenError("no space left")
    recorder = ptkit.Recorder(["true"], backend="emulator")
    with pytest.raises(ptkit.OpenError, match="no space left"):
        recorder.start()
    with pytest.raises(ptkit.OpenError, match="no space left"):
        _ = recorder.recording
    with pytest.raises(ptkit.OpenError, match="no space left"):
        ptkit.Recorder(["true"], backend="emulator").run()
    assert not _left(tmp_path)


def test_refused_options_leave_nothing(tmp_path: Path) -> None:
    FakeEmulator.refuses = ptkit.ConfigError("filters: expected less")
    recorder = ptkit.Recorder(["true"], backend="emulator")
    with pytest.raises(ptkit.ConfigError, match="expected less"):
        recorder.start()
    assert not recorder.running
    assert not _left(tmp_path)


def test_progress_that_raises_ends_the_recording(tmp_path: Path) -> None:
    def fail(progress: capture.Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ptkit.Recorder(LOOP, backend="emulator").run(fail)
    assert not _left(tmp_path)


def test_record_shows_progress() -> None:
    seen: list[capture.Progress] = []
    recording = ptkit.Recorder(["sleep", "0.3"], backend="emulator").run(seen.append)
    assert len(seen) > 1
    counts = [one.instructions for one in seen]
    assert counts == sorted(counts)
    assert counts[-1] <= recording.instructions
    assert seen[-1].trace_bytes > 0
    assert [one.seconds for one in seen] == sorted(one.seconds for one in seen)


@pytest.mark.filterwarnings("ignore::ptkit.PtkitWarning")
def test_a_temporary_bundle_lives_with_recorder_and_trace(tmp_path: Path) -> None:
    with ptkit.Recorder(["true"], backend="emulator") as recorder:
        pass
    (path,) = _left(tmp_path)
    trace = recorder.trace
    assert trace is recorder.trace
    assert trace.recording == recorder.recording
    del recorder
    gc.collect()
    assert path.exists()
    del trace
    gc.collect()
    assert not path.exists()
    recorder = ptkit.Recorder(["true"], backend="emulator")
    recorder.run()
    assert _left(tmp_path)
    del recorder
    gc.collect()
    assert not _left(tmp_path)


def test_failures_of_requests_reach_the_caller(emulator: list[FakeEmulator]) -> None:
    def refuse() -> None:
        raise ptkit.UnsupportedError("backend 'step' can only be stopped; use backend='emulator'")

    with ptkit.Recorder(LOOP, backend="emulator") as recorder:
        emulator[0].pause = refuse  # type: ignore[attr-defined]
        with pytest.raises(ptkit.UnsupportedError, match="'step' can only be stopped"):
            recorder.pause()
        recorder.stop()
    assert recorder.recording.interrupted


# ---- the command line


def test_record_prints_a_last_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x.ptk"
    words = ["sh", "-c", "echo hello; echo warn >&2; exit 4"]
    assert main(["record", "--backend", "emulator", "-o", str(out), "--", *words]) == 4
    captured = capfd.readouterr()
    assert captured.out == "hello\n"
    lines = captured.err.splitlines()
    assert lines[:2] == ["warn", "ptkit: warning: the moon is full"]
    assert lines[2].startswith(f"ptkit: {out}: ")
    assert f" instructions, 5 branches, 1 stream, {len(STREAM)} bytes of trace, " in lines[2]
    assert lines[2].endswith(" s (emulated: compare instructions, not durations)")
    assert len(lines) == 3
    assert main(["record", "-q", "-o", str(out), "--", "true"]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-instructions", "1000"], "limit reached"),
        (["--trigger", "stop on USR1"], "stopped by trigger"),
        (["--trigger", "stop on USR1", "--max-instructions", "10"], "limit reached"),
    ],
)
def test_last_line_says_what_ended_the_recording(
    words: list[str],
    said: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FakeEmulator, "limited", True)
    record = ["record", "--backend", "emulator", "-o", str(tmp_path / "x.ptk")]
    assert main([*record, *words, "--", "true"]) == 0
    assert f" s, {said} (emulated" in capfd.readouterr().err


@pytest.mark.parametrize("words", [["-a", "-C", "0"], ["--cpu", "1", "--all-cpus"]])
def test_all_and_some_processors_exclude_each_other(
    words: list[str], emulator: list[FakeEmulator], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["record", *words, "--seconds", "1"])
    assert "not allowed with argument" in capsys.readouterr().err
    assert emulator == []


def test_force_overwrites_a_file_that_is_no_recording(tmp_path: Path, emulator: list[FakeEmulator]) -> None:
    out = tmp_path / "x"
    out.write_text("precious")
    words = ["record", "-q", "--backend", "emulator", "-o", str(out)]
    assert main([*words, "--", "true"]) == 2
    assert emulator == []
    assert main([*words, "--force", "--", "true"]) == 0
    assert len(emulator) == 1


def test_options_reach_the_core(tmp_path: Path, emulator: list[FakeEmulator]) -> None:
    words = ["--filter", "filter main @ later.so", "--filter", "start 16 @ a.out, stop f @ later.so"]
    words += ["--trigger", "stop at g x2 @ later.so"]
    words += ["--ring", "1M", "--timing", "none", "--psb-period", "2048", "--no-return-compression"]
    words += ["--snapshot-on", "USR2", "--redact", "--tnt-64", "--max-instructions", "0x10"]
    assert main(["record", "-q", "-o", str(tmp_path / "x"), *words, "--", "true", "--ring", "2M"]) == 0
    arguments = emulator[0].arguments
    assert arguments["argv"] == [b"true", b"--ring", b"2M"]
    assert [one[0] for one in arguments["filters"]] == ["filter", "start", "stop"]
    assert arguments["triggers"][0][:2] == ("symbol", "stop")
    assert arguments["timing"] == []
    assert (arguments["psb_period"], arguments["ring"], arguments["max_instructions"]) == (
        2048,
        1 << 20,
        16,
    )
    assert (arguments["return_compression"], arguments["redact"], arguments["tnt_64"]) == (False, True, True)


def test_snapshots_by_a_signal_to_ptkit(tmp_path: Path, emulator: list[FakeEmulator]) -> None:
    timers = [threading.Timer(when, signal.raise_signal, [signal.SIGUSR2]) for when in (0.2, 0.4)]
    for timer in timers:
        timer.start()
    before = signal.getsignal(signal.SIGUSR2)
    words = ["record", "-q", "-o", str(tmp_path / "x"), "--ring", "1M", "--snapshot-on", "SIGUSR2"]
    assert main([*words, "--", "sleep", "0.7"]) == 0
    assert emulator[0].calls == ["snapshot"] * 2
    assert signal.getsignal(signal.SIGUSR2) == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--filter", "main"], "filter 'main': write filter|start|stop|tracestop"),
        (["--trigger", "stop main"], "trigger 'stop main': write start|stop|snapshot"),
        (["--trigger", "snapshot on USR1"], "give its size, such as ring='64M'"),
        (["--snapshot-on", "USR1"], "--snapshot-on: there is no ring; give its size, such as --ring 64M"),
        (["--snapshot-on", "NOISE", "--ring", "1M"], "there is no signal 'NOISE'"),
        (["--ring", "1x"], "ring='1x': write a number"),
        (["--backend", "magic"], "backend: expected one of auto, perf, driver, emulator, step"),
        (["--backend", "step", "--ring", "1M"], "backend 'step': it has no ring; use 'emulator'"),
    ],
)
def test_misuse_is_one_line(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", "-o", str(tmp_path / "x"), *words, "--", "true"]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "x").exists()
