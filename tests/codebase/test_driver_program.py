"""C on pages of docs/ compiles, and the program for the Linux driver says what is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from compiling import compiled
from doc_blocks import PAGES, ROOT, Block, blocks_of

BLOCKS = [block for page in PAGES for block in blocks_of(page) if block.language == "c"]
PROGRAMS = [block for block in BLOCKS if "int main(" in block.text]
FRAGMENTS = [block for block in BLOCKS if block not in PROGRAMS]
# Declarations that a fragment of a fuzzer leaves out.
FUZZER = """
#include <ptkit.h>
#include <string.h>
uint8_t hits[65536], virgin[65536], buffer[65536];
void *input;
void die(const char *message);
size_t run_target(void *input, void *buffer);
void keep(void *input);
void fragment(void) {
#line 1
%s
}
"""
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror")


def build(block: Block, folder: Path) -> Path:
    source = folder / "self.c"
    source.write_text(block.text)
    return compiled(folder / "self", *FLAGS, f"-I{ROOT / 'kernel' / 'include'}", source)


@pytest.mark.parametrize("block", PROGRAMS, ids=[block.name for block in PROGRAMS])
def test_programs_of_the_pages_compile(block: Block, tmp_path: Path) -> None:
    assert build(block, tmp_path).is_file()


@pytest.mark.parametrize("block", FRAGMENTS, ids=[block.name for block in FRAGMENTS])
def test_fragments_of_the_pages_compile(block: Block, tmp_path: Path) -> None:
    source = tmp_path / "fragment.c"
    source.write_text(FUZZER % block.text)
    assert compiled(tmp_path / "fragment.o", *FLAGS, "-c", f"-I{ROOT / 'include'}", source).is_file()


@pytest.mark.skipif(Path("/dev/ptkit").exists(), reason="the driver is loaded")
def test_the_program_of_the_driver_says_what_is_missing(tmp_path: Path) -> None:
    (block,) = [block for block in PROGRAMS if "PTKIT_START" in block.text]
    done = subprocess.run([build(block, tmp_path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr == "/dev/ptkit: No such file or directory\n"
    assert not (tmp_path / "self.pt").exists()
