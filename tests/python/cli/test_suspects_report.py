"""``ptkit diff --pass --fail``: what is printed, JSON, exit status, refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from compiling import PROGRAMS, compiled
from test_json import DOCUMENTS, assert_fits

import ptkit
from ptkit.cli import main

SOURCE = PROGRAMS / "branches" / "flaky.c"
[SEED] = [number for number, one in enumerate(SOURCE.read_text().splitlines(), 1) if "SEED:" in one]
EACH = 3  # recordings that fail, and that pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of a program that a hash seed decides."""
    folder = tmp_path_factory.mktemp("flaky")
    program = compiled(folder / "flaky", "-O1", "-g", "-static", "-pthread", "-Wl,--build-id", SOURCE)
    counts = {"ok": 0, "bad": 0}
    while min(counts.values()) < EACH:
        recorder = ptkit.Recorder(
            [str(program), "seed"], folder / "run.ptk", backend="emulator", quiet=True, force=True
        )
        recorder.run()
        name = "bad" if recorder.recording.exit_status else "ok"
        counts[name] += 1
        (folder / "run.ptk").rename(folder / f"{name}-{min(counts[name], EACH)}.ptk")
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def printed(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[list[str], str]:
    assert main(["diff", *words]) == status
    captured = capsys.readouterr()
    return captured.out.splitlines(), captured.err


GROUPS = ("--pass", "ok-*.ptk", "--fail", "bad-*.ptk")


def test_best_fact_is_the_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines, errors = printed(capsys, *GROUPS, "--limit", "2")
    assert lines[0].startswith(f"{EACH} failing, {EACH} passing: with {2 * EACH} recordings and ")
    assert lines[0].endswith(" facts, chance does this well in 1 of 10 labelings")
    assert lines[1].split() == ["score", "failing", "passing", "p", "fact"]
    score, failing, passing, _, aspect, rest = lines[2].split(maxsplit=5)
    assert (score, failing, passing, aspect) == ("+1.00", str(EACH), "0", "branch")
    assert f"({SOURCE.name}:{SEED}): taken, to {SOURCE.name}:" in rest
    assert len(lines) == 4
    assert not errors.replace("ptkit diff: note: score below 0: the passing ones have it\n", "")


def test_names_and_patterns_are_the_same_recordings(capsys: pytest.CaptureFixture[str]) -> None:
    named = [f"{name}-{number}.ptk" for name in ("ok", "bad") for number in range(1, EACH + 1)]
    lines, _ = printed(capsys, "--pass", *named[:EACH], "--fail", *named[EACH:])
    assert lines == printed(capsys, *GROUPS)[0]
    assert lines == printed(capsys, *GROUPS, "--module", "flaky")[0] or len(lines) > 2


def test_json_fits_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, *GROUPS, "--json", "--limit", "3")
    document = json.loads("\n".join(lines))
    assert_fits(DOCUMENTS, "suspects", document)
    assert document["document"] == "suspects"
    assert document["chance"] == {"hits": 2, "labelings": 20, "is_exact": True}
    assert len(document["suspects"]) == 3
    first = document["suspects"][0]
    assert (first["line"], first["score"], first["is_own"]) == (SEED, 1, True)
    assert document["failing"] == [f"bad-{number}.ptk" for number in range(1, EACH + 1)]


def test_exit_code_says_that_a_fact_separates(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    printed(capsys, *GROUPS, "--exit-code", status=1)
    os.link("ok-1.ptk", tmp_path / "same.ptk")
    lines, _ = printed(capsys, "--pass", "ok-1.ptk", "--fail", str(tmp_path / "same.ptk"), "--exit-code")
    assert len(lines) == 1
    assert "no fact of " in lines[0]


def test_unreadable_recording_is_named(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "ok-\x1b[31m.ptk").write_bytes(b"no trace")
    try:
        lines, errors = printed(capsys, *GROUPS)
    finally:
        (folder / "ok-\x1b[31m.ptk").unlink()
    assert errors.startswith("ptkit diff: warning: ok-\\x1b[31m.ptk is left out: ")
    assert lines[0].startswith(f"{EACH} failing, {EACH} passing: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pass", "ok-1.ptk"), "--pass needs --fail"),
        (("--fail", "ok-1.ptk"), "--fail needs --pass"),
        (("ok-1.ptk", *GROUPS), "ok-1.ptk does not go with --pass and --fail"),
        ((*GROUPS, "--context", "3"), "--context does not go with --pass and --fail"),
        ((*GROUPS, "--number", "1"), "--number does not go with --pass and --fail"),
        ((*GROUPS, "--by", "line"), "--by does not go with --pass and --fail"),
        ((*GROUPS, "--frames", "python"), "--frames does not go with --pass and --fail"),
        (("ok-1.ptk",), "give two recordings, FILE and FILE2; or many of them with --pass and --fail"),
        (("--pass", "none-*.ptk", "--fail", "bad-*.ptk"), "none-*.ptk: no file has such a name"),
        (("--pass", "ok-*.ptk", "--fail", "ok-1.ptk"), "ok-1.ptk: the recording is given twice"),
    ],
)
def test_mixtures_are_refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    lines, errors = printed(capsys, *words, status=2)
    assert not lines
    assert errors.startswith("ptkit diff: error: ")
    assert said in errors
    assert errors.count("\n") == 1
