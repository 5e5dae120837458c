"""Progress on a terminal: of decoding and of recordings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from terminals import python_on_a_terminal
from test_cli import CODE, STREAM

import ptkit


@pytest.mark.parametrize("verb", ["info --decode", "verify"])
def test_progress_on_a_terminal(verb: str, tmp_path: Path) -> None:
    if verb == "verify" and ptkit._core.reference_version() is None:
        pytest.skip("this build has no libipt")
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM * 100_000)
    code = (
        "from ptkit.cli import main\n"
        "from ptkit.cli.output import progress\n"
        "progress.PROGRESS_DELAY = progress.PROGRESS_INTERVAL = 0\n"
        f"main({[*verb.split(), str(path), '--processor', '6/142/9']!r})\n"
    )
    shown = python_on_a_terminal(["-c", code])
    shares = [int(share) for share in re.findall(r"raw.pt \(2.7 MB\): (\d+)%", shown)]
    assert len(shares) > 1
    assert shares == sorted(shares)
    # The line is taken away in the end.
    assert "\r\x1b[K" in shown
    assert "%" not in shown.rsplit("\x1b[K", 1)[1]
    # What takes no time shows none.
    assert "%" not in python_on_a_terminal(["-c", code.replace("INTERVAL = 0", "INTERVAL = 1000")])


@pytest.mark.parametrize(
    "verb",
    ["functions", "tree", "edges", "index", "calls --slowest 1", "branches --ip 0x10", "export -o out"],
)
def test_progress_of_decoding_on_a_terminal(verb: str, tmp_path: Path) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM * 100_000)
    (tmp_path / "code.bin").write_bytes(CODE)
    name, *options = verb.split()
    words = [name, str(path), *options, "--processor", "6/142/9", "--code", f"{tmp_path}/code.bin@0x1000"]
    if name == "export":
        words[words.index("out")] = str(tmp_path / "out")
        words += ["--format", "offsets"]
    code = (
        "from ptkit.cli import main\n"
        "from ptkit.cli.output import progress\n"
        "progress.PROGRESS_DELAY, progress.PROGRESS_INTERVAL = 0, 0.001\n"
        f"main({words!r})\n"
    )
    shown = python_on_a_terminal(["-c", code])
    what = {"index": "indexing", "export": "exporting"}.get(name, "decoding")
    found = re.findall(rf"{what} raw.pt \(2.7 MB\): (\d+)%, \d+ s(, \d+ s left)?", shown)
    shares = [int(share) for share, _ in found]
    assert shares == sorted(shares)
    assert 0 < max(shares) <= 100
    assert any(left for _, left in found)
    assert "%, " not in shown.rsplit("\x1b[K", 1)[1]


def test_progress_ends_before_rows_on_the_same_terminal(tmp_path: Path) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(STREAM * 1000)
    code = (
        "from ptkit.cli import main\n"
        "from ptkit.cli.output import progress\n"
        "progress.PROGRESS_DELAY, progress.PROGRESS_INTERVAL = 0, 0.001\n"
        f"main({['packets', str(path), '--processor', '6/142/9']!r})\n"
    )
    shown = python_on_a_terminal(["-c", code])
    lines = shown.rsplit("\x1b[K", 1)[-1].splitlines()
    assert "decoding" not in "".join(lines)
    assert sum(line.split()[1:] == ["psb"] for line in lines) == 1000


RECORDING = """
import sys, tty
from ptkit.capture import Progress
from ptkit.cli.output.progress import RecordingLine
if {raw}:
    tty.setraw(sys.stderr.fileno())
line = RecordingLine(enabled={enabled})
for half in range(9):
    line.at(Progress(half * 1_000_000, half * 250_000, half / 2))
line.clear()
"""


def test_progress_of_a_recording_on_a_terminal() -> None:
    shown = python_on_a_terminal(["-c", RECORDING.format(raw=False, enabled=True)])
    assert [line.strip() for line in re.findall(r"recording: ([^\x1b]*)", shown)] == [
        "2,000,000 instructions, 0.5 MB of trace, 1 s",
        "4,000,000 instructions, 1.0 MB of trace, 2 s",
        "6,000,000 instructions, 1.5 MB of trace, 3 s",
        "8,000,000 instructions, 2.0 MB of trace, 4 s",
    ]
    assert shown.endswith("\r\x1b[K")
    # Nothing is drawn where a program draws itself, as editors do, or with --quiet.
    assert python_on_a_terminal(["-c", RECORDING.format(raw=True, enabled=True)]) == ""
    assert python_on_a_terminal(["-c", RECORDING.format(raw=False, enabled=False)]) == ""
    code = RECORDING.format(raw=False, enabled=True)
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (piped.stdout, piped.stderr) == ("", "")
