"""What recorders need of Windows, as far as it runs on any system."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from ptkit.capture import program, systems
from ptkit.capture.backend_probe import BackendProbe
from ptkit.capture.systems import posix, windows
from ptkit.errors import ConfigError

ANSWER: dict[str, Any] = {
    "errno": 0,
    "detail": "",
    "version": (1, 2, 3),
    "features": ["topa", "process", "bts"],
    "ranges": 4,
    "mtc": True,
    "cyc": False,
}


def pe(machine: int) -> bytes:
    return b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40) + b"PE\0\0" + struct.pack("<H", machine)


def test_both_systems_have_the_same_names() -> None:
    assert sorted(windows.__all__) == sorted(posix.__all__)
    assert all(hasattr(one, name) for one in (windows, posix) for name in one.__all__)
    assert systems.platform is posix


def test_the_driver_says_what_it_can_do() -> None:
    found = windows.find_driver(answer=ANSWER)
    assert found == BackendProbe(
        abilities="version 1.2.3: ToPA output, one process, Branch Trace Store, "
        "4 address filters, MTC packets"
    )
    assert windows.find_driver("bts", ANSWER).missing == ""


def test_a_driver_without_branch_trace_store_says_so() -> None:
    found = windows.find_driver("bts", ANSWER | {"features": ["topa"]})
    assert "no Branch Trace Store" in found.missing
    assert found.remedy == "record packets"


def test_what_is_missing_has_its_remedy() -> None:
    answer = ANSWER | {"detail": "the driver is not loaded; install it; then start it"}
    assert windows.find_driver(answer=answer) == BackendProbe(
        "the driver is not loaded", "install it; then start it"
    )


@pytest.mark.parametrize(
    ("head", "machine"),
    [
        (pe(0x8664), program.NATIVE),
        (pe(0x14C), program.I386),
        (pe(0xAA64), "AArch64"),
        (pe(0x1234), "PE machine 0x1234"),
        (pe(0x8664)[:-2], None),
        (b"MZ", None),
        (b"\x7fELF" + bytes(100), None),
    ],
)
def test_programs_say_for_which_machine_they_are(head: bytes, machine: str | None) -> None:
    assert windows.machine_of_file(head) == machine


def test_files_have_no_owner_by_number() -> None:
    with pytest.raises(ConfigError, match=r"owner: files of Windows .*icacls"):
        windows.owner_of("root")


def test_a_folder_that_cannot_be_written_to_is_said() -> None:
    assert "cannot be written" in windows.folder_warnings(Path("C:/"), None)[0]
    assert windows.folder_warnings(Path("C:/"), 0o666) == []
