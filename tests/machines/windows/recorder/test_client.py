"""ptkit-capture.exe in Wine: what it says where no driver is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from mingw import imports_of
from wine import SECONDS, Wine, errors_of

pytestmark = pytest.mark.slow


def refused(wine: Wine, recorder_program: Path, *arguments: str) -> tuple[int, str]:
    """The exit status of a command that fails, and what it prints."""
    log = wine.folder / "refusal"
    status = wine.begin(log, recorder_program, *arguments, environment={}).wait(SECONDS)
    said = "".join(path.read_text(errors="replace") for path in (log, errors_of(log)))
    return status, said.replace("\r", "")


def test_help_names_each_command(wine: Wine, recorder_program: Path) -> None:
    said = wine.run(recorder_program, "--help")
    for command in ("record", "attach", "driver", "bts", "snapshot", "lbr", "doctor"):
        assert f"ptkit-capture {command}" in said


def test_needs_no_libraries_of_mingw(wine: Wine, recorder_program: Path) -> None:
    assert wine.run(recorder_program, "--version").startswith("ptkit-capture 0.")


def test_imports_from_windows_alone_and_has_no_hooks_of_tests(recorder_program: Path) -> None:
    imports = imports_of(recorder_program)
    assert set(imports) == {"advapi32.dll", "kernel32.dll", "msvcrt.dll", "ntdll.dll"}
    assert imports["advapi32.dll"] >= {"StartTraceW", "OpenTraceW", "ProcessTrace", "ControlTraceW"}
    assert b"PTKIT_TEST" not in recorder_program.read_bytes()


def test_missing_driver_is_said_with_the_remedy(wine: Wine, recorder_program: Path) -> None:
    output = wine.folder / "none.ptk"
    status, said = refused(
        wine, recorder_program, "record", "-o", str(output), "--", "cmd", "/c", "exit", "3"
    )
    assert status == 1
    assert "the driver ptkit.sys is not loaded" in said
    assert "sc start ptkit" in said
    assert not output.exists()


def test_doctor_says_what_is_missing(wine: Wine, recorder_program: Path) -> None:
    status, said = refused(wine, recorder_program, "doctor")
    assert status == 1
    assert "Windows" in said
    assert "ptkit.sys is not loaded" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("record",), "expected a program"),
        (("record", "--ring", "12Q", "-a"), "--ring: expected a size such as 64M or 1G"),
        (("record", "--no-such", "-a"), "--no-such: there is no such option"),
        (("snapshot", "1"), "process 1 is no recorder"),
    ],
)
def test_wrong_options_are_named(
    wine: Wine, recorder_program: Path, arguments: tuple[str, ...], words: str
) -> None:
    status, said = refused(wine, recorder_program, *arguments)
    assert status == 2
    assert words in said
