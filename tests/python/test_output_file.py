"""What `ptkit record -o FILE` does where a file is already."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit.capture.output_file import OutputFile
from ptkit.cli import main

BUNDLE = b"\x89PTK\r\n\x1a\n" + bytes(24)
PSB = b"\x02\x82" * 8


def prepare(path: Path, *, force: bool = False) -> OutputFile:
    file = OutputFile(os.fsencode(path), force=force)
    file.keep_earlier()
    return file


@pytest.mark.parametrize("content", [BUNDLE, b"PERFILE2" + bytes(100), PSB + b"\x02\x23"])
def test_an_earlier_recording_is_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.ptk"
    (tmp_path / "trace.ptk.old").write_bytes(b"still older")
    path.write_bytes(content)
    prepare(path)
    assert not path.exists()
    assert (tmp_path / "trace.ptk.old").read_bytes() == content


def test_a_recording_that_fails_brings_the_earlier_one_back(tmp_path: Path) -> None:
    path = tmp_path / "trace.ptk"
    path.write_bytes(BUNDLE)
    file = prepare(path)
    file.restore_earlier()
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


def test_empty_files_and_devices_are_written_to(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    prepare(path)
    assert path.exists()
    prepare(Path("/dev/null"))
    assert Path("/dev/null").is_char_device()


def test_the_file_that_a_link_names_is_meant(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(BUNDLE)
    link.symlink_to(target)
    prepare(link)
    assert link.is_symlink()
    assert (tmp_path / "target.old").read_bytes() == BUNDLE
    target.write_bytes(b"text")
    with pytest.raises(ptkit.OpenError, match="link is a text file, not a recording"):
        prepare(link)


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
