"""`ptkit calls --around`, and `ptkit events --functions`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from test_json import ROWS, assert_fits

import ptkit
from ptkit.cli import calls_around_time, main


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("around")
    ptkit.record([str(build("threads", folder)), "60"], output=folder / "threads.ptk")
    return str(folder / "threads.ptk")


@pytest.fixture(scope="module")
def moment(recording: str) -> int:
    """A time at which two threads are in work() for certain, or as many as there are."""
    calls = ptkit.open(recording).calls(symbol="work")
    begin = (calls["tsc"] + calls["tsc_error"]).tolist()
    end = calls["end_tsc"].tolist()
    both = [(max(begin[i], begin[j]), min(end[i], end[j])) for i in range(len(calls)) for j in range(i)]
    low, high = max([*both, *zip(begin, end, strict=True)], key=lambda one: one[1] - one[0])
    return (low + high) // 2


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    assert main([*words]) == 0
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err


def test_threads_stand_side_by_side(recording: str, moment: int, capsys: pytest.CaptureFixture[str]) -> None:
    trace = ptkit.open(recording)
    words = ["--around", str(moment), "--window", "1000000000", "--limit", "60"]
    lines, _ = printed(capsys, "calls", recording, *words)
    columns = lines[0].split("|")
    found = trace.at_times([moment], clock="tsc")
    titles = [title.strip() for title in columns[1:]]
    streams = [next(i for i, one in enumerate(trace.streams) if one.name == title) for title in titles]
    assert streams == sorted(set(streams), key=lambda one: trace.streams[one].tid)
    assert len({len(line.split("|")) for line in lines if line.count("|") == len(columns) - 1}) == 1
    opened = [line for line in lines[1:] if not line[:14].strip() or line[:14].strip() == "open"]
    frames = trace.calls()
    names = dict(zip(frames["id"].tolist(), frames["entry_symbol"].tolist(), strict=True))
    parents = dict(zip(frames["id"].tolist(), frames.named("parent"), strict=True))
    for column, stream in enumerate(streams, start=1):
        chain, number = [], found.named("frame")[stream]
        while number is not None:
            chain.insert(0, names[number])
            number = parents[number]
        shown = [cells[column].strip() for line in opened if len(cells := line.split("|")) > column]
        shown = [name.removesuffix(" ?").removesuffix("()") for name in shown if name]
        assert [name for name in shown if not name.startswith("[")] == [
            name for name in chain if name is not None
        ][: len(shown)]
    around = [line for line in lines[1:] if line not in opened]
    assert around
    signs = [line[:14].strip().lstrip("~")[0] for line in around]
    assert signs == sorted(signs, key="-+".index)  # in the order of time
    assert all(line.split("|", 1)[1].strip(" |")[0] in "<>" for line in around)


def test_lines_are_begins_and_ends_within_the_window(
    recording: str, moment: int, capsys: pytest.CaptureFixture[str]
) -> None:
    window = 20_000
    words = ["calls", recording, "--around", str(moment), "--window", str(window), "--all"]
    lines, _ = printed(capsys, *words)
    frames: Any = ptkit.open(recording).calls()
    for mark, name, known in (">", "tsc", "time_known"), ("<", "end_tsc", "end_time_known"):
        times = frames[name][frames[known]].astype("i8")
        inside = abs(times - moment) <= window
        shown = sum(cell.strip().startswith(mark) for line in lines for cell in line.split("|")[1:])
        assert shown == inside.sum(), name


def test_lines_are_bounded(recording: str, moment: int, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["calls", recording, "--around", str(moment), "--window", "1000000000"]
    few, errors = printed(capsys, *words, "--limit", "5")
    assert sum("<" in line or ">" in line for line in few) == 5
    assert "--limit N prints N lines" in errors
    every, errors = printed(capsys, *words, "--all")
    assert len(every) > len(few)
    assert "--limit" not in errors


def test_times_have_units(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, "calls", recording, "--around", "50%", "--window", "10us")
    assert lines[0].count("|") >= 1
    trace = ptkit.open(recording)
    tid = next(stream.tid for stream in trace.streams if stream.tid is not None)
    one, _ = printed(capsys, "calls", recording, "--around", "50%", "--tid", str(tid))
    assert one[0].count("|") == 1


def test_times_of_a_log(recording: str, moment: int, capsys: pytest.CaptureFixture[str]) -> None:
    trace = ptkit.open(recording)
    sample = trace.info.recording
    ns = trace.open_parts.times.ns(moment) - trace.open_parts.times.ns(sample["clocks_tsc"])
    for clock in ("monotonic", "realtime"):
        time = ns + sample[f"clocks_{clock}_ns"]
        texts = [str(time), f"{time // 10**9}.{time % 10**9:09}s"]
        rows = []
        for text in texts:
            words = ["calls", recording, "--around", text, "--clock", clock, "--json", "--limit", "1"]
            rows.append([json.loads(line) for line in printed(capsys, *words)[0]])
        assert rows[0] == rows[1]
        found = {int(row["tsc"], 0) for row in rows[0] if row["table"] == "at_times"}
        (ticks,) = found
        assert trace.open_parts.times.ns(ticks) == trace.open_parts.times.ns(moment)
    assert main(["calls", recording, "--around", "5%", "--clock", "realtime"]) == 2
    assert "5% is no time of a clock" in capsys.readouterr().err


def test_columns_share_a_terminal() -> None:
    assert calls_around_time._within([10, 90, 20], 60) == [10, 30, 20]
    assert calls_around_time._within([40, 90, 50], 60) == [20, 20, 20]
    assert calls_around_time._within([10, 20], 60) == [10, 20]
    assert calls_around_time._within([], 60) == []


def test_names_of_threads_that_share_a_terminal(
    recording: str, moment: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["calls", recording, "--around", str(moment), "--window", "1000000000", "--limit", "60"]
    monkeypatch.setattr(calls_around_time, "line_width", lambda options: 80)
    lines, _ = printed(capsys, *words)
    assert max(map(len, lines)) <= 80
    assert lines[0].count("|") == 2
    shown = [cell.strip(" ><?") for line in lines[1:] for cell in line.split("|")[1:]]
    assert len([name for name in shown if name]) > 20
    assert all(len(name) >= 16 for name in shown if "..." in name)


def test_json_has_the_stack_and_the_calls(
    recording: str, moment: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["calls", recording, "--around", str(moment), "--window", "20000", "--json"]
    rows = [json.loads(line) for line in printed(capsys, *words)[0]]
    for row in rows:
        assert_fits(ROWS, row["table"], row)
    stacks = [row for row in rows if row["table"] == "at_times"]
    calls = [row for row in rows if row["table"] == "calls"]
    assert {row["stream"] for row in calls} <= {row["stream"] for row in stacks}
    assert {int(row["tsc"], 0) for row in stacks} == {moment}
    assert any(row["frame"] is not None for row in stacks)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--window", "5"], "--window goes with --around"),
        (["--clock", "realtime"], "--clock goes with --around"),
        (["--around", "soon"], "'soon' is not a time"),
        (["--around", "1.5"], "is not a time"),
        (["--around", "200%"], "--around: 200% is more than 100%"),
        (["--around", "5"], "outside the trace"),
        (["--around", "50%", "--depth", "3"], "not allowed with"),
    ],
)
def test_wrong_options_say_what_is_wrong(
    recording: str, words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(["calls", recording, *words])
    except SystemExit as exit:
        status = exit.code  # type: ignore[assignment]
    assert status == 2
    assert text in capsys.readouterr().err


@pytest.fixture
def written(tmp_path: Path, loop: Any, packets: Any) -> list[str]:
    """Words that open a stream with two PTWRITEs: f: ptwrite eax; call g; ret. g: ptwrite rcx; ret."""
    f, g = 0x1000, 0x1010
    code = bytes.fromhex("f30faee0e807000000c3").ljust(0x10, b"\x90") + bytes.fromhex("f3480faee1c3")
    stream = loop.header(None, 1000) + packets.pge(f)
    stream += b"\x02\x92" + (7).to_bytes(4, "little") + packets.fup(f)
    stream += b"\x02\xb2" + (2**40).to_bytes(8, "little") + packets.fup(g) + packets.tip(f + 9)
    (tmp_path / "ptw.pt").write_bytes(stream)
    (tmp_path / "code.bin").write_bytes(code)
    return [str(tmp_path / "ptw.pt"), "--code", f"{tmp_path / 'code.bin'}@{f:#x}", "--processor", "6/142/9"]


def test_values_are_printed_with_their_functions(
    written: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["events", *written, "--kind", "ptwrite", "--functions"]
    lines, _ = printed(capsys, *words)
    assert [line.split(maxsplit=1)[1].split("  ")[0] for line in lines] == [
        "ptwrite: 7",
        "ptwrite: 10000000000",
    ]
    assert "in 0x1010" in lines[1]
    rows = [json.loads(line) for line in printed(capsys, *words, "--json")[0]]
    for row in rows:
        assert_fits(ROWS, row["table"], row)
    assert [row["value"] for row in rows[1:]] == ["0x7", "0x10000000000"]
    assert [row["entry_ip"] for row in rows[1:]][1] == "0x1010"
    assert main(["events", *written, "--functions"]) == 2
    assert "--functions goes with --kind PTWRITE" in capsys.readouterr().err
