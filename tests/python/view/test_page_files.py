"""Files of pages: private ones, those that are replaced, interrupts, and what starts no browser."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import webbrowser
from pathlib import Path
from typing import Any

import pytest
from small_elf import elf
from view_pages import PageData

import ptkit
from ptkit.cli import main
from ptkit.view.opening import no_browser

SCRIPT = """
import sys, ptkit
from ptkit.cli import main
print("ready", flush=True)
words = ["view", "loop.pt", "--image", "program", "--processor", "6/142/9", "--no-open", *sys.argv[1:]]
sys.exit(main(words))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, loop: Any) -> Path:
    """A folder with a recording."""
    found = tmp_path_factory.mktemp("view")
    (found / "program").write_bytes(elf(loop.CODE, loop.BASE, "again"))
    (found / "loop.pt").write_bytes(loop.stream(20_000))
    return found


@pytest.fixture
def words(folder: Path) -> list[str]:
    """The verb with a recording."""
    return ["view", str(folder / "loop.pt"), "--image", str(folder / "program"), "--processor", "6/142/9"]


@pytest.fixture(autouse=True)
def display(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A display, and a browser that notes what it is given."""
    for name in ("CI", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url))
    return opened


def started(folder: Path, *words: str, limit: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", limit + SCRIPT, *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(ptkit.__file__).parents[1])}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment
    )


def test_a_page_without_output_is_private_and_is_opened(
    words: list[str], display: list[str], capsys: pytest.CaptureFixture[str], temporary_folder: Path
) -> None:
    assert main(words) == 0
    path = Path(capsys.readouterr().out.split(": ")[0])
    try:
        assert path.parent.parent == temporary_folder
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert display == [path.as_uri()]
        assert PageData(path).runs[0]["title"] == "loop.pt"
        assert path.name == "loop.pt.html"
    finally:
        shutil.rmtree(path.parent)


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"CI": "true"}, "this is CI"),
        ({"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, "this is a session of SSH"),
        ({"DISPLAY": ""}, "there is no display"),
    ],
)
def test_no_browser_is_started_where_none_is_seen(
    environment: dict[str, str],
    reason: str,
    words: list[str],
    display: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = tmp_path / "page.html"
    assert main([*words, "-o", str(out)]) == 0
    assert display == []
    assert f"no browser is started, as {reason}: open {out}" in capsys.readouterr().err


def test_displays_are_those_of_the_system() -> None:
    assert no_browser({}, "linux") == "there is no display"
    assert no_browser({"WAYLAND_DISPLAY": "wayland-0"}, "linux") == ""
    assert no_browser({}, "win32") == no_browser({}, "darwin") == ""


def test_no_open_starts_no_browser_and_says_nothing(
    words: list[str], display: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "-o", str(tmp_path / "page.html"), "--no-open"]) == 0
    assert display == []
    assert "browser" not in capsys.readouterr().err


def test_other_files_are_replaced_by_force_alone(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    out.write_text("<!doctype html><title>mine</title>")
    write = [*words, "-o", str(out), "--no-open"]
    assert main(write) == 2
    assert "is no page of ptkit; --force replaces it" in capsys.readouterr().err
    assert main([*write, "--force"]) == 0
    assert main(write) == 0  # a page is replaced
    assert main([*words, "-o", str(tmp_path), "--no-open"]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_two_runs_are_in_one_page(words: list[str], folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "two.html"
    (folder / "other.pt").write_bytes((folder / "loop.pt").read_bytes())
    files = [*words[:2], str(folder / "other.pt")]
    assert main([*files, *words[2:], "-o", str(out), "--no-open"]) == 0
    page = PageData(out)
    assert [run["title"] for run in page.runs] == ["loop.pt", "other.pt"]
    first, second = page.columns(0), page.columns(1)
    assert {name: values.tolist() for name, values in first.items()} == {
        name: values.tolist() for name, values in second.items()
    }


def test_ctrl_c_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    with started(folder, "-o", str(tmp_path / "page.html")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 20
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_output", [True, False])
def test_a_full_disk_leaves_nothing(folder: Path, tmp_path: Path, has_output: bool) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))\n"
    words = ["-o", str(tmp_path / "page.html")] if has_output else []
    with started(folder, *words, limit=limit) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "cannot write" in said, said
    assert list(tmp_path.iterdir()) == []  # and temporary_folder, as conftest.py looks


def test_pages_of_python_are_saved_and_opened(
    loop: Any, folder: Path, open_trace: Any, tmp_path: Path, display: list[str]
) -> None:
    trace = open_trace(loop.stream(10), images=[str(folder / "program")])
    page = trace.view()
    assert page.save(tmp_path / "page.html") == page.bytes == (tmp_path / "page.html").stat().st_size
    assert PageData(tmp_path / "page.html").head == PageData(page).head
    path = Path(page.open())
    try:
        assert path.read_bytes() == (tmp_path / "page.html").read_bytes()
        assert display == [path.as_uri()]
    finally:
        shutil.rmtree(path.parent)
    with pytest.raises(ptkit.OpenError, match="cannot"):
        page.save(tmp_path / "none" / "page.html")
