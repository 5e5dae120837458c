"""The driver back end: its options, and what doctor says of it."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit import _core
from ptkit.capture import backends, driver
from ptkit.cli import main
from ptkit.cli.verbs import record

ANSWER: dict[str, Any] = {
    "errno": 0,
    "abi": 2,
    "known_abi": 2,
    "version": (0, 1, 0),
    "features": ["topa", "process", "wake_up", "sideband"],
    "mtc": True,
    "cyc": False,
    "ranges": 4,
}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which the driver works."""
    monkeypatch.setattr(_core, "query_driver", lambda: dict(ANSWER))
    monkeypatch.setattr(
        _core, "query_perf", lambda what="packets": {"missing": "no", "remedy": "none", "abilities": ""}
    )
    monkeypatch.setattr(driver, "processor_has_pt", lambda: True)


def plan(argv: list[str], **options: Any) -> dict[str, Any]:
    from ptkit.capture.options import plan_of

    found = plan_of(argv, options)  # type: ignore[arg-type]
    assert found.backend == "driver"
    return found.arguments


# ---- whether it is there


def test_doctor_says_what_the_driver_can_do(here: None) -> None:
    found = next(one for one in ptkit.capture.probe() if one.name == "driver")
    assert found.available
    for words in ("version 0.1.0", "one process", "switches and page tables", "4 address filters", "MTC"):
        assert words in found.detail
    assert "CYC" not in found.detail


@pytest.mark.parametrize(
    ("error", "missing", "remedy"),
    [
        (errno.EACCES, "may not be opened", "CAP_PERFMON"),
        (errno.EPERM, "may not be opened", "CAP_PERFMON"),
        (errno.ENOTTY, "does not answer", "unload"),
        (errno.ENOENT, "not loaded", "insmod"),
    ],
)
def test_doctor_says_why_the_driver_does_not_work(here: None, error: int, missing: str, remedy: str) -> None:
    found = driver.find({"errno": error})
    assert missing in found.missing
    assert remedy in found.remedy


def test_doctor_names_the_folder_of_the_sources(here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = driver.find_sources()
    assert sources is not None
    for name in ("dkms.conf", "linux/Makefile", "common/pt_check.c", "include/ptkit/ptkit_ioctl.h"):
        assert (sources / name).is_file()
    found = driver.find({"errno": errno.ENOENT})
    assert f"cp -r {sources} ptkit-kernel" in found.remedy
    assert f"dkms add {sources} && dkms install ptkit/{ptkit.__version__}" in found.remedy
    monkeypatch.setattr(driver, "find_sources", lambda: None)
    assert "kernel/ of ptkit's sources" in driver.find({"errno": errno.ENOENT}).remedy


def test_without_the_processors_help_nothing_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "processor_has_pt", lambda: False)
    assert driver.find({"errno": errno.ENOENT}).missing == driver.NO_PT


@pytest.mark.parametrize(
    ("text", "locked"),
    [("none [integrity] confidentiality\n", True), ("[none] integrity confidentiality\n", False)],
)
def test_secure_boot_is_named(
    here: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, locked: bool
) -> None:
    (tmp_path / "lockdown").write_text(text)
    monkeypatch.setattr(driver, "_LOCKDOWN", tmp_path / "lockdown")
    found = driver.find({"errno": errno.ENOENT})
    assert ("integrity" in found.missing) == locked
    assert ("Secure Boot" in found.remedy) == locked


def test_other_interfaces_are_named() -> None:
    reserves = driver.find({**ANSWER, "features": [*ANSWER["features"], "reserves"]})
    assert "trace units reserved against perf's intel_pt" in reserves.abilities
    assert "no intel_pt of perf to reserve trace units against" in driver.find(ANSWER).abilities
    older = driver.find({**ANSWER, "abi": 1})
    newer = driver.find({**ANSWER, "abi": 3})
    assert "load the driver" in older.remedy
    assert "take the ptkit" in newer.remedy


def test_the_core_says_what_is_missing() -> None:
    answer = _core.query_driver()
    assert answer["errno"] != 0 or answer["abi"] == answer["known_abi"]


@pytest.mark.skipif(Path(driver.DEVICE).exists(), reason="the driver is loaded")
def test_recording_with_the_driver_says_what_is_missing() -> None:
    with pytest.raises(ptkit.UnsupportedError, match=r"backend .driver. does not work on this system: .*; "):
        ptkit.Recorder(["true"], backend="driver").run()
    with pytest.raises(ptkit.UnsupportedError, match=r"ptkit's kernel driver is not loaded"):
        _core.Recorder(backend="driver", argv=[b"true"], output=b"x.ptk").run()


def test_branches_need_a_feature_of_the_driver() -> None:
    missing = driver.find(ANSWER, "bts")
    assert "isolates page tables" in missing.missing
    assert "pti=off" in missing.remedy
    found = driver.find({**ANSWER, "features": [*ANSWER["features"], "bts"]}, "bts")
    assert found.abilities
    assert not found.missing


# ---- options


@pytest.mark.usefixtures("here")
def test_options_reach_the_core() -> None:
    arguments = plan(
        [], cpus=[2, 0], levels="both", seconds=1.5, buffer="8M", packets="ptwrite", ring="1M",
        single_range=True, filters="filter 0x1000/16",
    )  # fmt: skip
    assert arguments["argv"] == []
    assert arguments["cpus"] == [0, 2]
    assert (arguments["levels"], arguments["packets"]) == ("both", ["ptwrite"])
    assert (arguments["seconds"], arguments["buffer"]) == (1500, 8 << 20)
    assert (arguments["ring"], arguments["single_range"]) == (1 << 20, True)
    assert "timing" not in arguments
    _core.Recorder(**arguments, output=b"x.ptk")  # takes all of them
    assert plan(["true"], backend="driver")["argv"] == [b"true"]
    process = plan([], pid=1, levels="kernel", children=False)
    assert (process["pid"], process["levels"]) == (1, "kernel")
    assert process["children"] is False
    assert plan(["true"], per_thread=True)["per_thread"] is True


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("argv", "options", "words"),
    [
        ([], {"backend": "driver"}, "argv: expected a program"),
        (["true"], {"pid": 1}, "pid: this process is recorded"),
        ([], {"pid": 1, "cpus": "all"}, "cpus: a process is followed"),
        ([], {"cpus": "some"}, "cpus: expected 'all'"),
        ([], {"cpus": []}, "cpus: expected 'all'"),
        (["true"], {"levels": "root"}, "levels: expected one of user, kernel, both"),
        (["true"], {"packets": ["tnt"]}, "packets: expected any of"),
        (["true"], {"seconds": 0}, "seconds: expected"),
        (["true"], {"buffer": "12"}, "buffer=12: it must be"),
        (["true"], {"backend": "driver", "triggers": "stop at main"}, "it has no triggers"),
        (["true"], {"backend": "driver", "max_instructions": 5}, "it has no max_instructions"),
        (["true"], {"backend": "driver", "tnt_64": True}, "it has no tnt_64; use 'emulator' or 'step'"),
        (["true"], {"backend": "step", "levels": "both"}, "it has no levels; use 'driver'"),
        (["true"], {"backend": "step", "children": False}, "it has no children=False; use 'driver'"),
    ],
)
def test_driver_options_that_exclude_each_other_are_refused(
    argv: list[str], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ptkit.ConfigError, match=words):
        plan(argv, **options)


def test_whole_machines_need_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "query_driver", lambda: {"errno": errno.ENOENT})
    with pytest.raises(ptkit.UnsupportedError) as raised:
        plan([], cpus="all")
    assert str(raised.value) == (
        "cpus: no back end on this system can do this; perf, driver: this processor has no Intel PT, or its "
        "hypervisor hides it; needs a machine with Intel PT (Broadwell or newer); "
        "emulator and step only start programs: ptkit record -- PROGRAM ARGS"
    )


def test_the_best_back_end_does_what_is_asked(here: None) -> None:
    found, _ = backends.choose("auto", ["triggers"], "x86-64")
    assert found.name == "emulator"
    found, _ = backends.choose("auto", [], "x86-64")
    assert found.name == "driver"


# ---- the command line


def test_options_of_the_command_line() -> None:
    import argparse

    parser = argparse.ArgumentParser()
    record.prepare_parser(parser)
    words = ["-C", "0,2-3", "--levels", "kernel", "--seconds", "2", "-m", "1M", "--packets", "power,events"]
    assert record._recorder_options(parser.parse_args(words)) == {
        "cpus": [0, 2, 3],
        "levels": "kernel",
        "seconds": 2.0,
        "buffer": "1M",
        "packets": "power,events",
    }
    assert record._recorder_options(parser.parse_args(["-a", "--no-children"])) == {
        "cpus": "all",
        "children": False,
    }
    assert record._recorder_options(parser.parse_args([])) == {}


@pytest.mark.parametrize(
    ("cpus", "words"),
    [
        ("x", "--cpu: expected numbers such as 0,2-3, found 'x'"),
        ("6/142/9", "'6/142/9' is a processor's model: write --processor 6/142/9"),
        ("0-4000000000", "--cpu: expected numbers below 65536 in order, found '0-4000000000'"),
        ("3-1", "in order, found '3-1'"),
    ],
)
def test_bad_processor_numbers_are_refused(cpus: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["record", "-C", cpus, "--", "true"])
    assert exit_info.value.code == 2
    assert words in capsys.readouterr().err
