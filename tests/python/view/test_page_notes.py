"""Pages of little: empty recordings, those without code, times or names, and of errors alone."""

from __future__ import annotations

from typing import Any

import pytest
from view_pages import PageData

import ptkit


def notes_of(page: Any) -> list[str]:
    found = PageData(page)
    assert found.columns() == {} or found.columns()["id"].size
    assert found.runs[0]["facts"][0][0] == "source"
    return [*found.runs[0]["notes"], *found.head["notes"]]


def test_an_empty_recording_says_so(open_trace: Any, packets: Any) -> None:
    trace = open_trace(bytes.fromhex("0282" * 8 + "9901 0223"))
    page = trace.view()
    notes = notes_of(page)
    assert any(note.startswith("no calls: ") for note in notes)
    assert any(note.startswith("no code: ") for note in notes)
    assert any(note.startswith("no times: ") for note in notes)
    run = PageData(page).runs[0]
    assert run["range"] == [0, 0]
    assert run["tracks"] == []
    assert run["functions"]["name"] == []
    assert run["by"] == "instructions"
    assert page._repr_html_()


def test_a_recording_of_errors_alone_says_so(open_trace: Any) -> None:
    trace = open_trace(bytes.fromhex("0282" * 8 + "9901 0223" + "711093388506f80000"))
    notes = notes_of(trace.view())
    assert any("1 error" in note for note in notes)
    assert any(note.startswith("no code: ") for note in notes)


def test_a_recording_without_names_says_so(loop_trace: Any) -> None:
    page = loop_trace.view()
    assert any(note.startswith("no names: ") for note in notes_of(page))
    assert PageData(page).runs[0]["functions"]["calls"]


def test_an_axis_of_time_needs_times(loop_trace: Any) -> None:
    with pytest.raises(ptkit.ConfigError, match="of='time'"):
        loop_trace.view(of="time")
    for wrong in (
        {"of": "branches"},
        {"names": "long"},
        {"frames": "some"},
        {"columns": ["id"]},
        {"kind": "CALL"},
    ):
        with pytest.raises(ptkit.ConfigError):
            loop_trace.view(**wrong)
    with pytest.raises(ptkit.ConfigError, match="other: give a Trace"):
        loop_trace.view("other.ptk")


def test_parts_show_what_they_select(loop_trace: Any) -> None:
    ip = int(loop_trace.blocks(columns=["ip"])["ip"][0])
    part = loop_trace.touching((ip, ip + 1))
    run = PageData(part.view()).runs[0]
    assert run["functions"]["calls"] == part.functions()["count"].tolist()
    assert run["reproduce"]["options"] == ["--ip", f"{ip:#x}-{ip + 1:#x}"]
    assert run["reproduce"]["query"] == f"ip=({ip}, {ip + 1})"
    two = PageData(loop_trace.view(part))
    assert [one["title"] for one in two.runs] == [loop_trace.info.source.rsplit("/", 1)[-1]] * 2
