"""perf's back end: its options, and what doctor says of it."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

import ptkit
from ptkit import _core
from ptkit.capture import driver, perf
from ptkit.capture.options import plan_of
from ptkit.cli import record


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which perf has intel_pt, and the driver is loaded."""
    answer = {"missing": "", "remedy": "", "abilities": "4 address filters"}
    monkeypatch.setattr(_core, "ask_perf", lambda: dict(answer))
    monkeypatch.setattr(driver, "find", lambda: driver.Found(abilities="version 0.1.0"))


def plan(argv: list[str], **options: Any) -> dict[str, Any]:
    found = plan_of(argv, options)  # type: ignore[arg-type]
    assert found.backend == "perf"
    return found.arguments


# ---- whether it is there


def test_what_it_can_do_is_said(here: None) -> None:
    found = next(one for one in ptkit.capture.probe() if one.name == "perf")
    assert found.available
    assert "4 address filters" in found.detail


def test_why_it_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"missing": "somebody else traces already", "remedy": "end that first", "abilities": ""}
    monkeypatch.setattr(_core, "ask_perf", lambda: dict(answer))
    found = next(one for one in ptkit.capture.probe() if one.name == "perf")
    assert not found.available
    assert "somebody else" in found.missing
    assert found.remedy == "end that first"
    with pytest.raises(ptkit.UnsupportedError, match=r"somebody else traces already; end that first"):
        plan(["true"], backend="perf")


def test_the_core_says_what_is_missing() -> None:
    found = perf.find()
    assert bool(found.missing) == bool(found.remedy)
    assert bool(found.missing) != bool(found.abilities)


@pytest.mark.skipif(not perf.find().missing, reason="perf has intel_pt here")
def test_recording_says_so_too() -> None:
    with pytest.raises(ptkit.UnsupportedError, match=perf.find().missing[:20]):
        _core.PerfRecorder(argv=[b"true"], output=b"x.ptk").run()


# ---- options


@pytest.mark.usefixtures("here")
def test_options_reach_the_core() -> None:
    arguments = plan(
        [], pid=1, levels="both", seconds=1.5, buffer="8M", packets="ptwrite", per_thread=True,
        event="noretcomp", filters="filter 0x1000/16",
    )  # fmt: skip
    assert (arguments["process"], arguments["user"], arguments["kernel"]) == (1, True, True)
    assert (arguments["per_thread"], arguments["event"]) == (True, b"noretcomp")
    assert (arguments["tsc"], arguments["mtc"], arguments["cyc"]) == (True, True, False)
    assert arguments["mtc_period"] == 3
    _core.PerfRecorder(**arguments, output=b"x.ptk")  # takes all of them
    assert plan(["true"], children=False)["children"] is False


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"event": 5}, "event: expected perf's terms"),
        ({"event": "tsc\0"}, "event: expected perf's terms"),
        ({"backend": "perf", "single_range": True}, "it has no single_range; use 'driver'"),
        ({"backend": "driver", "event": "tsc"}, "it has no event; use 'perf'"),
        ({"backend": "step", "per_thread": True}, "it has no per_thread; use 'perf'"),
        ({"backend": "perf", "truth": "/tmp"}, "it has no truth"),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], words: str) -> None:
    with pytest.raises((ptkit.ConfigError, ptkit.UnsupportedError), match=words):
        plan(["true"], **options)


def test_options_of_the_command_line() -> None:
    parser = argparse.ArgumentParser()
    record.prepare_parser(parser)
    words = ["--per-thread", "--event", "cyc,cyc_thresh=2", "-p", "7"]
    assert record._units(parser.parse_args(words)) == {
        "pid": 7,
        "per_thread": True,
        "event": "cyc,cyc_thresh=2",
    }
