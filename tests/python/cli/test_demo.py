"""`ptkit demo` records, prints, and leaves two files in one folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rounds import needs_emulator

import ptkit
from ptkit.capture import probe
from ptkit.cli.main import main

needs_steps = pytest.mark.skipif(
    not any(one.name == "step" and one.available for one in probe()), reason="no single stepping here"
)


def demo(folder: Path, *options: str) -> str:
    """What it prints in a process of its own, where no browser is started."""
    paths = [str(Path(ptkit.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    more = {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(folder), "CI": "true", "LC_ALL": "C"}
    command = [sys.executable, "-m", "ptkit", "demo", *options]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | more, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_steps
def test_single_steps_record_the_begin(tmp_path: Path) -> None:
    said = demo(tmp_path, "--backend", "step")
    assert "single steps take long: only the begin of the program is recorded" in said
    assert "(no browser is started, as this is CI)" in said
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("ptkit-demo-")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(one.name for one in folder.iterdir()) == ["demo.html", "demo.ptk"]
    found = re.search(r"([\d,]+) instructions, by the back end step", said)
    assert found is not None
    trace = ptkit.open(folder / "demo.ptk")
    assert len(trace.instructions()) == int(found[1].replace(",", ""))


@needs_steps
def test_a_document_has_what_was_found(tmp_path: Path) -> None:
    found = json.loads(demo(tmp_path, "-o", "out", "--backend", "step", "--json"))
    assert found["document"] == "demo"
    assert found["limited"]
    assert not found["opened"]
    trace = ptkit.open(tmp_path / found["recording"])
    functions = trace.functions()
    most = functions["self_instructions"].argsort()[::-1][0]
    assert found["hottest"][0]["self_instructions"] == int(functions["self_instructions"][most])
    assert found["slowest"]["instructions"] > found["slowest"]["half"]
    assert (tmp_path / found["page"]).read_bytes().startswith(b"<!DOCTYPE html>")


@needs_emulator
def test_the_whole_program_is_recorded(tmp_path: Path) -> None:
    said = demo(tmp_path, "-o", "out", "--backend", "emulator", "--no-open")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out"]
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["demo.html", "demo.ptk"]
    found = re.search(r"([\d,]+) branches", said)
    assert found is not None
    assert int(found[1].replace(",", "")) > 5_000_000
    slow = re.search(r"\$ ptkit functions \S+ --slow (.+)", said)
    assert slow is not None
    took = re.search(
        r"one of its ([\d,]+) calls took ([\d,]+) instructions; half of them take ([\d,]+)", said
    )
    assert took is not None
    count, longest, median = (int(text.replace(",", "")) for text in took.groups())
    calls = ptkit.open(tmp_path / "out" / "demo.ptk").calls(symbol=slow[1].strip("'"))
    assert longest == int(calls["instructions"].max())
    assert count <= len(calls)
    assert longest > median
    assert "It had more of:\n  " in said


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_what_is_no_folder_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptkit.cli.verbs.demo._backend", lambda name: "step")
    (tmp_path / "file").write_text("mine")
    assert main(["demo", "-o", str(tmp_path / name)]) == 2
    assert str(tmp_path / name) in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_a_machine_that_cannot_record_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = [one for one in probe() if not one.available]
    monkeypatch.setattr("ptkit.cli.verbs.demo.probe", lambda: lacking)
    assert main(["demo", "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "nothing can be recorded here" in said
    assert all(one.missing in said for one in lacking)
    assert list(tmp_path.iterdir()) == []


def test_an_error_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: object, **options: object) -> None:
        raise ptkit.OpenError("no space left")

    monkeypatch.setattr("ptkit.cli.verbs.demo.ptkit.record", fails)
    monkeypatch.setattr("ptkit.cli.verbs.demo._backend", lambda name: "step")
    assert main(["demo", "-o", str(tmp_path / "out")]) == 2
    assert list(tmp_path.iterdir()) == []
