"""Import slots in bundles: calls of imported functions have the names that they have with the files."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import compiled
from ptk_chunks import chunk
from small_pe import pe_with_import

import ptkit
from ptkit import BranchKind
from ptkit.cli import main

LOAD = 0xFFFFF80685380000
RANGES = [("filter", LOAD, LOAD + 0x1FFF)]
NAME = "ExpInterlockedPopEntrySList"
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int __attribute__((noinline)) parsed(const char *text) { return atoi(text) + (int)strlen(text); }
int main(void) {
  int sum = 0;
  for (int i = 0; i < 3; i++) sum += parsed("12") + (getenv("NONE") != NULL);
  printf("%d\\n", sum);
  return 0;
}
"""
# What says how a file is known, and not what it is.
OF_THE_FILE = {"file", "space", "code_tsc"}


def through_slot(opcode: str, at: int) -> bytes:
    """CALL or JMP at an RVA through the slot at RVA 0x1100."""
    return bytes.fromhex(opcode) + (0x1100 - (at + 6)).to_bytes(4, "little")


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    path = tmp_path / "driver.sys"
    # 1000: call [slot]; 1006: call 1010; 100b: ret; 1010: jmp [slot]
    code = through_slot("ff15", 0x1000) + b"\xe8" + (0x1010 - 0x100B).to_bytes(4, "little") + b"\xc3"
    code = code.ljust(0x10, b"\xcc") + through_slot("ff25", 0x1010)
    path.write_bytes(pe_with_import(code, 0x140000000, NAME))
    return path


@pytest.fixture
def recording(packets: Any, tmp_path: Path) -> Path:
    """Traced by the driver's own range: the targets are not recorded."""
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND
    for begin in (0x1000, 0x1006, 0x100B):
        stream += packets.pge(LOAD + begin) + packets.TIP_PGD
    path = tmp_path / "driver.pt"
    path.write_bytes(stream)
    return path


def quietly(path: Path, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(path, **options)


def rows(table: Any) -> dict[str, list[Any]]:
    columns = [name for name in table.columns if name not in OF_THE_FILE]
    return {name: table[name].tolist() for name in columns}


def tables(trace: Any) -> dict[str, dict[str, list[Any]]]:
    more = {"functions": ["import_ip", "entry_ip"]}
    return {
        "functions": rows(trace.functions(columns=[*trace.functions().columns, *more["functions"]])),
        "entries": rows(trace.functions("entry")),
        "imports": rows(trace.functions(imports=True)),
        "edges": rows(trace.edges()),
        "calls": rows(trace.calls()),
        "tree": rows(trace.call_tree()),
        "branches": rows(trace.branches(columns=["from_ip", "to_ip", "to_symbol"])),
    }


def same(some: Any, other: Any) -> None:
    found, expected = tables(some), tables(other)
    for name, table in expected.items():
        assert list(found[name]) == list(table), name
        for column in table:
            assert found[name][column] == table[column], (name, column)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


def answers(capsys: pytest.CaptureFixture[str], *source: str) -> list[str]:
    verbs = (
        ("functions",),
        ("functions", "--imports"),
        ("edges",),
        ("edges", "--by", "function"),
        ("calls",),
    )
    found = []
    for verb, *more in verbs:
        found += [said(capsys, verb, *source, *more)]
        for line in said(capsys, verb, *source, "--json", *more).splitlines()[1:]:
            row = json.loads(line)
            found.append(json.dumps({name: row[name] for name in row if name not in OF_THE_FILE}))
    return found


def test_pe_files(driver: Path, recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:

    trace = ptkit.open(recording, images=[(driver, LOAD)], ranges=RANGES, cpu="6/158/10")
    bundle, again, redacted = (tmp_path / name for name in ("driver.ptk", "again.ptk", "redacted.ptk"))
    trace.save(bundle)
    with_file = answers(capsys, str(bundle), "--image", f"{driver}@{LOAD:#x}")
    driver.rename(tmp_path / "elsewhere")
    alone = ptkit.open(bundle)
    assert alone.functions(imports=True)["function"].tolist() == [NAME]
    same(alone, trace)
    assert answers(capsys, str(bundle)) == with_file
    imports = [
        json.loads(line)
        for line in said(capsys, "functions", str(bundle), "--imports", "--json").splitlines()[1:]
    ]
    assert [(row["function"], row["count"]) for row in imports] == [(NAME, 2)]
    # What writes bundles keeps the slots.
    assert main(["save", str(bundle), "-o", str(again)]) == 0
    same(ptkit.open(again), trace)
    ptkit.redact(again, redacted)
    assert ptkit.open(redacted).functions(imports=True)["count"].tolist() == [2]
    # With the index of the bundle.
    assert main(["index", str(bundle)]) == 0
    same(ptkit.open(bundle), trace)


def test_bundles_without_slots(driver: Path, recording: Path, tmp_path: Path) -> None:
    trace = ptkit.open(recording, images=[(driver, LOAD)], ranges=RANGES, cpu="6/158/10")
    bundle = tmp_path / "driver.ptk"
    trace.save(bundle)
    data = bundle.read_bytes()
    at = data.index(b"PTKCIMPT")
    size = int.from_bytes(data[at + 24 : at + 32], "little")
    # As a version before 1.11 writes it: no such chunk.
    older = data[:10] + (10).to_bytes(2, "little") + data[12:at] + data[at + 48 + -(-size // 8) * 8 :]
    bundle.write_bytes(older[: older.rindex(b"PTKCINDX")])
    old = quietly(bundle)
    assert len(old.functions(imports=True)) == 0
    assert old.instructions()["ip"].tolist() == trace.instructions()["ip"].tolist()
    both = quietly(bundle, images=[(driver, LOAD)])
    assert both.functions(imports=True)["function"].tolist() == [NAME]


@pytest.mark.parametrize(
    "payload", [b"", b"\1", bytes(32), b"\xff" * 64, b"\1" + bytes(11) + b"\xff\xff\xff\x7f" + bytes(16)]
)
def test_damaged_slots_are_left_out(payload: bytes, tmp_path: Path, driver: Path, recording: Path) -> None:
    bundle = tmp_path / "driver.ptk"
    ptkit.open(recording, images=[(driver, LOAD)], ranges=RANGES, cpu="6/158/10").save(bundle)
    data = bundle.read_bytes()
    whole = data[: data.rindex(b"PTKCINDX")]
    bundle.write_bytes(whole + chunk("IMPT", payload, 0))
    trace = quietly(bundle)
    assert any("IMPT" in text for text in trace.info.warnings)
    assert trace.functions(imports=True)["function"].tolist() == [NAME]  # the sound ones before


@pytest.mark.parametrize("flags", [(), ("-fno-plt",), ("-no-pie",), ("-Wl,-z,lazy", "-no-pie")], ids=" ".join)
def test_elf_programs(
    flags: tuple[str, ...], tmp_path: Path, packets: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    program = compiled(tmp_path / "program", "-O1", *flags, source)
    recorded = tmp_path / "recorded.ptk"
    ptkit.record([str(program)], output=recorded, timing=[], filters=ptkit.Filter.module("program"))
    alone = ptkit.open(recorded)
    load = load_address(alone, program)
    # The recorder keeps the slots of the files of which it keeps code.
    edges = alone.edges(module="program")
    through = edges[np.isin(edges["kind"], (BranchKind.JUMP_INDIRECT, BranchKind.CALL_INDIRECT))]
    slots = [imports_of(trace, through) for trace in (alone, quietly(recorded, images=[(program, load)]))]
    assert slots[0] == slots[1]
    assert {"strtol", "strlen", "getenv", "printf"} <= {name for name in slots[0] if name}
    # A trace without targets, as of a filter in hardware.
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND
    for ip, name in zip(through["from_ip"].tolist(), slots[0], strict=True):
        stream += (packets.pge(ip) + packets.TIP_PGD) * (name is not None)
    path, bundle = tmp_path / "program.pt", tmp_path / "program.ptk"
    path.write_bytes(stream)
    ranges = [("filter", load, load + 0xFFFF)]
    trace = ptkit.open(path, images=[(program, load)], ranges=ranges, cpu="6/158/10")
    trace.save(bundle)
    with_file = answers(capsys, str(bundle), "--image", f"{program}@{load:#x}")
    program.rename(tmp_path / "elsewhere")
    alone = ptkit.open(bundle)
    assert {"strtol", "strlen", "getenv", "printf"} <= set(alone.functions(imports=True)["function"].tolist())
    same(alone, trace)
    assert answers(capsys, str(bundle)) == with_file


def load_address(trace: Any, program: Path) -> int:
    mappings = trace.mappings()
    columns = (mappings[name].tolist() for name in ("path", "address", "rva"))
    (load,) = {address - rva for path, address, rva in zip(*columns, strict=True) if path == str(program)}
    return int(load)


def imports_of(trace: Any, edges: Any) -> list[str | None]:
    names = trace.edges().data.context.name_rows
    labels, _ = names("import", edges["from_ip"], edges["space"], None, None, False)
    return list(labels.texts())
