"""`ptkit edges` and `ptkit events`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_pe import pe

import ptkit
from ptkit.cli import main

CPU = ["--processor", "6/142/9"]


@pytest.fixture
def recording(tmp_path: Path, loop: Any) -> list[str]:
    """Words that open ten rounds of the loop program."""
    stream, image = tmp_path / "raw.pt", tmp_path / "driver.sys"
    stream.write_bytes(loop.stream(10))
    image.write_bytes(pe(loop.CODE, 0))
    return [str(stream), "--image", str(image), *CPU]


@pytest.fixture
def written(tmp_path: Path, loop: Any, packets: Any) -> list[str]:
    """Words that open a stream with a PTWRITE among the events."""
    stream = tmp_path / "ptw.pt"
    ptw = bytes.fromhex("0212") + (0x1234).to_bytes(8, "little")[:4]
    stream.write_bytes(loop.header(None, 1000) + packets.pge(loop.BASE) + ptw + packets.tnt("10"))
    code = tmp_path / "code.bin"
    code.write_bytes(loop.CODE)
    return [str(stream), "--code", f"{code}@{loop.BASE:#x}", *CPU]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main([*words]) == 0
    return capsys.readouterr().out.splitlines()


def test_edges_are_the_most_frequent_first(
    recording: list[str], loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, "edges", *recording)
    assert lines[0].split()[:4] == ["50", f"{loop.JNZ:016x}", "->", f"{loop.BASE:016x}"]
    assert "cond" in lines[0]
    assert lines[0].endswith("[driver.sys]+0x1002 -> [driver.sys]+0x1000")
    counts = [int(line.split()[0]) for line in lines]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == 70
    assert printed(capsys, "edges", *recording, "--limit", "1") == lines[:1]
    (bare,) = printed(capsys, "edges", *recording, "--limit", "1", "--no-symbols")
    assert "driver" not in bare
    (offsets,) = printed(capsys, "edges", *recording, "--limit", "1", "--file-offsets")
    assert offsets.endswith("[driver.sys]+0x202 -> [driver.sys]+0x200")
    assert len(printed(capsys, "edges", *recording, "--kind", "jump_indirect")) == 1


def test_edges_are_added_up_by_name(recording: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for by, name in (("module", "driver.sys"), ("function", "[driver.sys]")):
        (line,) = printed(capsys, "edges", *recording, "--by", by)
        assert line.split() == ["70", name, "->", name]
        header, row = map(json.loads, printed(capsys, "edges", *recording, "--by", by, "--json"))
        assert header["rows"] == "edge_sums"
        full = {"from_full": name, "to_full": name} if by == "function" else {}
        assert row == {"table": "edge_sums", "from": name, "to": name, "count": 70} | full


def test_sums_tell_names_apart(
    spaces: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ptkit, "open", lambda *_, **__: spaces)
    lines = printed(capsys, "edges", "ignored", "--by", "function")
    assert [line.split() for line in lines] == [
        [str(70 * 3), "shared_fn", "->", "shared_fn"],
        [str(70 * 2), "beta_fn", "->", "beta_fn"],
        ["70", "alpha_fn", "->", "alpha_fn"],
    ]


def test_edges_as_json_are_rows_of_the_table(
    recording: list[str], loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    header, row = map(json.loads, printed(capsys, "edges", *recording, "--limit", "1", "--json"))
    assert header["rows"] == "edges"
    assert row["from_ip"] == hex(loop.JNZ)
    assert (row["kind"], row["count"], row["from_module"]) == ("COND", 50, "driver.sys")


def test_events_of_a_kind(written: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = printed(capsys, "events", *written, "--kind", "ptwrite")
    time, _, text = line.strip().partition("  ")
    assert time == "1000"
    assert text.startswith("ptwrite: 1234")
    _, row = map(json.loads, printed(capsys, "events", *written, "--kind", "PTWRITE", "--json"))
    assert (row["table"], row["kind"], row["payload"]) == ("events", "PTWRITE", "0x1234")
    assert row["message"].startswith("ptwrite: 1234")
    with pytest.raises(SystemExit, match="2"):
        main(["events", *written, "--kind", "PTWRIT"])
    assert "PTWRIT" in capsys.readouterr().err


def test_events_repeat_the_state_only_if_asked_to(
    recording: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    usual = printed(capsys, "events", *recording)
    every = printed(capsys, "events", *recording, "--status")
    assert len(every) > len(usual) > 0
    assert set(usual) <= set(every)
    assert printed(capsys, "events", *recording, "--limit", "1") == usual[:1]


def test_errors_stand_among_events(written: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    stream = Path(written[0])
    stream.write_bytes(stream.read_bytes() + b"\xff\xff\xff" + bytes.fromhex("0282" * 8))
    lines = printed(capsys, "events", *written)
    assert any(line.startswith("[error: ") for line in lines)
    assert not any(line.startswith("[") for line in printed(capsys, "events", *written, "--kind", "PTWRITE"))
