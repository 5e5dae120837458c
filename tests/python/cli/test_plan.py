"""`ptkit doctor --plan`: its report, and its options."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_json import DOCUMENTS, assert_fits

import ptkit
from ptkit.cli import main
from ptkit.cli.plan_report import plan_document, print_plan
from ptkit.planning import Estimate, RecordingPlan, StreamRate

MIB = 1 << 20
PLAN = RecordingPlan(
    backend="perf",
    reason="",
    measures_silicon=True,
    seconds=0.2,
    complete=False,
    trace_bytes=20_000_000,
    instructions=0,
    branches=0,
    window_seconds=0.001,
    streams=(
        StreamRate("processor 3", 15_000_000, 75e6, 240e6),
        StreamRate("thread 77 (a name that is far too long for a column)", 5_000_000, 25e6, 30e6),
    ),
    timing=("tsc", "mtc", "cyc"),
    groups={"TNT": 5, "TIP": 2, "CYC": 62, "MTC": 1, "TSC": 10, "PSB+": 20, "other": 0},
    overflows=3,
    losses=1,
    lost_bytes=4096,
    warnings=("a sentence",),
    folder=".",
    drain_bytes_per_second=310e6,
    packed=0.25,
    estimates=(
        Estimate(("--timing", "tsc,mtc,cyc"), 100e6, 240e6, 0.031, 16 * MIB, 12),
        Estimate((), 38e6, 90e6, 0.0012, 8 * MIB, 0),
        Estimate(("--mtc-period", "9"), 37e6, 89e6, 0.0, None, 0),
    ),
    command=("ptkit", "record", "--buffer", "8M", "--", "./a b"),
    reasons=(("--buffer 8M", "4M (default) would lose 0.12 %"),),
)


def report(
    plan: RecordingPlan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int = 120
) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    print_plan(plan)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [80, 120])
def test_the_report_fits_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = report(PLAN, capsys, monkeypatch, width)
    assert max(map(len, text.splitlines())) <= width


def test_the_report_has_the_facts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = report(PLAN, capsys, monkeypatch)
    lines = text.splitlines()
    assert lines[0] == (
        "probe: 0.2 s with backend perf, 20,000,000 bytes of trace, 100 MB/s with timing packets tsc,mtc,cyc"
    )
    assert (
        "losses in the probe: 3 overflows of the trace unit (OVF), 1 loss of the recorder (4,096 bytes"
        in text
    )
    assert "310 MB/s of trace can be packed and written to ." in text
    assert "processor 3                        75 MB/s            240 MB/s" in lines
    for cells in (
        ["--timing tsc,mtc,cyc", "100 MB/s", "240 MB/s", "OVF", "16M"],
        ["(defaults)", "38 MB/s", "90 MB/s", "0.12 %", "8M"],
        ["--mtc-period 9", "37 MB/s", "89 MB/s", "nothing", "none"],
    ):
        assert any(all(cell in line for cell in cells) for line in lines), cells
    assert lines[-3:] == [
        "--buffer 8M: 4M (default) would lose 0.12 %",
        "Recommended:",
        "  ptkit record --buffer 8M -- './a b'",
    ]


def test_shares_of_packets_are_sorted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = report(replace(PLAN, trace_bytes=100), capsys, monkeypatch)
    assert "packets: CYC 62.0 %, PSB+ 20.0 %, TSC 10.0 %, TNT 5.0 %, TIP 2.0 %, MTC 1.0 %\n" in text


def test_defaults_that_suffice_are_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = report(replace(PLAN, reasons=(), command=("ptkit", "record")), capsys, monkeypatch)
    assert text.endswith("The defaults lose nothing:\n  ptkit record\n")


def test_a_short_probe_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "short: " in report(replace(PLAN, complete=True), capsys, monkeypatch)
    assert "short: " not in report(PLAN, capsys, monkeypatch)


def test_a_lossy_probe_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "lossy: " in report(PLAN, capsys, monkeypatch)
    assert "lossy: " not in report(replace(PLAN, overflows=0, losses=0), capsys, monkeypatch)


def test_emulated_rates_are_said_to_be_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(PLAN, backend="emulator", measures_silicon=False, instructions=40, branches=10, reasons=())
    plan = replace(plan, reason="perf: no Intel PT")
    text = " ".join(report(plan, capsys, monkeypatch).split())
    assert "rates: of backend emulator, not of a processor" in text
    assert "(perf: no Intel PT)" in text
    assert "each takes 0.700 bytes of TNT and TIP packets" in text  # 7 bytes, 10 branches
    assert "175 MB/s of them for each billion instructions a second" in text  # 7 bytes, 40 instructions
    assert "the program waits for the recorder, so nothing is lost" in text
    assert "lost with 4M" not in text


def test_names_in_a_recording_cannot_write_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(PLAN, streams=(StreamRate("x\nptkit: error: \x1b[2J", 1, 1.0, 1.0),))
    text = report(plan, capsys, monkeypatch)
    assert "\x1b" not in text
    assert "\nptkit: error" not in text


def test_the_document_fits_the_schema() -> None:
    assert_fits(DOCUMENTS, "plan", {"schema": 1, "document": "plan", **plan_document(PLAN)})


def test_a_plan_of_a_program(
    brief: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--plan", "--json", "--backend", "step", "--", brief]) == 0
    found = json.loads(capsys.readouterr().out)
    assert_fits(DOCUMENTS, "plan", found)
    assert found["complete"]
    assert main(["doctor", "--plan", "--backend", "step", "--timing", "none", "--", brief]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    # The command is for pasting: it records, with the options that the plan has.
    assert main([*shlex.split(last)[1:3], str(tmp_path / "x.ptk"), *shlex.split(last)[4:]]) == 0
    assert ptkit.open(tmp_path / "x.ptk").packet_counts()[ptkit.PacketKind.MTC] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "true"], "'true' is only for a plan: ptkit doctor --plan -- PROGRAM ARGS"),
        (["--seconds", "1"], "--seconds is only for a plan"),
        (["-a"], "--all-cpus is only for a plan"),
        (["--plan"], "nothing to probe: give a program"),
        (["--plan", "--", "no-such-program"], "there is no program 'no-such-program'"),
        (["--plan", "--seconds", "nan", "--", "true"], "--seconds: expected a number from 0.001 to 3600"),
        (["--plan", "--timing", "tcs", "--", "true"], "--timing: "),
        (["--plan", "-o", "/absent/x.ptk", "--", "true"], "cannot write to '/absent'"),
    ],
)
def test_bad_options(arguments: list[str], message: str, capsys: pytest.CaptureFixture[Any]) -> None:
    assert main(["doctor", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("ptkit doctor: error: ")
    assert message in error
