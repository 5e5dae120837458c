"""Every verb on streams of known content: its output, its JSON, and its errors on bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from compiling import build

import ptkit
from ptkit import capture
from ptkit.analysis import verify
from ptkit.cli import main
from ptkit.cli.output.line_writer import LineWriter

# PSB, PSBEND, TIP.PGE to 0x1000, TNT (taken, not taken), TIP.PGD without IP.
STREAM = bytes.fromhex("0282" * 8 + "0223" + "7100100000000000"[:14] + "0a" + "01")
# 1000: jz 1004; 1002: nop; nop; 1004: jz 1000 ; 1006: jmp rax
CODE = bytes.fromhex("7402" + "9090" + "74fa" + "ffe0")


@pytest.fixture
def stream(tmp_path: Path) -> list[str]:
    """Arguments that open the stream with its code."""
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM)
    code = tmp_path / "code.bin"
    code.write_bytes(CODE)
    return [str(path), "--code", f"{code}@0x1000", "--processor", "6/142/9"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_packets_are_those_of_ptdump(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "packets", *stream)
    assert status == 0
    assert [line.split() for line in out.splitlines()] == [
        ["0000000000000000", "psb"],
        ["0000000000000010", "psbend"],
        ["0000000000000012", "tip.pge", "3:", "0000000000001000"],
        ["0000000000000019", "tnt.8", ".!"],
        ["000000000000001a", "tip.pgd", "0:", "????????????????"],
    ]


def test_packets_as_json(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "packets", "--json", *stream)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["kind"] for row in rows[1:]] == ["PSB", "PSBEND", "TIP_PGE", "TNT_8", "TIP_PGD"]
    assert rows[3]["ip"] == "0x1000"


def test_packets_with_branches_show_the_branches_of_each(
    stream: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "packets", "--branches", "--no-header", *stream)
    assert status == 0, err
    assert err == ""
    assert [line.split() for line in out.splitlines()[2:]] == [
        ["0000000000000012", "tip.pge", "3:", "0000000000001000"],
        ["0000000000000019", "tnt.8", ".!"],
        [".", "0000000000001000", ">", "0000000000001002"],
        ["!", "0000000000001004", ">", "0000000000001000"],
        ["000000000000001a", "tip.pgd", "0:", "????????????????"],
        [".", "0000000000001000", ">", "????????????????"],
    ]
    _, alone, _ = run(capsys, "packets", "--branches", "--limit", "3", *stream)
    assert alone.splitlines() == out.splitlines()[:3]
    status, _, err = run(capsys, "packets", "--branches", "--json", *stream)
    assert status == 2
    assert "ptkit branches --json" in err


def test_packets_with_branches_show_what_was_lost(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, "packets", "--branches", "--processor", "6/142/9", damaged)
    lines = out.splitlines()
    assert lines[0].startswith("[gap: before the first PSB")
    assert sum(line.startswith("[error: no code") for line in lines) == 1
    assert any(line.startswith("[error: unknown packet opcode") for line in lines)
    assert "2 errors and 4 gaps" in err


def test_branches_print_a_line_each(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "branches", *stream)
    assert [line.split()[1:4] for line in out.splitlines()][:2] == [
        ["0000000000001000", "--", "0000000000001002"],
        ["0000000000001004", "=>", "0000000000001000"],
    ]
    _, taken, _ = run(capsys, "branches", "--taken", *stream)
    assert "--" not in taken
    assert "=>" in taken


def test_instructions_have_events_between_them(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "instructions", *stream)
    lines = out.splitlines()
    ips = [line.split()[0] for line in lines if not line.startswith("[")]
    assert ips[:4] == ["0000000000001000", "0000000000001002", "0000000000001003", "0000000000001004"]
    assert lines.index("[enabled, ip: 0000000000001000]") < lines.index(
        next(line for line in lines if not line.startswith("["))
    )
    assert lines[-1].startswith("[disabled")
    assert "jz 0x1004" in out


def test_instructions_leave_out_events_that_repeat_the_state(
    stream: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(stream[0])
    path.write_bytes(STREAM * 3)
    _, text, _ = run(capsys, "instructions", *stream)
    _, rows, _ = run(capsys, "instructions", "--json", "--status", *stream)
    events = [one for one in map(json.loads, rows.splitlines()) if one.get("table") == "events"]
    repeated = [one for one in events if "status" in one["flags"]]
    assert len(repeated) >= 3
    notes = [line for line in text.splitlines() if line.startswith("[")]
    happened = [one for one in events if one not in repeated]
    messages = [f"[{one['message']}]" for one in happened]
    assert [line for line in notes if not line.startswith(("[gap", "[error"))] == messages != []
    _, rows, _ = run(capsys, "instructions", "--json", *stream)
    assert [one for one in map(json.loads, rows.splitlines()) if one.get("table") == "events"] == happened


def test_limit_cuts_rows(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "instructions", "--no-events", "--no-inst", "--limit", "3", *stream)
    assert out.split() == ["0000000000001000", "0000000000001002", "0000000000001003"]


def test_missing_code_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM)
    status, out, err = run(capsys, "instructions", "--processor", "6/142/9", str(path))
    assert status == 0
    assert "[error: no code at this address" in out
    assert "1 error and " in err


def test_info_prints_what_a_trace_holds(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "info", "--decode", "--json", *stream)
    info = json.loads(out)
    assert info["bytes"] == len(STREAM)
    assert info["counts"]["branches"] >= 2


def test_names_cannot_command_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ptout.0"
    path.write_bytes(STREAM)
    (tmp_path / "ptout.sideband").write_text("0.0 77 1000 1000 0 4096 \t/no/\x1b]0;mine\x07file\n")
    status, out, err = run(capsys, "info", str(path))
    assert status == 0
    assert "\x1b" not in out + err
    assert "\\x1b]0;mine\\x07file" in out + err


def test_doctor_lists_back_ends(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    status, out, _ = run(capsys, "doctor", "--json")
    assert status == 0
    report = json.loads(out)
    assert "ptkit" in report["engines"]
    assert "step" in [backend["name"] for backend in report["backends"]]
    for backend in report["backends"]:
        assert backend["available"] or backend["remedy"]
    status, out, _ = run(capsys, "doctor")
    assert status == 0
    for backend in report["backends"]:  # in a pipe, each has one line
        assert any(backend["name"] in line and backend["detail"] in line for line in out.splitlines())


@pytest.mark.parametrize("verb", ["packets", "branches", "instructions"])
@pytest.mark.parametrize("options", [["--no-header"], ["--json"]])
def test_head_ends_a_verb(verb: str, options: list[str], tmp_path: Path) -> None:
    """Many more rows than a pipe holds: without its reader, the verb ends, and says nothing."""
    stream = STREAM[:-2] + b"\xaa" * 4_000_000
    (tmp_path / "long.pt").write_bytes(stream)
    code = tmp_path / "code"
    code.write_bytes(CODE)
    words = [sys.executable, "-m", "ptkit", verb, str(tmp_path / "long.pt"), "--threads", "1"]
    words += ["--processor", "6/142/9", "--code", f"{code}@0x1000", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert usage.ru_utime + usage.ru_stime < 10


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info", "no/such/file"], "no/such/file"),
        (["branches", "EMPTY"], "empty"),
        (["branches", "TEXT"], "PSB"),
        (["instructions", "STREAM", "--symbol", "mian"], "mian"),
        (["instructions", "STREAM", "--processor", "pentium"], "pentium"),
        (["packets", "STREAM", "--stream", "7"], "7"),
        (["packets", "STREAM", "--format", "nonsense"], "nonsense"),
        (["record"], "no program"),
        (["record", "--", "no-such-program-anywhere"], "no-such-program-anywhere"),
        (["record", "--timing", "sundial", "--", "true"], "sundial"),
    ],
)
def test_errors_are_one_line_and_status_2(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contents = {"EMPTY": b"", "TEXT": b"this is no trace\n" * 100, "STREAM": STREAM}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    paths = [str(tmp_path / word) if word in contents else word for word in arguments]
    status, _, err = run(capsys, *paths)
    assert status == 2
    errors = [line for line in err.splitlines() if ": error: " in line]
    assert len(errors) == 1
    assert words in errors[0]


def test_missing_argument_is_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["packets"])
    assert exit_info.value.code == 2
    assert "--help" in capsys.readouterr().err


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ptkit", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


@pytest.mark.parametrize("words", [["--backend", "ptrace"], ["--backend=ptrace"]])
def test_an_error_names_the_option_that_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    status, _, err = run(capsys, "record", "-o", str(tmp_path / "new.ptk"), *words, "--", "true")
    assert status == 2
    assert err.startswith("ptkit record: error: --backend: expected one of auto, ")


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM * 20000)
    process = _start("packets", "--no-header", "--processor", "6/142/9", str(path))
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def test_ctrl_c_ends_with_130(tmp_path: Path) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM * 400000)
    process = _start("packets", "--processor", "6/142/9", str(path))
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    assert out.count("\n") < 400000  # a small part of the packets: it had to wait while nothing was read


def _bundle_trace(bundle: Any) -> Any:
    return ptkit.Trace(bundle, ptkit.decode.Settings())


def _two_spaces() -> Any:
    """One processor, two processes with different code at one address, and a switch between them."""
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    bundle.add_code(0x1000, bytes.fromhex("9090" + "0f05"), space=1)
    bundle.add_code(0x1000, bytes.fromhex("31c0" + "0f05"), space=2)

    def passage(tsc: int) -> bytes:
        psb = bytes.fromhex("0282" * 8) + b"\x19" + tsc.to_bytes(7, "little") + bytes.fromhex("99010223")
        return psb + bytes.fromhex("7100100000000000"[:14] + "01")

    switches = [(0, 10, 10, 1), (1500, 20, 20, 2), (2500, 10, 10, 1)]
    bundle.add_stream(passage(1000) + passage(2000) + passage(3000), cpu=0, switches=switches)
    trace = _bundle_trace(bundle)
    trace.open_parts.names._spaces = 3  # a bundle made in Python cannot list spaces
    return trace


def test_code_is_that_of_the_rows_space() -> None:
    trace = _two_spaces()
    writer = LineWriter(trace)
    writer.begin(trace.instructions(columns=["ip", "size", "mode", "flags", "tsc", "offset", "space"]))
    writer.instruction("text")
    first, second = ["nop", "nop", "syscall"], ["xor eax, eax", "syscall"]
    assert [line.decode().split("  ")[1] for line in writer.lines()] == first + second + first


def test_code_that_changes_is_printed_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not any(one.name == "step" and one.available for one in capture.probe()):
        pytest.skip("no single stepping here")
    program = build("jit", tmp_path, "-static")
    recording = tmp_path / "jit.ptk"
    assert main(["record", "-q", "--backend", "step", "-o", str(recording), "--", str(program)]) == 0
    capsys.readouterr()
    _, out, _ = run(
        capsys, "instructions", "--no-events", "--ip", "0x700000000000-0x7fffffffffff", str(recording)
    )
    values = [int(line.split(",")[1], 16) for line in out.splitlines() if "mov eax, 0x" in line]
    assert [value for value in values if value in (0, 1, 2, 3, 4, 5, 100, 1000, 2000)] == [
        0, 1, 2, 3, 4, 5, 5, 100, 1000, 2000,
    ]  # fmt: skip


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """Junk, a passage, a packet that is none, a passage: a gap at the start, an error and a gap inside."""
    path = tmp_path / "damaged.pt"
    path.write_bytes(b"\x55" * 40 + STREAM + b"\x02\xff" + STREAM)
    return str(path)


def test_packets_show_what_was_lost(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "packets", "--processor", "6/142/9", damaged)
    lines = out.splitlines()
    assert status == 0
    assert lines[0].startswith("[gap: before the first PSB")
    assert lines[1].split() == ["0000000000000028", "psb"]
    error = next(i for i, line in enumerate(lines) if line.startswith("[error: "))
    assert 1 < error < len(lines) - 3
    assert "1 error and 2 gaps" in err


def test_packets_as_json_show_what_was_lost(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, "packets", "--json", "--processor", "6/142/9", damaged)
    rows = [json.loads(line) for line in out.splitlines()]
    tables = [row["table"] for row in rows]
    assert [name for name in tables if name != "packets"] == ["header", "gaps", "errors", "gaps"]
    assert [row["kind"] for row in rows if row["table"] == "packets"].count("PSB") == 2
    assert rows[1]["message"].startswith("before the first PSB")
    assert next(row for row in rows if row["table"] == "errors")["code"] in ("BAD_OPCODE", "BAD_PACKET")
    assert "1 error and " in err


@pytest.mark.parametrize("verb", ["branches", "instructions"])
def test_flow_as_json_shows_what_was_lost(
    verb: str, stream: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, verb, "--json", stream[0], "--processor", "6/142/9")
    rows = [json.loads(line) for line in out.splitlines()]
    assert "errors" in [row.get("table") for row in rows]
    assert any("no code at this address" in row.get("message", "") for row in rows)
    _, out, _ = run(capsys, verb, "--json", *stream)
    assert all({"stream", "tid", "space"} <= json.loads(line).keys() for line in out.splitlines()[1:])


def test_branches_show_errors_between_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM)
    _, out, _ = run(capsys, "branches", "--processor", "6/142/9", str(path))
    assert "[error: no code at this address" in out


def test_limit_keeps_the_errors_before_the_cut(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, short, err = run(capsys, "packets", "--limit", "2", "--processor", "6/142/9", damaged)
    assert [line[0] for line in short.splitlines()] == ["[", "0", "0"]
    assert "0 errors and 1 gap" in err
    _, long, err = run(capsys, "packets", "--limit", "7", "--processor", "6/142/9", damaged)
    assert "[error: " in long
    assert "1 error and 2 gaps" in err


def test_limit_is_for_all_streams(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    bundle.add_code(0x1000, CODE)
    for _ in range(3):
        bundle.add_stream(STREAM)
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: _bundle_trace(bundle))
    for verb, rows in (("packets", 7), ("branches", 4), ("instructions", 6)):
        _, out, _ = run(capsys, verb, "--json", "--limit", str(rows), "ignored")
        printed = [json.loads(line) for line in out.splitlines()]
        printed = [row for row in printed if row["table"] == verb]
        assert len(printed) == rows, verb
        assert {row["stream"] for row in printed} == {0, 1}, verb


@pytest.mark.parametrize("verb", ["packets", "branches", "instructions"])
def test_no_rows_print_nothing(verb: str, stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, verb, "--time", "1-2", *stream)
    assert (status, out) == (2, "")
    assert "the trace has no times" in err
    assert run(capsys, verb, "--limit", "0", *stream)[:2] == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["branches", "X", "--tid", "9" * 20], "must be 2147483647 or less"),
        (["record", "--max-instructions", "9" * 23, "--", "true"], ": must be "),
        (["packets", "X", "--limit", "-1"], "-1: must be 0 or more"),
        (["packets", "X", "--stream", "-1"], "-1: must be 0 or more"),
        (["packets", "X", "--stream", "two"], "'two' is not a number"),
        (["branches", "X", "--ip", "5-1"], "FROM must be below TO"),
        (["branches", "X", "--ip", "main"], "names of functions go to --symbol"),
        (["info", "X", "--code", "code.bin"], "PATH@ADDRESS"),
        (["info", "X", "--code", "code.bin@here"], "'here' is not an address"),
        (["info", "X", "--tsc-ctc-ratio", "1/0"], "0: must be 1 or more"),
        (["info", "X", "--tsc-ctc-ratio", "168"], "write EBX/EAX"),
        (["verify", "X", "--engine", "libipt"], "--engine"),
    ],
)
def test_misuse_is_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    err = capsys.readouterr().err
    assert exit_info.value.code == 2
    assert len(err.splitlines()) == 1
    assert words in err
    assert "_number" not in err


@pytest.mark.parametrize("path", ["/nonexistent", "/"])
def test_code_that_cannot_be_read_is_one_line(
    path: str, stream: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, "info", stream[0], "--code", f"{path}@1")
    assert status == 2
    assert f"--code {path}: " in err
    assert "give a file" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "out of memory"),
        (
            ptkit.OutOfMemoryError(
                "branches: 7 rows take 9 GiB, and 1 GiB are free (cgroup)", "columns=[...]"
            ),
            "error: branches: 7 rows take 9 GiB, and 1 GiB are free (cgroup); choose fewer rows (--limit, ",
        ),
        (RuntimeError("odd\nthing"), "RuntimeError: odd thing; PTKIT_DEBUG=1 shows where"),
        (TypeError("kind"), "TypeError"),
        (OverflowError("large"), "OverflowError"),
    ],
)
def test_surprises_are_one_line(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(ptkit, "open", fail)
    monkeypatch.delenv("PTKIT_DEBUG", raising=False)
    status, _, err = run(capsys, "info", "X")
    assert status == 2
    assert len(err.splitlines()) == 1
    assert words in err
    monkeypatch.setenv("PTKIT_DEBUG", "1")
    with pytest.raises(type(error)):
        main(["info", "X"])


def test_tsc_hz_gives_nanoseconds(stream: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "info", "--json", "--tsc-hz", "2_000_000_000", *stream)
    assert json.loads(out)["tsc_hz"] == 2_000_000_000


def test_record_says_where_an_earlier_recording_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "echo.ptk"
    words = ["record", "-o", str(path), "--", "true"]
    assert "earlier" not in run(capsys, *words)[2]
    status, _, errors = run(capsys, *words)
    assert status == 0
    assert errors.endswith(f"; the earlier recording is {path}.old now\n")
    said = json.loads(run(capsys, "record", "--json", *words[1:])[2])
    assert said["earlier"] == f"{path}.old"
    assert ptkit.open(said["earlier"]).info.streams


def test_record_leaves_standard_output_to_the_program(tmp_path: Path) -> None:
    if not any(one.name == "step" and one.available for one in capture.probe()):
        pytest.skip("no single stepping here")
    process = _start("record", "--json", "-o", str(tmp_path / "echo.ptk"), "--", "echo", "hi")
    out, err = process.communicate(timeout=120)
    assert out == "hi\n"
    report = json.loads(err)
    assert report["exit_status"] == 0
    assert report["instructions"] > 0


@pytest.mark.skipif(ptkit._core.reference_version() is None, reason="this build has no libipt")
def test_verify_of_one_stream(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    bundle.add_stream(STREAM)
    bundle.add_stream(STREAM * 3)
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: _bundle_trace(bundle))
    matched = [
        json.loads(run(capsys, "verify", "--json", *words, "ignored")[1])["matched"]["packets"]
        for words in ([], ["--stream", "0"], ["--stream", "1"])
    ]
    assert matched == [20, 5, 15]
    status, _, err = run(capsys, "verify", "--stream", "2", "ignored")
    assert status == 2
    assert "streams 0 to 1" in err


def test_a_report_with_a_difference_does_not_claim_equality() -> None:
    difference = verify.Difference(
        "packets", 0, 16, 3, {"kind": 1}, {"kind": 2}, None, None, (), (), ()
    )  # fmt: skip
    lines = str(verify.Report("2.0.5", {"packets": 3}, {}, {}, 0, 0, difference)).splitlines()
    assert lines[0] == "equal to libipt 2.0.5 up to the first difference: 3 packets"
    assert lines[1].startswith("first difference: packets")
    assert (
        str(verify.Report("2.0.5", {"packets": 3}, {}, {}, 0, 0, None)) == "equal to libipt 2.0.5: 3 packets"
    )
