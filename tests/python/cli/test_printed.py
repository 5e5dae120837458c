"""Rows as they are printed, byte by byte: `printed.txt` was written by lines made in Python, one by one.

REBASE=1 writes the file anew; review its changes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_elf import elf

import ptkit
from ptkit import capture
from ptkit.cli import main
from ptkit.cli.output import terminal
from ptkit.support.schema import schema_of

PRINTED = Path(__file__).with_name("printed.txt")
ADDRESS = 0x401000
CODE = bytes.fromhex("7402" + "9090" + "74fa" + "ffe0")  # jz +2; nop; nop; jz -6; jmp rax
NAME = "na\u00efve\x1b[2J(int, char)"
INPUT = ["damaged.pt", "--image", "program", "--processor", "6/142/9", "--max-nonturbo-ratio", "20"]
CASES = (
    "branches",
    "branches --time-unit tsc --no-symbols",
    "branches --time-unit s --tsc-hz 1000000000 --limit 3",
    "branches --order time --taken",
    "branches --time 10%-90%",
    "branches --json --tsc-hz 3000000000",
    "branches --json --no-symbols --limit 2",
    "instructions",
    "instructions --no-inst --no-events --time-unit tsc",
    "instructions --json",
    "instructions --json --no-inst --limit 4",
    "packets",
    "packets --last-ip --tsc --no-pad",
    "packets --branches --limit 25",
    "packets --branches --time-unit ns --tsc-hz 1000000000",
    "packets --json",
)


@pytest.fixture
def folder(tmp_path: Path, packets: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program of one function, and a stream of it with times, events and damage."""
    (tmp_path / "program").write_bytes(elf(CODE, ADDRESS, NAME))
    maintenance = b"\x02\xc3\x88" + b"\xff" * 8
    compressed = bytes.fromhex("2d0010")  # TIP, the lower 16 bits of the address
    outside = packets.tip(0x7F0000001234)

    def part(tsc: int) -> bytes:
        header = packets.PSB + packets.tsc(tsc) + packets.MODE_64 + packets.PSBEND
        begin = header + packets.pge(ADDRESS) + packets.tnt("010101") + maintenance + compressed
        end = packets.OVF + packets.fup(ADDRESS) + packets.tnt("0")
        return begin + packets.tnt("1001") + outside + bytes(3) + end

    first, second = part(0xF0000000000001), part(0xF0000000010001)
    (tmp_path / "damaged.pt").write_bytes(b"\x55" * 9 + first + packets.TIP_PGD + b"\x02\xff" + second)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(case: str, capsys: pytest.CaptureFixture[str]) -> str:
    verb, *options = case.split()
    assert main([verb, *INPUT, *options]) == 0
    return capsys.readouterr().out


def test_lines_are_those_of_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {case: printed(case, capsys) for case in CASES}
    if os.environ.get("REBASE"):
        PRINTED.write_text("".join(f"$ ptkit {case}\n{text}" for case, text in texts.items()))
    parts = PRINTED.read_text().split("$ ptkit ")[1:]
    expected = dict(part.split("\n", 1) for part in parts)
    assert expected.keys() == texts.keys()
    for case, text in texts.items():
        assert text == expected[case], case


def test_output_that_is_not_utf_8(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are the same if standard output has another encoding, or no bytes."""
    expected = printed("branches", capsys)

    class Texts:
        encoding = "utf-8"

        def __init__(self) -> None:
            self.text = ""

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None:
            pass

        def isatty(self) -> bool:
            return False

    texts = Texts()
    monkeypatch.setattr("sys.stdout", texts)
    assert main(["branches", *INPUT]) == 0
    assert texts.text == expected


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not any(one.name == "emulator" and one.available for one in capture.probe()):
        pytest.skip("no emulator here")
    path = tmp_path_factory.mktemp("recording") / "true.ptk"
    ptkit.record(["true"], output=path, backend="emulator", quiet=True)
    return str(path)


def names(part: ptkit.Table, end: str) -> list[str]:
    columns = (f"{end}_symbol", f"{end}_symbol_offset", f"{end}_module", f"{end}_module_offset")
    texts = []
    for symbol, offset, module, rva in zip(*(part[column].tolist() for column in columns), strict=True):
        named = f"{symbol}+{offset:#x}" if offset else symbol
        texts.append(named if symbol else f"[{module}]+{rva:#x}" if module else "")
    return texts


def test_branches_are_those_of_the_table(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line has the row's values and names, as the table has them."""
    branches = ptkit.open(recording).branches()
    assert main(["branches", recording]) == 0
    lines = capsys.readouterr().out.splitlines()
    values = [branches.named(name) for name in ("tsc", "from_ip", "taken", "to_ip", "kind")]
    ends = zip(names(branches, "from"), names(branches, "to"), strict=True)
    expected = []
    for tsc, source, taken, target, kind, (a, b) in zip(*values, ends, strict=True):
        addresses = ["?" * 16 if ip is None else f"{ip:016x}" for ip in (source, target)]
        named = f"  {a or '?'} -> {b or '?'}" if a or b else ""
        arrow = "=>" if taken else "--"
        time = "-" if tsc is None else tsc
        expected.append(
            f"{time:>16}  {addresses[0]} {arrow} {addresses[1]}  {kind.lower():<13}{named}".rstrip()
        )
    assert lines == expected


@pytest.mark.parametrize("table", ["branches", "instructions", "packets"])
def test_json_is_that_of_the_table(table: str, recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    trace = ptkit.open(recording)
    rows = getattr(trace, table)()
    assert main([table, recording, "--json"]) == 0
    printed_rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    printed_rows = [row for row in printed_rows if row["table"] == table]
    assert len(printed_rows) == len(rows)
    schema = schema_of(table)
    runs = schema.names("run")
    for name in (*schema.names("stored"), *runs):
        if name == "flags":
            continue
        values = [row[name] for row in printed_rows]
        numbers = [int(value, 0) if str(value).startswith("0x") else value for value in values]
        assert numbers == rows.named(name), name
    for name in ("symbol", "module", "from_symbol", "to_module"):
        if name in rows.available:
            assert [row[name] for row in printed_rows] == rows[name].tolist(), name
    if table == "instructions":
        ips, index = np.unique(rows["ip"], return_index=True)
        for ip, row in zip(ips.tolist(), index.tolist(), strict=True):
            text = trace.disassemble(ip, int(rows["size"][row]), space=int(rows["space"][row]))
            assert printed_rows[row]["disassembly"] == text


class Closed:
    """Standard output with a reader that has gone away."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.buffer = self
        self.writes = 0

    def write(self, data: bytes) -> int:
        self.writes += 1
        raise BrokenPipeError

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return os.open(os.devnull, os.O_WRONLY)


@pytest.mark.parametrize("verb", ["branches", "instructions", "packets"])
def test_a_reader_that_goes_ends_the_decode(
    verb: str, folder: Path, packets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first write that fails, nothing is decoded: one part of rows, and the events before it."""
    stream = (folder / "damaged.pt").read_bytes()[9:]
    (folder / "damaged.pt").write_bytes(stream * 40_000)
    read = {"rows": 0, "events": 0}

    def counting(name: str, key: str) -> None:
        original = getattr(ptkit.Trace, name)

        def parts(self: ptkit.Trace, **options: Any) -> Any:
            for part in original(self, **options):
                read[key] += 1
                yield part

        monkeypatch.setattr(ptkit.Trace, name, parts)

    counting(f"iter_{verb}", "rows")
    counting("iter_events", "events")
    closed = Closed()
    monkeypatch.setattr("sys.stdout", closed)
    terminal._widen_pipe.cache_clear()
    assert main([verb, *INPUT]) == 0
    assert (closed.writes, read["rows"]) == (1, 1)
    assert read["events"] <= (400 if verb == "instructions" else 0)  # of 1,500 parts
