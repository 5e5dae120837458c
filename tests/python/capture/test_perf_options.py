"""perf's back end: its options, and what doctor says of it."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest

import ptkit
from ptkit import _core
from ptkit.capture import driver, perf
from ptkit.capture.backend_probe import BackendProbe
from ptkit.capture.options import plan_of
from ptkit.cli.main import main
from ptkit.cli.verbs import record


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which perf has intel_pt, and the driver is loaded."""
    answer = {"missing": "", "remedy": "", "abilities": "4 address filters"}
    monkeypatch.setattr(_core, "query_perf", lambda what="packets": dict(answer))
    monkeypatch.setattr(driver, "find", lambda what="packets": BackendProbe(abilities="version 0.1.0"))


def plan(argv: list[str], **options: Any) -> dict[str, Any]:
    found = plan_of(argv, options)  # type: ignore[arg-type]
    assert found.backend == "perf"
    return found.arguments


# ---- whether it is there


def test_doctor_says_what_perf_can_do(here: None) -> None:
    found = next(one for one in ptkit.capture.probe() if one.name == "perf")
    assert found.available
    assert "4 address filters" in found.detail


def test_doctor_says_why_perf_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"missing": "another tracer is active", "remedy": "stop that tracer first", "abilities": ""}
    monkeypatch.setattr(_core, "query_perf", lambda what="packets": dict(answer))
    found = next(one for one in ptkit.capture.probe() if one.name == "perf")
    assert not found.available
    assert "another tracer" in found.missing
    assert found.remedy == "stop that tracer first"
    with pytest.raises(ptkit.UnsupportedError, match=r"another tracer is active; stop that tracer first"):
        plan(["true"], backend="perf")


def test_the_core_says_what_is_missing() -> None:
    found = perf.find()
    assert bool(found.missing) == bool(found.remedy)
    assert bool(found.missing) != bool(found.abilities)


@pytest.mark.skipif(not perf.find().missing, reason="perf has intel_pt here")
def test_recording_with_perf_says_what_is_missing() -> None:
    with pytest.raises(ptkit.UnsupportedError, match=perf.find().missing[:20]):
        _core.Recorder(backend="perf", argv=[b"true"], output=b"x.ptk").run()


# ---- options


@pytest.mark.usefixtures("here")
def test_options_reach_the_core() -> None:
    arguments = plan(
        [], pid=1, levels="both", seconds=1.5, buffer="8M", packets="ptwrite", per_thread=True,
        event="noretcomp", filters="filter 0x1000/16",
    )  # fmt: skip
    assert (arguments["pid"], arguments["levels"]) == (1, "both")
    assert (arguments["per_thread"], arguments["event"]) == (True, "noretcomp")
    assert not {"timing", "mtc_period"} & set(arguments)  # the core knows the processor
    _core.Recorder(**arguments, output=b"x.ptk")  # takes all of them
    assert plan(["true"], children=False)["children"] is False
    arguments = plan(["true"], timing=("tsc", "mtc"), mtc_period=3)
    assert (arguments["timing"], arguments["mtc_period"]) == (["tsc", "mtc"], 3)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"event": 5}, "event: expected ASCII text: .*such as noretcomp,cyc_thresh=2.*, found 5"),
        ({"event": "tsc\0"}, "event: expected ASCII text"),
        ({"backend": "perf", "single_range": True}, "it has no single_range; use 'driver'"),
        ({"backend": "driver", "event": "tsc"}, "it has no event; use 'perf'"),
        ({"backend": "step", "per_thread": True}, "it has no per_thread; use 'perf'"),
    ],
)
def test_perf_options_that_exclude_each_other_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((ptkit.ConfigError, ptkit.UnsupportedError), match=words):
        plan(["true"], **options)


FLAGS = ("return_compression", "tnt_64", "redact", "quiet", "children", "single_range", "per_thread", "bts")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("backend", ["perf", "driver"])
@pytest.mark.parametrize("value", [0, 0.0, "", b"", {}, (), 1, "no"], ids=repr)
def test_flags_are_true_or_false(backend: str, value: Any) -> None:
    """Whatever else Python takes for false would be a surprise."""
    for name in FLAGS:
        with pytest.raises(ptkit.ConfigError, match=f"{name}=.* must be True or False"):
            plan(["true"], backend=backend, **{name: value})


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("value", [b"", b"tsc", {}, 0, "", [b"tsc"]], ids=repr)
def test_perf_options_of_wrong_types_are_refused(value: Any) -> None:
    for name in ("timing", "packets", "branch_stack", "filters", "triggers"):
        with pytest.raises(ptkit.ConfigError, match=name.rstrip("s")):
            plan(["true"], **{name: value})


# ---- branches instead of packets


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("given", "reached"),
    [
        ({"bts": True}, {"bts": True}),
        ({"bts": False, "branch_stack": False}, {}),
        ({"branch_stack": True}, {"branch_stack": "any"}),
        ({"branch_stack": "any_call,cond"}, {"branch_stack": "any_call,cond"}),
        ({"branch_stack": ["any_ret"], "sample_period": 5}, {"branch_stack": "any_ret", "sample_period": 5}),
        ({"branch_stack": True, "sample_frequency": 99}, {"branch_stack": "any", "sample_frequency": 99}),
    ],
)
def test_branches_reach_the_core(given: dict[str, Any], reached: dict[str, Any]) -> None:
    arguments = plan(["true"], **given)
    names = ("bts", "branch_stack", "sample_period", "sample_frequency")
    assert {name: arguments[name] for name in names if name in arguments} == reached
    _core.Recorder(**arguments, output=b"x.ptk")  # takes all of them


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bts": True, "branch_stack": True}, "bts, branch_stack: a recording has one of both"),
        ({"bts": True, "timing": ("tsc",)}, "timing: this is of packets"),
        ({"branch_stack": "any", "mtc_period": 3}, "mtc_period: this is of packets"),
        ({"bts": 1}, "bts=1 must be True or False"),
        ({"branch_stack": 5}, "branch_stack: expected kinds of branches such as 'any_call', found 5"),
        ({"branch_stack": []}, "branch_stack: expected kinds"),
        ({"sample_period": 5}, "sample_period: says how often a branch stack is taken"),
        ({"branch_stack": True, "sample_frequency": 0}, "sample_frequency=0: it must be"),
        ({"backend": "step", "bts": True}, "it has no bts; use 'perf'"),
        ({"backend": "step", "branch_stack": True}, "it has no branch_stack; use 'perf'"),
    ],
)
def test_branches_that_do_not_go_together(options: dict[str, Any], words: str) -> None:
    with pytest.raises((ptkit.ConfigError, ptkit.UnsupportedError), match=words):
        plan(["true"], **options)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "option", [{"return_compression": False}, {"psb_period": 2048}, {"packets": "power"}, {"event": "tsc"}]
)
def test_what_packets_have_is_refused_by_name(
    option: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core refuses what the system has to be asked for otherwise."""
    recorder = _core.Recorder(**plan(["true"], branch_stack=True, **option), output=b"x.ptk")
    with pytest.raises(ptkit.UnsupportedError, match=f"{next(iter(option))}: this is of packets"):
        recorder.run()


def answers(monkeypatch: pytest.MonkeyPatch, **missing: str) -> None:
    """What the kernel says of each thing that can be recorded: why it cannot be, or nothing."""

    def ask(what: str = "packets") -> dict[str, str]:
        lack = missing.get(what, "")
        return {"missing": lack, "remedy": lack and "do this", "abilities": "" if lack else "all"}

    monkeypatch.setattr(_core, "query_perf", ask)


def test_branches_need_no_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, packets="this processor has no Intel PT")
    assert plan(["true"], backend="perf", bts=True)["bts"] is True
    assert plan(["true"], branch_stack=True)["branch_stack"] == "any"
    with pytest.raises(ptkit.UnsupportedError, match="this processor has no Intel PT; do this"):
        plan(["true"], backend="perf")


def test_missing_branch_records_have_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, bts="Linux has no intel_bts while it isolates page tables", branch_stack="no LBR")
    with pytest.raises(ptkit.UnsupportedError, match="isolates page tables; do this"):
        plan(["true"], backend="perf", bts=True)
    with pytest.raises(ptkit.UnsupportedError, match="no LBR; do this"):
        plan(["true"], branch_stack=True)
    plan(["true"], backend="perf")


def test_the_core_says_why_there_are_no_branches() -> None:
    for what in ("bts", "branch_stack"):
        found = perf.find(what=what)
        assert bool(found.missing) == bool(found.remedy)
        assert bool(found.missing) != bool(found.abilities)


def test_doctor_has_a_line_for_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, bts="Linux has no intel_bts while it isolates page tables")
    assert main(["doctor", "--json"]) == 0
    backends = {one["name"]: one for one in json.loads(capsys.readouterr().out)["backends"]}
    others = {one["records"]: one for one in backends["perf"]["others"]}
    assert others["bts"]["missing"] == "Linux has no intel_bts while it isolates page tables"
    assert others["bts"]["remedy"] == "do this"
    assert others["branch_stack"]["available"]
    assert [one["records"] for one in backends["driver"]["others"]] == ["bts"]
    assert main(["doctor"]) == 0
    table = capsys.readouterr().out
    assert table.count("--bts") == 2
    assert "--branch-stack" in table


def test_branches_of_the_command_line() -> None:
    parser = argparse.ArgumentParser()
    record.prepare_parser(parser)

    def units(*words: str) -> dict[str, Any]:
        return record._recorder_options(parser.parse_args([*words, "--", "true"]))

    assert units("--bts") == {"bts": True}
    assert units("--branch-stack") == {"branch_stack": "any"}
    assert units("--branch-stack=any_call,cond", "--sample-period", "500") == {
        "branch_stack": "any_call,cond",
        "sample_period": 500,
    }
    assert units("--branch-stack", "--sample-frequency", "99")["sample_frequency"] == 99


def test_options_of_the_command_line() -> None:
    parser = argparse.ArgumentParser()
    record.prepare_parser(parser)
    words = ["--per-thread", "--event", "cyc,cyc_thresh=2", "-p", "7"]
    assert record._recorder_options(parser.parse_args(words)) == {
        "pid": 7,
        "per_thread": True,
        "event": "cyc,cyc_thresh=2",
    }
