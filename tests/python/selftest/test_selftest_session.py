"""Runs of the self-test: which checks are made, what is said of failures, and what a report has."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ptkit import msr
from ptkit.capture import Backend
from ptkit.errors import ConfigError, OpenError
from ptkit.selftest import machine, session
from ptkit.selftest.bench import Bench
from ptkit.selftest.checks import CHECKS, Check
from ptkit.selftest.outcome import FAILED, PASSED, UNAVAILABLE, CheckFailed, Outcome, Unavailable
from ptkit.selftest.report import ALL_PASSED, NOTHING_TESTED, SOME_FAILED, make_report, status_of
from ptkit.selftest.session import Plan, Session, causes


def raises(error: Exception) -> Callable[[Bench], str]:
    def run(bench: Bench) -> str:
        raise error

    return run


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """Makes a session with these checks of perf, which is there."""

    def run(*checks: Check, seconds: float = 0, wanted: tuple[str, ...] = ()) -> Session:
        monkeypatch.setattr(session, "probe", lambda: [Backend("perf", True, "")])
        monkeypatch.setitem(CHECKS, "perf", checks)
        shown: list[Outcome] = []
        made = Session(Plan(("perf",), wanted, seconds=seconds), shown.append)
        made.run()
        assert shown[: len(made.outcomes)] or not made.outcomes
        return made

    return run


def results(made: Session) -> dict[str, str]:
    return {outcome.check: outcome.result for outcome in made.outcomes.values()}


def test_results(planted: Callable[..., Session]) -> None:
    made = planted(
        Check("good", lambda bench: "all of it", ""),
        Check("bad", raises(CheckFailed("other bytes")), "look at the output"),
        Check("absent", raises(Unavailable("no such packets")), ""),
        Check("broken", raises(OpenError("no room")), ""),
    )
    assert results(made) == {"good": PASSED, "bad": FAILED, "absent": UNAVAILABLE, "broken": FAILED}
    assert made.outcomes["perf", "bad"].suggests == "look at the output"
    assert made.outcomes["perf", "good"].suggests == ""
    assert status_of(made) == SOME_FAILED


def test_failures_that_follow_from_others(planted: Callable[..., Session]) -> None:
    made = planted(
        Check("first", raises(CheckFailed("x")), ""),
        Check("second", raises(CheckFailed("y")), "", ("first", "absent")),
        Check("third", raises(CheckFailed("z")), ""),
    )
    assert [outcome.check for outcome in causes(made.outcomes.values())] == ["first", "third"]
    assert made.outcomes["perf", "second"].follows == ("first",)


def test_a_round_again_with_another_seed(planted: Callable[..., Session]) -> None:
    seeds: list[int] = []

    def run(bench: Bench) -> str:
        seeds.append(bench.seed)
        if bench.seed == 3:
            raise CheckFailed("other bytes")
        return "all of it"

    calls: list[int] = []
    made = planted(
        Check("rare", run, ""), Check("absent", lambda bench: _note(calls, bench), ""), seconds=600
    )
    assert seeds == [1, 2, 3]
    assert made.outcomes["perf", "rare"].detail == "other bytes (round 3, --seed 3)"
    assert calls == [1]  # what is unavailable is not tried again
    assert made.rounds == 3


def _note(calls: list[int], bench: Bench) -> str:
    calls.append(bench.seed)
    raise Unavailable("no")


def test_nothing_tested(planted: Callable[..., Session]) -> None:
    assert status_of(planted(Check("absent", raises(Unavailable("no")), ""))) == NOTHING_TESTED
    assert status_of(planted(Check("good", lambda bench: "", ""))) == ALL_PASSED


def test_chosen_checks(planted: Callable[..., Session]) -> None:
    checks = [Check(name, lambda bench: "", "") for name in ("one", "two")]
    assert results(planted(*checks, wanted=("two",))) == {"two": PASSED}
    with pytest.raises(ConfigError, match="perf have no check 'three'; there are one, two"):
        planted(*checks, wanted=("three",))


def test_folder_where_programs_may_not_run(
    planted: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    with pytest.raises(ConfigError, match=r"may not run there .noexec.; set TMPDIR"):
        planted(Check("good", lambda bench: "", ""))


def test_processor_that_may_not_be_used() -> None:
    with pytest.raises(ConfigError, match="may not use processor 99999"):
        Plan(cpu=99999)


def test_each_check_suggests_something_and_follows_from_checks_before_it() -> None:
    for checks in CHECKS.values():
        for number, check in enumerate(checks):
            assert len(check.suggests) > 20
            assert set(check.follows) <= {other.name for other in checks[:number]}


def test_options_that_are_refused_are_unavailable(tmp_path: Path) -> None:
    from ptkit.selftest.programs import filtered

    with pytest.raises(Unavailable, match="step"):
        Bench("step", 0, tmp_path).record(filtered(1), ring="64K")


def words(*leaves: str) -> str:
    """CPUID leaves as `cpuid -r` writes them, with some value in EAX."""
    return "\n".join(
        f"{leaf}: eax=0x00000001 ebx=0x00000000 ecx=0x00000000 edx=0x00000000" for leaf in leaves
    )


# What processors have: with Processor Trace, with leaves about other things only, and older than leaf 7.
TRACING = words("0x00000007 0x00", "0x00000014 0x00", "0x00000014 0x01", "0x00000015 0x00")
WITHOUT_TRACE = words("0x00000007 0x00")
OLD = words("0x00000001 0x00")


@pytest.fixture(params=[TRACING, WITHOUT_TRACE, OLD], ids=["tracing", "without-trace", "old"])
def found(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> msr.Capabilities:
    """What CPUID of the machine is made to say."""
    capabilities = msr.capabilities(request.param)
    monkeypatch.setattr(machine.msr, "capabilities", lambda: capabilities)
    return capabilities


@pytest.fixture
def report(planted: Callable[..., Session], found: msr.Capabilities) -> str:
    detail = f"no code of {Path.home()}/secret.ptk on {platform.node()}; see /proc/interrupts"
    made = planted(
        Check("bad", raises(CheckFailed(detail)), "x"), Check("worse", raises(OpenError(detail)), "x")
    )
    return json.dumps(make_report(made))


def test_report_has_the_machine_and_no_names(report: str, found: msr.Capabilities) -> None:
    document = json.loads(report)
    assert document["machine"]["kernel"] == platform.release()
    assert [list(row.values()) for row in document["machine"]["cpuid"]] == [
        [hex(word) for word in row] for row in found.words
    ]
    assert document["causes"] == ["perf bad", "perf worse"]
    assert "secret" not in report
    assert str(Path.home()) not in report
    assert len(platform.node()) < 3 or platform.node() not in report
    assert "see /proc/interrupts" in report


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b of 3/4 in ~/x: no", "a/b of 3/4 in PATH: no"),
        ("'/home/me/x y'", "'PATH y'"),
        ("/dev/cpu/0/msr and /tmp/x", "/dev/cpu/0/msr and PATH"),
    ],
)
def test_paths_are_left_out(text: str, expected: str) -> None:
    assert machine.without_names(text) == expected


def test_interrupts_are_added_up() -> None:
    text = "     CPU0  CPU1\n  0:  9  9  IO-APIC\nNMI:  1  2   Non-maskable\nPMI: 30 4   Performance\n"
    assert machine.interrupts(text) == {"NMI": 3, "PMI": 34}


def test_processor_of_cpuinfo() -> None:
    first = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nflags\t\t: fpu intel_pt\n"
    text = f"processor\t: 0\n{first}\nmodel\t: 1\n"
    found = machine._cpu(text)
    assert (found["vendor"], found["family"], found["model"]) == ("GenuineIntel", 6, 85)
    assert found["stepping"] is None
    assert not found["hypervisor"]
