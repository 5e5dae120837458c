"""Files that are written: what is there already, other users, folders."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit import _core
from ptkit.capture.output_file import OutputFile, folder_warnings
from ptkit.cli import main

BUNDLE = b"\x89PTK\r\n\x1a\n" + bytes(24)
PSB = b"\x02\x82" * 8
NOBODY = 65534  # a user without rights
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def prepare(path: Path, *, force: bool = False) -> OutputFile:
    file = OutputFile(os.fsencode(path), force=force)
    file.keep_earlier()
    return file


@pytest.mark.parametrize("content", [BUNDLE, b"PERFILE2" + bytes(100), PSB + b"\x02\x23"])
def test_an_earlier_recording_is_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.ptk"
    (tmp_path / "trace.ptk.old").write_bytes(b"still older")
    path.write_bytes(content)
    file = prepare(path)
    assert file.earlier == tmp_path / "trace.ptk.old"
    assert not path.exists()
    assert (tmp_path / "trace.ptk.old").read_bytes() == content


def test_a_recording_that_fails_brings_the_earlier_one_back(tmp_path: Path) -> None:
    path = tmp_path / "trace.ptk"
    path.write_bytes(BUNDLE)
    file = prepare(path)
    file.restore_earlier()
    assert file.earlier is None
    assert path.read_bytes() == BUNDLE
    assert not (tmp_path / "trace.ptk.old").exists()
    file = prepare(path)
    path.write_bytes(b"new")  # it was begun
    file.restore_earlier()
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\x7fELF" + bytes(60), "an ELF file"),
        (b"notes\n", "a text file"),
        (bytes(range(256)), "unknown form"),
    ],
)
def test_what_is_no_recording_is_not_overwritten(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "precious"
    path.write_bytes(content)
    with pytest.raises(ptkit.OpenError, match=rf"precious is .*{kind}, not a recording: .*--force"):
        prepare(path)
    assert path.read_bytes() == content
    prepare(path, force=True)
    assert path.read_bytes() == content  # the recorder replaces it
    assert not path.with_name("precious.old").exists()


def test_empty_files_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    prepare(path)
    assert path.exists()


def special_file(folder: Path, kind: str) -> Path:
    """A file to which nothing may be written."""
    path = folder / "special"
    if kind == "a symbolic link":
        (folder / "target").write_bytes(BUNDLE)
        path.symlink_to(folder / "target")
    elif kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a folder":
        path.mkdir()
    else:
        path = Path("/dev/null")
    return path


@pytest.mark.parametrize("verb", ["record", "redact", "export", "index"])
@pytest.mark.parametrize("kind", ["a symbolic link", "a FIFO", "a folder", "a device"])
def test_only_regular_files_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loop: Any, verb: str, kind: str
) -> None:
    path = special_file(tmp_path, kind)
    before = path.lstat()
    source = tmp_path / "loop.pt"
    source.write_bytes(loop.stream(3))
    words = ["--", "touch", str(tmp_path / "was-run")] if verb == "record" else [str(source)]
    assert main([verb, "-o", str(path), *words]) == 2
    line = capsys.readouterr().err.splitlines()[-1]  # after a warning of the unknown processor
    assert f"{path}: is {kind}, and only regular files are written; give another name" in line
    after = path.lstat()
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert not (tmp_path / "was-run").exists()
    assert kind != "a symbolic link" or (tmp_path / "target").read_bytes() == BUNDLE


@pytest.mark.parametrize("verb", ["record", "redact", "export", "index"])
def test_other_users_cannot_read_what_is_written(tmp_path: Path, loop: Any, brief: str, verb: str) -> None:
    before = os.umask(0)
    try:
        source, out = tmp_path / "loop.pt", tmp_path / "out"
        source.write_bytes(loop.stream(3))
        words = ["-q", "--backend", "step", "--", brief] if verb == "record" else [str(source)]
        assert main([verb, "-o", str(out), *words]) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert not list(tmp_path.glob(".ptkit-*"))


@needs_root
def test_the_user_of_sudo_gets_the_finished_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: Any, brief: str
) -> None:
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    monkeypatch.setenv("SUDO_GID", str(NOBODY))
    recorded, exported, redacted, index = (
        tmp_path / name for name in ("a.ptk", "a.data", "b.ptk", "a.index")
    )
    source = tmp_path / "loop.pt"
    source.write_bytes(loop.stream(3))
    trace = ptkit.record([brief, "loop", "5"], output=recorded, backend="step")
    trace.export(exported, code="all")
    ptkit.redact(source, redacted)
    assert main(["index", str(source), "-o", str(index)]) == 0
    debug = Path(f"{exported}.debug")
    inside = list(debug.rglob("*"))
    assert any(path.name == "elf" for path in inside)
    for path in (recorded, exported, redacted, index, debug, *inside):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (NOBODY, NOBODY), path
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    ptkit.record([brief, "loop", "5"], output=recorded, backend="step", owner="root")
    assert recorded.stat().st_uid == 0


def test_doctor_says_where_others_could_read_or_replace_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o700)
    assert folder_warnings(tmp_path) == []
    tmp_path.chmod(0o1777)
    assert folder_warnings(tmp_path) == []
    tmp_path.chmod(0o777)
    (sentence,) = folder_warnings(tmp_path)
    assert (
        f"other users may rename and remove files of this folder (mode 0777); `chmod go-w {tmp_path}`"
        in sentence
    )
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) == 0
    assert capsys.readouterr().err == f"ptkit doctor: warning: {sentence}\n"
    assert main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["place"] == [sentence]
    assert folder_warnings(tmp_path / "nowhere")[0].endswith("give -o with another folder")


def test_doctor_says_that_a_file_system_has_no_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "mode_of_new_file", lambda _path: 0o755)
    (sentence,) = folder_warnings(tmp_path)
    assert (
        "its file system gives new files mode 0755, not 0600: other users could read a recording" in sentence
    )


@needs_root
def test_doctor_says_whose_folder_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    (sentence,) = folder_warnings(tmp_path)
    assert "this user may replace a recording there" in sentence
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    assert folder_warnings(tmp_path) == []


@pytest.fixture
def readable_folder() -> Iterator[Path]:
    """A folder that other users can enter, which those of pytest are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@needs_root
def test_another_users_recording_names_the_owner_and_the_command(readable_folder: Path) -> None:
    path = readable_folder / "a.ptk"
    path.write_bytes(BUNDLE)
    path.chmod(0o600)
    # The first call imports what may lie in a folder that root alone may read.
    code = (
        "import contextlib, io, os, sys, ptkit.cli\n"
        f"words = ['info', {str(path)!r}]\n"
        "with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):\n"
        "    ptkit.cli.main(words)\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "sys.exit(ptkit.cli.main(words))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"{path}: permission denied: it belongs to root (mode 0600); `sudo chown " in line


def test_owners_are_checked() -> None:
    with pytest.raises(ptkit.ConfigError, match="there is no user 'no-such-user'"):
        ptkit.record(["true"], output="never", owner="no-such-user")


def test_record_does_not_replace_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\ntouch was-run\n")
    program.chmod(0o755)
    assert main(["record", "-o", str(program), "--", str(program)]) == 2
    assert program.read_text() == "#!/bin/sh\ntouch was-run\n"
    assert capsys.readouterr().err.count("\n") == 1
    assert not Path("was-run").exists()


@pytest.mark.parametrize("verb", ["redact", "export"])
def test_other_verbs_overwrite_recordings_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loop: Any, verb: str
) -> None:
    source, out = tmp_path / "loop.pt", tmp_path / "out"
    source.write_bytes(loop.stream(3))
    out.write_text("notes\n")
    assert main([verb, str(source), "-o", str(out)]) == 2
    assert out.read_text() == "notes\n"
    assert "out is a text file, not a recording" in capsys.readouterr().err
    assert main([verb, str(source), "-o", str(out), "--force"]) == 0
    assert main([verb, str(source), "-o", str(out)]) == 0
