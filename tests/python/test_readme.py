"""What README.md and the help texts tell people to type works."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ptkit
from ptkit import capture
from ptkit.cli.main import VERBS, build_parser

README = Path(__file__).resolve().parents[2] / "README.md"

pytestmark = [
    pytest.mark.skipif(shutil.which("sort") is None, reason="no program `sort`"),
    pytest.mark.skipif(
        not any(one.name == "step" and one.available for one in capture.probe()),
        reason="no single stepping here",
    ),
]


def _blocks() -> list[str]:
    """The indented blocks of README.md."""
    found = re.findall(r"(?:^    .*\n|^\n)+", README.read_text() + "\n", flags=re.MULTILINE)
    blocks = [re.sub(r"^    ", "", block, flags=re.MULTILINE).strip() for block in found]
    return [block for block in blocks if block]


def _block(start: str) -> str:
    return next(block for block in _blocks() if block.startswith(start))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that README.md speaks of, and with the recording that its first line makes."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "README.md").write_text("b\na\n")
    (folder / "a.out").write_bytes(b"\x90" * 64)
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


def test_shell_lines(folder: Path) -> None:
    lines = _block(".venv/bin/ptkit record").splitlines()
    assert lines[0] == ".venv/bin/ptkit record -o sort.ptk -- sort README.md"
    output = {line: _shell(line, folder) for line in lines[1:]}
    assert all(output.values())
    assert "malloc" in output[".venv/bin/ptkit instructions sort.ptk --symbol malloc | head"]


def test_python_block(folder: Path) -> None:
    script = "raw_bytes = open('raw.pt', 'rb').read()\n" + _block("import ptkit")
    (folder / "readme.py").write_text(script)
    printed = _shell(f"{sys.executable} -W error::SyntaxWarning readme.py", folder)
    assert "->" in printed
    assert "sort" in printed


def test_recording_lines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    lines = _block("ptkit record -o out.ptk").splitlines()
    assert len(lines) > 3
    for line in lines:
        options = build_parser().parse_args(shlex.split(line, comments=True)[1:])
        assert options.program[1:][0] in ("./a.out", "./server")
        for text in options.filter or []:
            assert ptkit.Filter.parse(text)
        for text in options.trigger or []:
            assert ptkit.Trigger.parse(text).event
        if options.ring:
            assert capture.options.size_of("ring", options.ring) == 64 << 20


def _examples() -> list[str]:
    texts = [importlib.import_module(f"ptkit.cli.{verb}").EXAMPLES for verb in VERBS if verb != "record"]
    texts.append(build_parser().epilog or "")
    lines = [line.strip() for text in texts for line in text.splitlines()[1:]]
    ours = {line for line in lines if line.startswith("ptkit ") and "ptkit record" not in line}
    return sorted(line for line in ours if "jq" not in line)


@pytest.mark.parametrize("line", _examples())
def test_examples_of_the_help(line: str, folder: Path) -> None:
    if "ptkit verify" in line:
        from ptkit import _core

        if _core.reference_version() is None:
            pytest.skip("this build has no libipt")
    # All rows of a whole recording take long; the first ones will do.
    if " | " not in line and any(verb in line for verb in ("packets", "branches", "instructions")):
        first, _, target = line.partition(" > ")
        line = (first if " --limit " in first else f"{first} --limit 100") + (
            f" > {target}" if target else ""
        )
    _shell(line, folder)
