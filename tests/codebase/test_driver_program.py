"""Programs in C on pages of docs/ compile, and the one for the Linux driver says what is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compiling import compiled
from doc_blocks import PAGES, ROOT, Block, blocks_of

PROGRAMS = [block for page in PAGES for block in blocks_of(page) if block.language == "c"]
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror")


def build(block: Block, folder: Path) -> Path:
    source = folder / "self.c"
    source.write_text(block.text)
    return compiled(folder / "self", *FLAGS, f"-I{ROOT / 'kernel' / 'include'}", source)


@pytest.mark.parametrize("block", PROGRAMS, ids=[block.name for block in PROGRAMS])
def test_programs_of_the_pages_compile(block: Block, tmp_path: Path) -> None:
    assert build(block, tmp_path).is_file()


@pytest.mark.skipif(Path("/dev/ptkit").exists(), reason="the driver is loaded")
def test_the_program_of_the_driver_says_what_is_missing(tmp_path: Path) -> None:
    (block,) = [block for block in PROGRAMS if "PTKIT_START" in block.text]
    done = subprocess.run([build(block, tmp_path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr == "/dev/ptkit: No such file or directory\n"
    assert not (tmp_path / "self.pt").exists()
