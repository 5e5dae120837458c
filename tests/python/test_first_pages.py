"""What the pages for the first day show is what their commands print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doc_blocks import blocks_of

import ptkit
from ptkit import capture

DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = [
    pytest.mark.skipif(shutil.which("sort") is None, reason="no program `sort`"),
    pytest.mark.skipif(
        not any(one.name == "step" and one.available for one in capture.probe()),
        reason="no single stepping here",
    ),
]


def _block(page: str, start: str) -> str:
    return next(block.text for block in blocks_of(DOCS / page) if block.text.startswith(start))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages speak of, and with the recording that their first line makes."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "README.md").write_text("b\na\n")
    packets = bytes.fromhex("0282" * 8 + "0223" + "71001040000000000a01")
    (folder / "raw.pt").write_bytes(packets)
    (folder / "code.bin").write_bytes(b"\x90" * 64)
    _shell("ptkit record -o sort.ptk -- sort README.md", folder)
    return folder


def _shell(line: str, folder: Path) -> str:
    """Run a line with `ptkit` as the one of this test; fails if any part of a pipe does."""
    line = re.sub(r"(^|\s)(?:\.venv/bin/)?ptkit ", rf"\1{sys.executable} -m ptkit ", line)
    paths = [str(Path(ptkit.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C", "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def test_shell_lines_run(folder: Path) -> None:
    lines = _block("install.md", ".venv/bin/ptkit record").splitlines()
    assert lines[0] == ".venv/bin/ptkit record -o sort.ptk -- sort README.md"
    output = {line: _shell(line, folder) for line in lines[1:]}
    # A tenth of the time may have no branch, where the machine was busy with other work.
    assert all(text for line, text in output.items() if "--time" not in line)
    assert "malloc" in output[".venv/bin/ptkit instructions sort.ptk --symbol malloc | head"]


def test_questions(folder: Path) -> None:
    (folder / "tour.py").write_text(_block("python.md", "import ptkit\n\ntrace = ptkit.record"))
    printed = _shell(f"{sys.executable} -W error::SyntaxWarning tour.py", folder)
    assert re.search(r"from_symbol +to_symbol", printed)
    assert "self_instructions" in printed
    assert ".so." in printed
    assert "[gaps: 0 rows" in printed
    assert "[errors: 0 rows" in printed
