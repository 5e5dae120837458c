"""Text of files: bytes that are no UTF-8, and values of any length in messages."""

from __future__ import annotations

import json
import os
import struct
import warnings
from pathlib import Path
from typing import Any

import ptk_chunks
import pytest

import ptkit
from ptkit.cli.main import main

ODD = b"na\xffme\xc3"
SHOWN = "na\\xffme\\xc3"


@pytest.fixture
def odd(tmp_path: Path, loop: Any) -> Path:
    """A bundle in which a function's name has bytes that are no UTF-8."""
    symbol = struct.pack("<QQI", 0, len(loop.CODE), len(ODD)) + ODD

    path = tmp_path / "odd.ptk"
    path.write_bytes(
        ptk_chunks.MAGIC
        + ptk_chunks.words("META")
        + ptk_chunks.words("FILE", 0, id=0, path="/bin/odd")
        + ptk_chunks.chunk("SYMB", symbol, 0)
        + ptk_chunks.process(0, 7, 1, loop.stream(3))
        + ptk_chunks.code(loop.BASE, loop.CODE, space=1, file=0)
    )
    return path


def opened(path: Path | str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(path)


def test_names_of_any_bytes_are_text(odd: Path, loop: Any) -> None:
    trace = opened(odd)
    assert [name for name, *_ in trace.symbols("*")] == [SHOWN]
    assert trace.symbolize([loop.BASE]) == [SHOWN]
    assert trace.inlines(loop.BASE)[0].function == SHOWN
    assert set(trace.branches()["from_symbol"].tolist()) == {SHOWN}
    assert trace.functions()["function"].tolist() == [SHOWN]
    assert trace.call_tree()["function"].tolist() == [SHOWN]
    with pytest.raises(ptkit.SymbolError) as error:
        trace.symbols("naXmeX")
    assert SHOWN in str(error.value)
    for text in (
        repr(trace),
        trace.info.text(verbose=True),
        str(trace.info.modules),
        str(trace.info.recording),
    ):
        assert text.encode("utf-8")


@pytest.mark.parametrize(
    "verb",
    ["branches", "branches --rva", "branches --json", "instructions", "events", "edges --by function"]
    + ["edges --by module", "functions", "functions --json", "tree --json --all", "calls", "calls --json"]
    + ["info --verbose", "info --json", "packets --branches", "export --format offsets -o {out}"]
    + ["export --format drcov -o {out}", "export --format code -o {out}.d", "save -o {out}.ptk", "index"],
)
def test_verbs_print_names_of_any_bytes(
    verb: str, odd: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = verb.format(out=tmp_path / "out").split()
    assert main([name, str(odd), *options]) == 0
    assert "Unicode" not in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="names of files are text on Windows")
def test_paths_of_any_bytes_are_opened(odd: Path, loop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = os.fsdecode(os.fsencode(odd.parent) + b"/tr\xffce.ptk")
    odd.rename(path)
    trace = opened(path)
    assert trace.source == path
    assert trace.index().path is not None
    assert main(["info", path]) == 0
    assert main(["branches", path, "--limit", "1"]) == 0
    assert main(["branches", path, "--limit", "1", "--json"]) == 0
    assert "tr\\xffce" in main_text(path, capsys)


def main_text(path: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["info", path]) == 0
    return capsys.readouterr().out


LONG = "t" * 50_000
MANY = "word " * 20_000


@pytest.mark.parametrize("value", [LONG, MANY, {"a": LONG}, [LONG], 10**300])
def test_messages_are_not_as_long_as_values(
    value: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"type": value}))
    assert main(["info", str(path)]) == 2
    said = capsys.readouterr().err
    assert len(said) < 600
    if isinstance(value, str):
        assert value[:50] in said
        assert '..."' in said


@pytest.mark.parametrize("value", [LONG, MANY])
def test_headings_and_warnings_are_not_as_long_as_values(
    value: str, tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = [
        ptk_chunks.words("STRM", n, id=n, name=value) + ptk_chunks.chunk("DATA", loop.stream(2), n)
        for n in (0, 1)
    ]
    path = ptk_chunks.write(
        tmp_path / "long.ptk",
        [ptk_chunks.file(0, f"/{value}", value, 0, 6), *stream],
        command=[value],
        host=value,
    )
    for verb in (["branches", "--limit", "2"], ["events", "--limit", "2"], ["info"], ["info", "--verbose"]):
        assert main([verb[0], str(path), *verb[1:]]) == 0
        printed = capsys.readouterr()
        for line in (printed.out + printed.err).splitlines():
            assert len(line) < 2500, line[:200]
    with pytest.raises(ptkit.ConfigError) as error:
        opened(path).branches(module="nothing")
    assert len(str(error.value)) < 2500
