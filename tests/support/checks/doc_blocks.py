"""Code blocks of README.md, HACKING.md, SECURITY.md and docs/*.md.

A fenced block of the language `python` or `sh` is run by tests/python/test_doc_commands.py, unless the words
after the language say `no-run REASON`. Then its lines have to parse. `text`, `c`, `c++`, `json` and `toml`
are not run (tests/codebase/test_driver_program.py compiles those of `c`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / name for name in ("README.md", "HACKING.md", "SECURITY.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)
RUN = ("python", "sh")
OTHERS = ("text", "c", "c++", "json", "toml", "sql")
FENCE = re.compile(r"^```([\w+]*) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^\n|\A)((?:^    .*\n|^\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block; `words` stand after the language."""

    page: Path
    line: int
    language: str
    words: str
    text: str

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether it is run."""
        return self.language in RUN and not self.words


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2], found[3])
        for found in FENCE.finditer(text)
    ]


def indented_of(page: Path) -> list[str]:
    """Lines of blocks that are indented instead of fenced; list items are none."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [line.strip() for block in INDENTED.findall(text) for line in block.splitlines() if line.strip()]


def all_blocks() -> list[Block]:
    """The blocks of all pages."""
    return [block for page in PAGES for block in blocks_of(page)]


def commands_of(text: str) -> Iterator[list[str]]:
    """Words of each simple command of a shell block: pipes, lists and redirections are taken apart."""
    lexer = shlex.shlex(
        text.replace("\\\n", " ").replace("\n", "\n;\n"), posix=True, punctuation_chars="|&;<>"
    )
    lexer.whitespace_split = True
    lexer.commenters = "#"
    command: list[str] = []
    redirected = False
    for word in lexer:
        if set(word) <= set("|&;"):
            if command:
                yield command
            command = []
        elif set(word) <= set("<>"):
            redirected = True
            continue
        elif not redirected:
            command.append(word)
        redirected = False
    if command:
        yield command


def ptkit_calls(text: str) -> Iterator[list[str]]:
    """Arguments of each call of `ptkit` in a shell block, also behind `sudo` and the like.

    For commands about kernel modules, `ptkit` is the name of one; for CMake, of a library.
    """
    for command in commands_of(text):
        names = [Path(word).name for word in command]
        if "ptkit" in names and names[0] not in ("modprobe", "rmmod", "cmake"):
            yield command[names.index("ptkit") + 1 :]
