"""Commands and code blocks of README.md, HACKING.md, SECURITY.md and docs/*.md work."""

from __future__ import annotations

import argparse
import contextlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from compiling import compiled
from doc_blocks import (
    OTHERS,
    PAGES,
    ROOT,
    RUN,
    Block,
    all_blocks,
    blocks_of,
    commands_of,
    indented_of,
    ptkit_calls,
)
from rounds import needs_emulator

import ptkit
from ptkit.cli.main import build_parser

BLOCKS = all_blocks()
NOT_RUN = [block for block in BLOCKS if block.language in RUN and not block.runs]
# What a page's Python blocks use without making it.
TRACE = "import numpy as np, ptkit\ntrace = ptkit.open('sort.ptk')\nbranches = trace.branches()\n"
PRELUDES = {
    "README.md": "",
    "branch-records.md": "import numpy as np, ptkit\nrecords = np.zeros(6, ptkit.BRANCH_RECORD)\n",
    "coverage.md": "import ptkit\nbuffers = [open('raw.pt', 'rb').read()]\n",
    "json.md": "import json, subprocess\n",
}
# Programs that blocks call, and why they may be missing.
NEEDED = {
    "perf": "no perf here: install linux-perf (Debian) or perf",
    "jq": "no jq here: install jq",
    "xz": "no xz here: install xz-utils (Debian) or xz",
}

PROGRAM = """
__attribute__((noinline)) int parse(int n) {
  volatile int x = 0;
  for (int i = 0; i < n; ++i) x += i & 3;
  return x;
}
__attribute__((noinline)) int work(int n) { return parse(n) + parse(n / 2); }
int main(int argc, char** argv) {
  (void)argv;
  int x = 0;
  for (int i = 0; i < 20; ++i) x += work(i + argc);
  return x < 0;
}
"""
SERVER = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) { for (int i = 0; i < 100; ++i) { free(malloc(100)); usleep(10000); } return 0; }
"""


def _environment(folder: Path) -> dict[str, str]:
    paths = [str(Path(ptkit.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    programs = [str(folder / ".venv" / "bin"), os.environ["PATH"]]
    return os.environ | {
        "LC_ALL": "C",
        "PATH": os.pathsep.join(programs),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONWARNINGS": "",
    }


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=_environment(folder), check=False
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout[-2000:]}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def _shell(text: str, folder: Path) -> str:
    return _run(["bash", "-e", "-o", "pipefail", "-c", text], folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages name: recordings, programs, raw streams."""
    folder = tmp_path_factory.mktemp("pages")
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "ptkit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ptkit "$@"\n')
    (programs / "ptkit").chmod(0o755)
    (folder / "README.md").write_text("b\na\n")
    for name, text, flags in (("a.out", PROGRAM, ("-static", "-no-pie")), ("server", SERVER, ())):
        (folder / f"{name}.c").write_text(text)
        compiled(folder / name, "-O1", "-g", *flags, folder / f"{name}.c")
    _shell("ptkit record -o sort.ptk -- sort README.md", folder)
    _shell("ptkit record -o program.ptk -- ./a.out && ptkit export program.ptk -o perf.data", folder)
    shutil.copy(folder / "sort.ptk", folder / "big.ptk")
    for name in ("trace.ptk", "before.ptk", "after.ptk"):
        shutil.copy(folder / "sort.ptk", folder / name)
    taken = ptkit.open(folder / "program.ptk").branches(taken=True)
    known = taken[taken["from_known"] & taken["to_known"]]
    (folder / "dump.bts").write_bytes(
        b"".join(
            struct.pack("<3Q", int(a), int(b), 0)
            for a, b in zip(known["from_ip"], known["to_ip"], strict=True)
        )
    )
    stream = bytes.fromhex("0282" * 8 + "0223" + "71001040000000000a01")
    for name in ("raw.pt", "buffer.bin"):
        (folder / name).write_bytes(stream)
    (folder / "stream.pt.xz").write_bytes(lzma.compress(stream))
    return folder


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_blocks_have_a_form_that_is_known(block: Block) -> None:
    assert block.language in RUN + OTHERS, block.name
    assert not block.words or re.fullmatch(r"no-run \S.*", block.words), block.name


@needs_emulator
@pytest.mark.parametrize("block", [block for block in BLOCKS if block.runs], ids=lambda block: block.name)
def test_blocks_run(block: Block, folder: Path, tmp_path: Path) -> None:
    if block.language == "python":
        script = tmp_path / "block.py"
        script.write_text(PRELUDES.get(block.page.name, TRACE) + block.text)
        _run([sys.executable, "-W", "error::SyntaxWarning", str(script)], folder)
        return
    for command in commands_of(block.text):
        if command[0] in NEEDED and shutil.which(command[0]) is None:
            pytest.skip(NEEDED[command[0]])
    _shell(block.text, folder)


def _parser_of(verb: str) -> argparse.ArgumentParser:
    verbs = next(one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return verbs.choices[verb]


def _options(parser: argparse.ArgumentParser) -> set[str]:
    options = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            options |= {option for one in action.choices.values() for option in _options(one)}
    return options


def _check_call(arguments: list[str]) -> None:
    """A call of `ptkit` parses, and its options are written in full."""
    line = " ".join(["ptkit", *arguments])
    ended = False
    with contextlib.suppress(SystemExit):
        build_parser().parse_args(arguments)
        ended = True
    assert ended, line
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for word in own:
        if word.startswith("--"):
            assert word.partition("=")[0] in _options(_parser_of(arguments[0])) | {"--version"}, (line, word)


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.name)
def test_other_blocks_parse(block: Block) -> None:
    if block.language == "python":
        compile(block.text, block.name, "exec")
        return
    for arguments in ptkit_calls(block.text):
        _check_call(arguments)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in commands_of(block.text):
        if command[0] == "make" and len(command) > 1 and not command[1].startswith("-"):
            assert command[1] in targets, command
        if command[0].startswith("python") and command[1].endswith(".py"):
            assert (ROOT / command[1]).is_file(), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_calls_in_indented_blocks_parse(page: Path) -> None:
    for line in indented_of(page):
        if line.startswith("ptkit ") and "error:" not in line:
            for arguments in ptkit_calls(line):
                _check_call(arguments)


@pytest.mark.parametrize(
    "text",
    ["ptkit nonsense", "ptkit info --nonsense a", "ptkit record --lev both -- ls", "sudo ptkit branches"],
)
def test_wrong_calls_are_found(text: str) -> None:
    (arguments,) = ptkit_calls(text)
    with pytest.raises(AssertionError):
        _check_call(arguments)


def test_commands_in_sentences_parse() -> None:
    """`ptkit VERB ...` in a line of text: verbs and options are there."""
    verbs = next(
        one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction)
    ).choices
    found = 0
    for page in PAGES:
        for call in re.findall(r"`(?:sudo )?ptkit ([a-z][^`\n]*)`", page.read_text()):
            words = call.split()
            assert words[0] in verbs, (page.name, call)
            options = _options(verbs[words[0]])
            own = words[: words.index("--")] if "--" in words else words
            for word in own:
                if word.startswith("--"):
                    assert word.partition("=")[0] in options, (page.name, call, word)
            found += 1
    assert found > 20


def test_blocks_are_found() -> None:
    assert len(BLOCKS) > 30
    assert sum(block.runs for block in BLOCKS) > 15
    assert not indented_of(ROOT / "README.md")
    assert blocks_of(ROOT / "README.md")


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("ptkit info a | head  # x\nptkit doctor", [["info", "a"], ["doctor"]]),
        ("ptkit doctor  # x\nptkit info a", [["doctor"], ["info", "a"]]),
        ("sudo -u x .venv/bin/ptkit record \\\n  -- ls > out", [["record", "--", "ls"]]),
        ("perf record ls && make x", []),
    ],
)
def test_calls_of_shell_text(text: str, calls: list[list[str]]) -> None:
    assert list(ptkit_calls(text)) == calls
