"""`ptkit threads`."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from compiling import build
from test_json import ROWS, assert_fits

import ptkit
from ptkit.cli import main

RECORDINGS = Path(__file__).resolve().parents[2] / "golden" / "recordings"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("threads")
    ptkit.record([str(build("threads", folder, "-static"))], output=folder / "threads.ptk")
    return str(folder / "threads.ptk")


def test_threads_are_lines(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    threads = ptkit.open(recording).threads()
    assert main(["threads", recording]) == 0
    captured = capsys.readouterr()
    lines = [line.split() for line in captured.out.splitlines()]
    assert [int(line[0]) for line in lines] == threads["tid"].tolist()
    assert [int(line[1].replace(",", "")) for line in lines] == threads["instructions"].tolist()
    assert {line[-1] for line in lines} == {"threads"}
    assert captured.err.splitlines()[0].split() == ["tid", "instructions", "running", "untraced", "name"]
    assert "no times of context switches are recorded" in captured.err
    assert "compare instructions, not durations" in captured.err
    assert main(["threads", recording, "--limit", "1"]) == 0
    assert "3 more threads: --limit N prints N, --all all" in capsys.readouterr().err


def test_sites_of_waits_stand_below(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    tid = str(ptkit.open(recording).threads()["tid"][0])
    for options, most in ([], 5), (["--all"], 10**6):
        assert main(["threads", recording, "--tid", tid, "--waits", *options]) == 0
        _, *sites = capsys.readouterr().out.splitlines()
        expected = ptkit.open(recording).waits(tid=int(tid))[:most]
        counts = [int(site.split(" x  ")[0].split()[-1].replace(",", "")) for site in sites]
        assert counts == expected["count"].tolist()
        assert len(sites) > 1


def test_waits_are_those_of_the_threads_that_are_printed(
    recording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["threads", recording, "--limit", "1", "--waits", "--json"]) == 0
    _, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    tid = int(ptkit.open(recording).threads()["tid"][0])
    assert {row["tid"] for row in rows} == {tid}
    assert len(rows) == len(ptkit.open(recording).waits(tid=tid))


@pytest.mark.parametrize("table", ["threads", "waits"])
def test_json_fits_the_schema(table: str, recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["threads", recording, "--json", *(["--waits"] if table == "waits" else [])]) == 0
    header, *rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert header["rows"] == table
    found: Any = getattr(ptkit.open(recording), table)()
    assert len(rows) == len(found)
    for row in rows:
        assert_fits(ROWS, table, row)


def test_counts_of_switches_are_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "timed.perf.data"
    path.write_bytes(lzma.decompress((RECORDINGS / f"{path.name}.xz").read_bytes()))
    assert main(["threads", str(path), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]
    for row in rows:
        assert_fits(ROWS, "threads", row)
    counts = [row[name] for row in rows for name in ("waits", "preemptions")]
    assert any(isinstance(count, int) for count in counts)


def test_a_stream_without_times_has_blanks(
    tmp_path: Path, packets: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stream, code = tmp_path / "one.pt", tmp_path / "code"
    stream.write_bytes(packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(0x1000) + packets.TIP_PGD)
    code.write_bytes(bytes.fromhex("900f05"))  # nop; syscall
    options = ["--code", f"{code}@0x1000", "--processor", "6/142/9"]
    assert main(["threads", str(stream), *options, "--waits"]) == 0
    captured = capsys.readouterr()
    thread, wait = captured.out.splitlines()
    assert thread.split()[:3] == ["-", "2", "-"]
    assert wait.split()[:3] == ["-", "1", "x"]
    assert "the trace has no times" in captured.err
