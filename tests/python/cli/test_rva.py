"""``--rva`` of verbs, offsets in modules in JSON, and memory without a file as a module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_elf import elf
from small_pe import pe

import ptkit
from ptkit.cli.main import main

LOAD = 0xFFFFF80685380000


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def driver(tmp_path: Path, loop: Any) -> list[str]:
    """A trace of a PE file without names: its code has RVA 0x1000."""
    (tmp_path / "srv2.sys").write_bytes(pe(loop.CODE, 0x140000000))
    program = type("Moved", (loop,), {"BASE": LOAD + 0x1000, "JNZ": LOAD + 0x1002, "JMP": LOAD + 0x1004})
    (tmp_path / "raw.pt").write_bytes(program.stream(2))
    return [str(tmp_path / "raw.pt"), "--image", f"{tmp_path / 'srv2.sys'}@{LOAD:#x}", "--processor", "6/142"]


@pytest.fixture
def program(tmp_path: Path, loop: Any) -> list[str]:
    """A trace of a program with a function that has a name."""
    (tmp_path / "a.out").write_bytes(elf(loop.CODE, loop.BASE, "spin"))
    (tmp_path / "named.pt").write_bytes(loop.stream(2))
    return [str(tmp_path / "named.pt"), "--image", str(tmp_path / "a.out"), "--processor", "6/142"]


@pytest.fixture
def memory(tmp_path: Path, loop: Any) -> list[str]:
    """A trace of bare code."""
    (tmp_path / "code.bin").write_bytes(loop.CODE)
    (tmp_path / "bare.pt").write_bytes(loop.stream(2))
    return [
        str(tmp_path / "bare.pt"),
        "--code",
        f"{tmp_path / 'code.bin'}@{loop.BASE:#x}",
        "--processor",
        "6/142",
    ]


def test_branches_have_module_and_rva(driver: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    printed = lines(capsys, "branches", *driver, "--rva", "--kind", "JUMP_INDIRECT")
    assert printed[0].endswith("  srv2.sys+0x1004 -> srv2.sys+0x1000")


def test_names_stand_behind_the_rva(
    program: list[str], loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    offset = loop.JMP - loop.BASE
    printed = lines(capsys, "branches", *program, "--rva", "--kind", "JUMP_INDIRECT")
    assert printed[0].endswith(f"  a.out+{offset:#x} (spin+{offset:#x}) -> a.out+0x0 (spin)")
    printed = lines(capsys, "branches", *program, "--rva", "--no-symbols", "--kind", "JUMP_INDIRECT")
    assert printed[0].endswith(f"  a.out+{offset:#x} -> a.out+0x0")


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        (["instructions", "--limit", "1"], "a.out+0x0 (spin)"),
        (["instructions", "--limit", "1", "--no-inst"], "  a.out+0x0"),
        (["events", "--kind", "ENABLED"], "  a.out+0x0 (spin)"),
        (["edges", "--limit", "1"], "a.out+0x"),
        (["edges", "--limit", "1", "--no-symbols"], "a.out+0x"),
        (["packets", "--branches"], "a.out+0x0 (spin)"),
        (["functions"], "  a.out+0x0 (spin)"),
        (["functions", "--by", "entry"], "  a.out+0x0 (spin)"),
        (["tree", "--all"], "  a.out+0x0 (spin)"),
        (["calls"], "| a.out+0x0 (spin())"),
        (["calls", "--slowest", "1"], "  a.out+0x0 (spin())"),
    ],
)
def test_every_verb_prints_rvas(
    verb: list[str], text: str, program: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = verb
    printed = lines(capsys, name, *program, *options, "--rva")
    assert any(text in line for line in printed), printed


def test_packets_name_their_addresses(program: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    printed = lines(capsys, "packets", *program, "--rva")
    assert any("tip.pge" in line and line.endswith("  a.out+0x0") for line in printed), printed


def test_errors_and_gaps_have_rvas(tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.out").write_bytes(elf(loop.CODE[:4], loop.BASE, "spin"))  # the jump is not there
    (tmp_path / "cut.pt").write_bytes(loop.stream(2))
    words = [str(tmp_path / "cut.pt"), "--image", str(tmp_path / "a.out"), "--processor", "6/142"]
    for verb in (["branches"], ["instructions"], ["info", "--decode"], ["events"]):
        printed = "\n".join(lines(capsys, *verb, *words, "--rva"))
        assert "= a.out+0x" in printed, printed


@pytest.mark.parametrize("verb", ["branches", "instructions", "events", "packets", "edges"])
def test_offsets_in_files_are_no_rvas(
    verb: str, program: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        main([verb, *program, "--rva", "--file-offsets"])
    assert exit.value.code == 2
    assert "--file-offsets: not allowed with argument --rva" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["edges", "--by", "module"], ["functions", "--by", "module"], ["functions", "--slow", "spin"]],
)
def test_rva_needs_addresses(
    arguments: list[str], program: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *options = arguments
    assert main([verb, *program, *options, "--rva"]) == 2
    assert "--rva does not go with" in capsys.readouterr().err


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(capsys, *arguments, "--json")[1:]]


def test_json_has_offsets_in_modules(driver: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    jump = next(row for row in rows(capsys, "branches", *driver) if row.get("kind") == "JUMP_INDIRECT")
    assert (jump["from_module"], jump["from_module_offset"]) == ("srv2.sys", 0x1004)
    assert (jump["to_module"], jump["to_module_offset"]) == ("srv2.sys", 0x1000)
    first = next(row for row in rows(capsys, "instructions", *driver) if row["table"] == "instructions")
    assert first["module_offset"] == 0x1000
    assert rows(capsys, "edges", *driver)[0]["to_module_offset"] in (0x1000, 0x1004)


def test_json_of_functions_has_offsets_of_entries(
    program: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for verb in ("functions", "tree", "calls"):
        (row,) = rows(capsys, verb, *program, "--all")
        assert (row["entry_ip"], row["entry_module_offset"]) == ("0x1000", 0), verb


def test_json_has_the_columns_of_tables(program: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    trace = ptkit.open(program[0], images=[program[2]], cpu="6/142")
    table = trace.branches()
    found = [row for row in rows(capsys, "branches", *program) if row["table"] == "branches"]
    for name in ("from_module_offset", "to_module_offset"):
        assert [row[name] for row in found] == table.named(name)


#: call 0x1006; hlt; 0x1006: nop; ret
CALLER = bytes.fromhex("e801000000f490c3")


def caller(base: int) -> bytes:
    """A call and its return, at an address."""
    return (
        bytes.fromhex("0282" * 8 + "9901 0223 d1")
        + base.to_bytes(8, "little")
        + bytes.fromhex("cd")
        + (base + 5).to_bytes(8, "little")
    )


def test_memory_without_a_file_is_a_module(
    memory: list[str], loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = f"[anon {loop.BASE:#x}]"
    offset = loop.JMP - loop.BASE
    printed = lines(capsys, "branches", *memory, "--rva", "--kind", "JUMP_INDIRECT")
    assert printed[0].endswith(f"  {module}+{offset:#x} -> {module}+0x0")
    jump = next(row for row in rows(capsys, "branches", *memory) if row.get("kind") == "JUMP_INDIRECT")
    assert (jump["from_module"], jump["from_module_offset"]) == (module, offset)
    (tmp_path / "call.pt").write_bytes(caller(0x1000))
    (tmp_path / "call.bin").write_bytes(CALLER)
    words = [str(tmp_path / "call.pt"), "--code", f"{tmp_path / 'call.bin'}@0x1000", "--processor", "6/142"]
    assert any(
        line.endswith("  [anon 0x1000]") for line in lines(capsys, "functions", *words, "--by", "module")
    )
    found = [row["module"] for row in rows(capsys, "functions", *words, "--by", "module")]
    assert "[anon 0x1000]" in found
    assert any("[anon 0x1000]+0x6 (0x1006()" in line for line in lines(capsys, "calls", *words, "--rva"))


def test_memory_is_selected_by_its_name(
    memory: list[str], loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = lines(capsys, "branches", *memory)
    assert lines(capsys, "branches", *memory, "--module", f"[anon {loop.BASE:#x}]") == everything
    assert main(["branches", *memory, "--module", "[anon 0x10]"]) == 2
    assert f"[anon {loop.BASE:#x}]" in capsys.readouterr().err


def test_tables_name_memory(loop: Any, loop_trace: Any) -> None:
    module = f"[anon {loop.BASE:#x}]"
    assert set(loop_trace.blocks()["module"].tolist()) == {module}
    assert loop_trace.modules([loop.JMP, 0]) == [module, None]
    assert loop_trace.mappings()["module"].tolist() == [module]
    assert loop_trace.locate([loop.JMP]).file.tolist() == [None]
    assert loop_trace.symbolize([loop.JMP], modules=True) == [f"{module}+{loop.JMP - loop.BASE:#x}"]


def test_memory_of_processes_is_told_apart() -> None:
    bundle = ptkit._core.Bundle()
    for number in (1, 2):
        before = 16 * (number - 1)
        bundle.add_space(pid=number)
        bundle.add_code(0x1000 - before, bytes(before) + CALLER, space=number)
        bundle.add_stream(caller(0x1000), space=number, pid=number)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    table = trace.functions("module")
    found = {
        name: count
        for name, count in zip(table["module"].tolist(), table["count"].tolist(), strict=True)
        if name
    }
    assert found == {"[anon 0xff0]": 1, "[anon 0x1000]": 1}
    functions = trace.functions("entry").where(entry_ip=0x1006)
    assert sorted(functions["module"].tolist()) == ["[anon 0x1000]", "[anon 0xff0]"]
    assert sorted(functions["function"].tolist()) == ["0x1006", "0x1006"]
