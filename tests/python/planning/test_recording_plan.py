"""Plans of real programs, with the back ends that need no Processor Trace."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from rounds import needs_emulator
from waiting import wait_for

import ptkit
from ptkit import _core
from ptkit.capture import driver
from ptkit.capture.backend_probe import BackendProbe
from ptkit.planning import plan_recording
from ptkit.planning.packet_bytes import count_bytes
from ptkit.planning.settings import Settings, factors

ENDLESS = ["sh", "-c", "while :; do :; done"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: probes are written there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@needs_emulator
def test_a_program_that_goes_on_is_ended(folder: Path) -> None:
    words = ["sh", "-c", "trap 'echo ended > ended; exit' TERM; sleep 100 & while :; do :; done"]
    plan = plan_recording(words, seconds=0.5, backend="emulator")
    assert not plan.complete
    assert (folder / "ended").exists()
    assert plan.command == ("ptkit", "record", "-o", "trace.ptk", "--backend", "emulator", "--", *words)
    assert sum(plan.groups.values()) == plan.trace_bytes > 0
    assert plan.bytes_per_second == pytest.approx(plan.trace_bytes / plan.seconds)
    assert {stream.bytes for stream in plan.streams} != {0}
    assert sorted(path.name for path in folder.iterdir()) == ["ended"]


@needs_emulator
def test_children_are_ended_too(folder: Path) -> None:
    plan_recording(["sh", "-c", "sleep 100 & echo $! > child; while :; do :; done"], seconds=0.5)
    child = int((folder / "child").read_text())
    assert wait_for(lambda: not Path(f"/proc/{child}").exists())


@needs_emulator
def test_a_program_that_ignores_signals_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptkit.planning.probe, "_EXIT_SECONDS", 0.2)
    plan = plan_recording(["sh", "-c", "trap '' TERM; while :; do :; done"], seconds=0.3)
    assert not plan.complete


@needs_emulator
def test_a_program_that_is_kept_runs_to_its_end(folder: Path) -> None:
    plan = plan_recording(["sh", "-c", "sleep 1; echo all > done"], seconds=0.3, keep=True)
    assert not plan.complete
    assert (folder / "done").read_text() == "all\n"


@needs_emulator
def test_a_program_that_ends_at_once_makes_a_short_probe() -> None:
    plan = plan_recording(["true"], backend="emulator")
    assert plan.complete
    assert plan.seconds < 2
    assert plan.instructions > 1000


@needs_emulator
def test_emulated_rates_are_not_those_of_a_processor() -> None:
    plan = plan_recording(ENDLESS, seconds=0.3, backend="emulator")
    assert not plan.measures_silicon
    assert plan.reasons == ()  # the program waits for the recorder: no option avoids a loss
    assert 0 < plan.branch_bytes / plan.branches < 8


@needs_emulator
@pytest.mark.parametrize("psb_period", [2048, 16384])
def test_an_estimate_equals_a_recording_with_those_settings(rounds: Path, psb_period: int) -> None:
    usual = Settings(())
    other = Settings((), psb_period=psb_period)
    traces = [
        ptkit.record([rounds, "200000"], backend="emulator", timing=(), psb_period=one.psb_period, quiet=True)
        for one in (usual, other)
    ]
    found = count_bytes(traces[0], 1.0, 0.1, usual.psb_period)
    assert found.total == traces[0].info.bytes > 300_000
    expected = (found.windows * factors(found, usual, other)).sum()
    assert traces[1].info.bytes == pytest.approx(expected, rel=0.002)
    assert traces[1].info.bytes != pytest.approx(found.total, rel=0.004)


def test_single_steps(brief: str) -> None:
    plan = plan_recording([brief], backend="step")
    assert (plan.backend, plan.complete) == ("step", True)
    assert plan.groups["TNT"] > 0


def test_single_steps_are_stopped() -> None:
    plan = plan_recording(ENDLESS, backend="step", seconds=0.5)
    assert not plan.complete
    assert plan.trace_bytes > 0


def test_timing_that_is_wished_is_estimated_first() -> None:
    plan = plan_recording(ENDLESS, backend="step", seconds=0.3, timing=["tsc"])
    assert plan.estimates[1].options[:2] == ("--timing", "tsc")
    assert "--timing tsc" in " ".join(plan.command)


def test_what_this_machine_refuses_is_said() -> None:
    from ptkit.planning.advice import Advice
    from ptkit.planning.probe import Probe
    from ptkit.planning.recording_plan import _limits

    probe: Any = Probe(None, None, ("tsc", "mtc"), 0.2, False, "no more locked memory")  # type: ignore[arg-type]
    wish = Settings(("tsc", "mtc", "cyc"))
    assert list(_limits(probe, wish, Advice((), ()))) == [
        ("(no cyc)", "CYC packets cannot be recorded on this system")
    ]
    assert list(_limits(probe, Settings(), Advice(("--buffer", "8M"), ()))) == [
        ("(memory)", "larger buffers were refused for the probe: no more locked memory")
    ]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ([], {}, "nothing to probe: give a program, or a process or processors"),
        (["no-such-program"], {}, "there is no program 'no-such-program'"),
        (["true"], {"seconds": 0}, "seconds: expected a number from 0.001 to 3600, found 0"),
        (["true"], {"seconds": float("nan")}, "seconds: expected a number"),
        (["true"], {"timing": ["tcs"]}, "timing"),
        (["true"], {"backend": "pt"}, "backend: expected one of auto, perf"),
        (["true"], {"output": "absent/x.ptk"}, "output: cannot write to 'absent' .No such file"),
    ],
)
def test_what_cannot_be_probed(arguments: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises((ptkit.ConfigError, ptkit.OpenError), match=message):
        plan_recording(arguments, **options)


def test_other_options_are_unknown() -> None:
    with pytest.raises(TypeError, match="unknown option 'ring'"):
        plan_recording(["true"], ring="64M")


def test_without_a_back_end_there_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"missing": "nothing", "remedy": "", "abilities": ""}
    monkeypatch.setattr(_core, "query_perf", lambda what="packets": dict(nothing))
    monkeypatch.setattr(driver, "find", lambda *args, **more: BackendProbe("nothing"))
    monkeypatch.setattr(ptkit.capture.backends, "_runs_programs", lambda: False)
    with pytest.raises(ptkit.UnsupportedError, match="no back end works on this system; `ptkit doctor` says"):
        plan_recording(["true"])


def test_attaching_needs_a_back_end_that_can() -> None:
    if any(one.name in ("perf", "driver") and one.available for one in ptkit.capture.probe()):
        pytest.skip("perf has intel_pt here")
    with pytest.raises(ptkit.UnsupportedError, match="pid: no back end on this system can do this"):
        plan_recording(pid=os.getpid())


def test_a_probe_without_trace_is_an_error() -> None:
    from ptkit.planning.probe import _nothing

    assert _nothing(False, 0.2, True).endswith("give it work, or more --seconds")
    assert "ended before" in _nothing(True, 0.0, True)


@needs_emulator
def test_the_program_keeps_its_standard_output_to_itself(capfd: pytest.CaptureFixture[str]) -> None:
    plan_recording([sys.executable, "-c", "print('output')"], backend="emulator")
    assert "output" not in capfd.readouterr().out
