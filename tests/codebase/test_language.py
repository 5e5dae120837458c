"""Sources use the words of the manual, of perf and of libipt (docs/glossary.md, "Retired words")."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "glossary.md"
FOLDERS = ("src", "python", "kernel")
SUFFIXES = {".h", ".c", ".cpp", ".def", ".inl", ".py", ".pyi"}
# Comments, strings and character literals; a ' within a number (1'000) is none.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True)
class Row:
    """One row of the table: words, the folders in which they are refused, and where in a file."""

    words: tuple[str, ...]
    folders: tuple[str, ...]
    enforced: str


def _tables(heading: str) -> list[list[str]]:
    """Cells of the rows of all tables below a heading of the glossary."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert section is not None
    lines = re.findall(r"^\|(.*)\|$", section.group(1), re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines[2:]]


def _rows() -> list[Row]:
    return [
        Row(tuple(re.findall(r"`([^`]+)`", old)), tuple(re.split(r",\s*", where)), enforced)
        for old, _, where, enforced in _tables("Retired words")
    ]


@cache
def _files(folder: str) -> tuple[Path, ...]:
    return tuple(path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES)


def _pages() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    return [page for page in pages if page != PAGE]


@cache
def _words(identifier: str) -> str:
    """The words of an identifier in lower case, each between two underscores."""
    parts = [word.lower() for part in identifier.split("_") for word in CAMEL.findall(part)]
    return "_" + "_".join(parts) + "_"


def _has(identifier: str, word: str) -> bool:
    """Whether an identifier has a retired word; one with capitals has to be the identifier itself."""
    return f"_{word}_" in _words(identifier) if word == word.lower() else word == identifier


def _identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """Identifiers with their lines; the name of the file comes first, with line 0."""
    yield 0, path.stem
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".py", ".pyi"}:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
        return
    code = NO_CODE.sub(lambda found: "\n" * found.group().count("\n"), text)
    for number, line in enumerate(code.splitlines(), 1):
        for identifier in IDENTIFIER.findall(line):
            yield number, identifier


def test_retired_words_are_not_used() -> None:
    words = [word for row in _rows() if row.enforced == "text" for word in row.words]
    assert "whose" in words
    pattern = re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)
    sources = [path for folder in (*FOLDERS, "ptmodel") for path in _files(folder)]
    assert len(sources) > 500
    assert len(_pages()) > 20
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in [*sources, *_pages()]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_retired_words_are_no_names() -> None:
    words: dict[Path, list[str]] = {}
    for row in _rows():
        for path in (path for folder in row.folders for path in _files(folder) if row.enforced == "names"):
            words.setdefault(path, []).extend(row.words)
    assert len(words) > 500
    assert [
        f"{path.relative_to(ROOT)}:{number}: {identifier}: {word}"
        for path in words
        for number, identifier in _identifiers(path)
        for word in words[path]
        if _has(identifier, word)
    ] == []


def test_rows_are_complete() -> None:
    rows = _rows()
    assert len(rows) > 20
    for row in rows:
        assert row.words, row
        assert row.enforced in ("no", "names", "text"), row
        assert all((ROOT / folder).is_dir() for folder in row.folders), row
        if row.enforced == "text":
            assert row.folders == FOLDERS, row


def test_glossary_names_folders_that_are_there() -> None:
    headings = re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)
    assert headings[-1] == "Retired words"
    for heading in headings[:-1]:
        for word, _, meaning, where in _tables(heading):
            assert meaning, word
            for folder in re.findall(r"`([^`]+)`", where):
                assert (ROOT / folder).is_dir(), (word, folder)


@pytest.mark.parametrize(
    ("identifier", "word", "has"),
    [
        ("WayRows", "way", True),
        ("way_rows_", "way_rows", True),
        ("kWayEnd", "way", True),
        ("always", "way", False),
        ("Run", "Run", True),
        ("run", "Run", False),
        ("RunEnd", "Run", False),
        ("PT_PLACER", "placer", True),
    ],
)
def test_words_of_identifiers(identifier: str, word: str, has: bool) -> None:
    assert _has(identifier, word) is has


def test_comments_and_strings_have_no_identifiers(tmp_path: Path) -> None:
    source = tmp_path / "one.cpp"
    source.write_text(
        'int a = 1\'000;  // told\n/* told\n */ auto b = "told \\" told"; char c = \'"\';\nint told;\n'
    )
    assert [name for _, name in _identifiers(source)] == [
        "one",
        "int",
        "a",
        "auto",
        "b",
        "char",
        "c",
        "int",
        "told",
    ]
    assert [line for line, _ in _identifiers(source)] == [0, 1, 1, 3, 3, 3, 3, 4, 4]
