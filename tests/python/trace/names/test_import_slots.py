"""Calls of imported functions of which the code is not traced: `branches`, `edges`, `functions`, `calls`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_pe import pe, pe_with_import

import ptkit
from ptkit.cli import main

LOAD = 0xFFFFF80685380000
NAME = "ExpInterlockedPopEntrySList"


def through_slot(opcode: str, at: int) -> bytes:
    """CALL or JMP at an RVA through the slot at RVA 0x1100."""
    return bytes.fromhex(opcode) + (0x1100 - (at + 6)).to_bytes(4, "little")


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "driver.sys"
    # 1000: call [slot]; 1006: call 1012; 100b: call 1020; 1010: ret; 1012: nop, jmp [slot]; 1020: jmp [slot]
    code = through_slot("ff15", 0x1000) + b"\xe8" + (0x1012 - 0x100B).to_bytes(4, "little")
    code += b"\xe8" + (0x1020 - 0x1010).to_bytes(4, "little") + b"\xc3"
    code = code.ljust(0x12, b"\xcc") + b"\x90" + through_slot("ff25", 0x1013)
    code = code.ljust(0x20, b"\xcc") + through_slot("ff25", 0x1020)
    path.write_bytes(pe_with_import(code, 0x140000000, NAME))
    return path


@pytest.fixture
def trace(image: Path, packets: Any, open_trace: Any) -> Any:
    """Traced by the driver's own range: the targets are not recorded."""
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND
    for begin in (0x1000, 0x1006, 0x100B, 0x1010):
        stream += packets.pge(LOAD + begin) + packets.TIP_PGD
    return open_trace(stream, images=[(image, LOAD)], ranges=[("filter", LOAD, LOAD + 0x1FFF)])


def test_functions_have_one_row_for_each_import(trace: Any) -> None:
    functions = trace.functions()
    assert "[unknown]" not in functions.where(is_import=True)["function"].tolist()
    row = functions.where(is_import=True)
    assert row["function"].tolist() == [NAME]
    assert row["count"].tolist() == [3]
    assert (row["instructions"].tolist(), row["self_instructions"].tolist()) == ([0], [0])
    assert not row["entry_known"].any()
    assert int(functions["self_instructions"].sum()) == len(trace.instructions(columns=["cls"]))
    only = trace.functions(imports=True)
    assert (only["function"].tolist(), only["count"].tolist()) == ([NAME], [3])
    assert only.columns == functions.columns
    assert trace.functions("entry", imports=True)["count"].tolist() == [3]
    assert trace.functions(imports=True, columns=["function"]).columns == ("function",)
    for by in ("module", "line"):
        with pytest.raises(ptkit.ConfigError, match="imports"):
            trace.functions(by, imports=True)


def test_calls_and_trees_agree_with_functions(trace: Any) -> None:
    calls = trace.calls()
    imports = calls.where(is_import=True)
    assert imports["entry_symbol"].tolist() == [NAME] * 3
    assert [ptkit.CallKind(how).name for how in imports["how"]] == ["CALL", "TAIL", "PLT"]
    assert imports["import_ip"].tolist() == [LOAD + at for at in (0x1000, 0x1013, 0x1020)]
    assert imports["instructions"].tolist() == [0, 0, 0]
    assert not imports["entry_known"].any()
    whole, summed = trace.functions(), calls.functions()
    for column in whole.columns:
        assert np.array_equal(whole[column], summed[column]), column
    tree = trace.call_tree()
    assert tree["count"][tree["is_import"]].sum() == 3
    assert set(tree["function"][tree["is_import"]].tolist()) == {NAME}
    assert tree["function"].tolist() == calls.tree()["function"].tolist()
    parts = [part["entry_symbol"].tolist() for part in trace.iter_calls(rows=2)]
    assert sum((part.count(NAME) for part in parts), 0) == 3


def test_edges_have_rows_of_targets_with_a_name_alone(trace: Any) -> None:
    edges = trace.edges()
    half = edges.where(to_known=False)
    assert half["from_ip"].tolist() == [LOAD + at for at in (0x1000, 0x1013, 0x1020)]
    assert half["to_symbol"].tolist() == [NAME] * 3
    assert half["count"].tolist() == [1, 1, 1]
    assert edges.named("to_ip")[0] is None
    assert edges.where(to_known=True)["kind"].tolist() == [ptkit.BranchKind.CALL] * 2  # not the last return
    assert trace.edges(kind="CALL_INDIRECT")["count"].tolist() == [1]
    assert trace.edges(columns=["count"])["count"].tolist() == edges["count"].tolist()
    for reuse in (False, True):
        counts: list[int] = []
        for part in trace.iter_edges(rows=2, reuse=reuse):
            counts += part["count"].tolist()
        assert counts == edges["count"].tolist()
    phases = trace.edges(by="instructions", bins=2)
    assert phases["count"].sum() == edges["count"].sum()


def test_modules_are_those_that_imports_name(
    trace: Any, image: Path, packets: Any, open_trace: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    functions = trace.functions()
    assert functions.where(is_import=True)["module"].tolist() == ["NTOSKRNL.exe"]
    modules = trace.functions("module")
    rows = dict(zip(modules["module"].tolist(), modules["count"].tolist(), strict=True))
    assert rows["NTOSKRNL.exe"] == 3
    assert set(rows) == set(functions["module"].tolist())
    assert modules["self_instructions"].sum() == len(trace.instructions(columns=["cls"]))
    assert trace.calls().functions("module")["module"].tolist() == modules["module"].tolist()
    tree = trace.call_tree()
    assert set(tree["module"][tree["is_import"]].tolist()) == {"NTOSKRNL.exe"}
    bundle = tmp_path / "driver.ptk"
    trace.save(bundle)
    assert main(["functions", str(bundle), "--by", "module"]) == 0
    assert "NTOSKRNL.exe" in capsys.readouterr().out
    # A module that is a file of the trace has one row.
    kernel = tmp_path / "ntoskrnl.exe"
    kernel.write_bytes(pe(b"\xc3", 0x150000000))
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(LOAD + 0x1000) + packets.TIP_PGD
    stream += packets.pge(0x150001000) + packets.TIP_PGD
    ranges = [("filter", LOAD, LOAD + 0x1FFF), ("filter", 0x150000000, 0x150001FFF)]
    both = open_trace(stream, images=[(image, LOAD), (kernel, 0x150000000)], ranges=ranges)
    modules = both.functions("module")
    assert modules["module"].tolist().count("ntoskrnl.exe") == 1
    assert "NTOSKRNL.exe" not in modules["module"].tolist()
    assert both.functions(imports=True)["module"].tolist() == ["ntoskrnl.exe"]


def test_moments_in_imported_functions_have_their_names(image: Path, packets: Any, open_trace: Any) -> None:
    stream = packets.PSB + packets.tsc(1000) + packets.MODE_64 + packets.PSBEND
    stream += packets.pge(LOAD + 0x1000) + packets.TIP_PGD + b"\x02\x12" + bytes(4) + packets.tsc(2000)
    stream += packets.tsc(3000) + packets.pge(LOAD + 0x1006) + packets.TIP_PGD + packets.tsc(3001)
    stream += packets.tsc(4000) + packets.pge(LOAD + 0x1010) + packets.TIP_PGD
    trace = open_trace(stream, images=[(image, LOAD)], ranges=[("filter", LOAD, LOAD + 0x1FFF)])
    writes = trace.ptwrites()
    assert writes["function"].tolist() == [NAME]
    assert writes["is_import"].tolist() == [True]
    assert writes["import_ip"].tolist() == [LOAD + 0x1000]
    assert not writes["entry_known"].any()
    assert writes["flags"].dtype == np.uint16
    found = trace.at_times([2500, 3500], clock="tsc")
    assert found["function"].tolist() == [NAME, NAME]
    assert found["import_ip"].tolist() == [LOAD + 0x1000, LOAD + 0x1013]
    assert found.named("entry_ip") == [None, None]
    assert ((found["flags"] & ptkit.StackFlag.IMPORT) != 0).all()


def test_verbs_name_imports(
    trace: Any, image: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "driver.ptk"
    trace.save(bundle)
    words = [str(bundle), "--image", f"{image}@{LOAD:#x}"]

    def said(verb: str, *more: str) -> str:
        assert main([verb, *words, *more]) == 0
        return capsys.readouterr().out

    def rows(verb: str, *more: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in said(verb, "--json", *more).splitlines()[1:]]

    assert said("edges", "--by", "function", "--kind", "call_indirect").split() == [
        "1",
        "[driver.sys]",
        "->",
        NAME,
    ]
    assert said("edges").count(f"-> {'?' * 16}") == 3
    found = [row for row in rows("edges") if row["to_ip"] is None]
    assert [row["to_symbol"] for row in found] == [NAME] * 3
    (line,) = said("functions", "--imports").splitlines()
    assert line.split()[2] == "3"
    assert line.endswith(f"{NAME} (NTOSKRNL.exe)")
    (row,) = rows("functions", "--imports")
    assert (row["function"], row["count"], row["entry_ip"]) == (NAME, 3, None)
    assert said("calls").count(f"{NAME}()") == 3
    assert [row["entry_symbol"] for row in rows("calls") if row["import_ip"] is not None] == [NAME] * 3
    assert said("tree", "--all").count(NAME) == 2
    assert main(["functions", *words, "--imports", "--by", "module"]) == 2


def test_names_of_imports_are_taken_as_they_are_printed(
    trace: Any, image: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "driver.ptk"
    trace.save(bundle)
    words = [str(bundle), "--image", f"{image}@{LOAD:#x}", "--no-header"]
    shown = []
    for name in (NAME, f"{NAME} (NTOSKRNL.exe)", f"NTOSKRNL.exe!{NAME}", f"ntoskrnl!{NAME}"):
        assert main(["tree", *words, "--callers", name]) == 0
        shown.append(capsys.readouterr().out)
        assert trace.callers(name)["count"][0] == 3
    assert shown == [shown[0]] * 4
    with pytest.raises(ptkit.SymbolError, match="was called"):
        trace.callers(f"other!{NAME}")
    with pytest.raises(ptkit.SymbolError, match="functions --imports"):  # it has no code that rows are of
        trace.branches(symbol=NAME)


def test_code_that_is_traced_is_no_import(image: Path, packets: Any, open_trace: Any) -> None:
    other = 0x150000000
    path = image.parent / "other.sys"
    path.write_bytes(pe(b"\x90\xc3", other))
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(LOAD + 0x1000)
    stream += packets.tip(other + 0x1000) + packets.tip(LOAD + 0x1006) + packets.TIP_PGD
    trace = open_trace(stream, images=[(image, LOAD), (path, other)])
    calls = trace.calls().where(is_import=True)
    assert [ptkit.CallKind(how).name for how in calls["how"]] == ["TAIL"]  # not the call before it
    # The target's address is known, and no code there.
    without = open_trace(stream, images=[(image, LOAD)])
    assert without.functions(imports=True)["count"].tolist() == [2]
    assert without.edges(kind="CALL_INDIRECT")["to_ip"].tolist() == [other + 0x1000]
