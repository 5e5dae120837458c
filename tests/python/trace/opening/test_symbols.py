"""Names from lists of symbols: nm, maps, WinDbg, JSON profiles; and from imports of PE files."""

from __future__ import annotations

import gzip
import json
import lzma
import warnings
from pathlib import Path
from typing import Any

import pytest
from small_pe import pe, pe_with_import
from warned import of_code, trace_warnings, warned

import ptkit
from ptkit.cli import main

LOAD = 0xFFFFF80685380000
IDA = """
 Start         Length     Name                   Class
 0001:00000000 000001000H .text                  CODE

  Address         Publics by Value

 0001:00000000       again
 0001:00000004       leave
"""


def moved(loop: Any, base: int) -> Any:
    """The loop program at another address."""
    return type("Moved", (loop,), {"BASE": base, "JNZ": base + 2, "JMP": base + 4})


@pytest.fixture
def nm(tmp_path: Path, loop: Any) -> Path:
    """What nm prints of the loop program."""
    path = tmp_path / "loop.nm"
    path.write_text(f"{loop.BASE:016x} T again\n{loop.BASE + 4:016x} t leave(int)\n                 U puts\n")
    return path


def test_lists_name_code_of_no_file(loop: Any, open_trace: Any, nm: Path) -> None:
    trace = open_trace(loop.stream(5), images=loop.images(), symbols=[nm])
    branches = trace.branches(columns=["from_symbol", "kind"])
    assert set(branches["from_symbol"].tolist()) == {"again", "leave"}
    assert set(branches["from_symbol_full"].tolist()) == {"again", "leave(int)"}
    assert len(trace.branches(symbol="leave")) == len(trace.branches(ip=loop.JMP)) > 0
    assert trace.symbolize([loop.BASE + 2]) == ["again+0x2"]
    assert trace.symbols("again") == [("again", loop.BASE, 4)]
    assert str(nm) in [path for path, _ in trace.info.files]
    with pytest.raises(ptkit.SymbolError, match="no symbol 'agin'; did you mean again"):
        trace.branches(symbol="agin")


@pytest.mark.parametrize("given", ["name", "base", "pages"])
def test_lists_of_modules_go_to_their_address(given: str, tmp_path: Path, loop: Any, open_trace: Any) -> None:
    driver, listed = tmp_path / "driver.sys", tmp_path / "driver.map"
    driver.write_bytes(pe(loop.CODE, 0x140000000))
    listed.write_text(IDA)
    program = moved(loop, LOAD + 0x1000)
    images: Any = [{program.BASE: program.CODE}] if given == "pages" else [(driver, LOAD)]
    symbols: Any = [listed] if given == "name" else [(listed, LOAD)]
    trace = open_trace(program.stream(5), images=images, symbols=symbols)
    jumps = trace.branches(kind="JUMP_INDIRECT")
    assert set(jumps["from_symbol"].tolist()) == {"leave"}
    assert len(trace.branches(symbol="leave")) == len(trace.branches(ip=program.JMP)) > 0
    module = f"[anon {program.BASE:#x}]" if given == "pages" else "driver.sys"
    assert set(jumps["from_module"].tolist()) == {module}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_profiles_may_be_packed(pack: Any, tmp_path: Path, loop: Any, open_trace: Any) -> None:
    path = tmp_path / "kernel.json.xz"
    symbols = {"symbols": {"again": {"address": 0x1000}, "leave": {"address": 0x1004}}}
    path.write_bytes(pack(json.dumps(symbols).encode()))
    program = moved(loop, LOAD + 0x1000)
    trace = open_trace(program.stream(2), images=program.images(), symbols=[(path, LOAD)])
    assert trace.symbolize([program.JMP]) == ["leave"]


def test_lists_may_be_utf_16(loop: Any, open_trace: Any, nm: Path) -> None:
    nm.write_bytes(nm.read_text().encode("utf-16"))
    trace = open_trace(loop.stream(2), images=loop.images(), symbols=str(nm))
    assert trace.symbolize([loop.BASE]) == ["again"]


def test_modules_of_windbg_load_images_and_names(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    log, driver = tmp_path / "windbg.log", tmp_path / "driver.sys"
    driver.write_bytes(pe(loop.CODE, 0x140000000))
    log.write_text(
        "start             end                 module name\n"
        "fffff806`85380000 fffff806`85390000   driver     (deferred)\n"
        "fffff803`61a00000 fffff803`62a46000   nt         (pdb symbols)\n\n"
        "fffff806`85381004 driver!leave (void)\n"
    )
    program = moved(loop, LOAD + 0x1000)
    trace = open_trace(program.stream(3), images=[driver], symbols=[log])
    assert set(trace.branches(kind="JUMP_INDIRECT")["from_symbol"].tolist()) == {"leave"}
    kernel = 0xFFFFF80361A01234
    assert trace.symbolize([kernel], modules=True) == ["[nt]+0x1234"]
    assert trace.locate([kernel]).rva.tolist() == [0x1234]
    assert "nt" in trace.mappings()["module"]
    assert len(trace.branches(module="driver")) == len(trace.branches()) > 0
    assert len(trace.branches(module="nt")) == 0


def test_saved_traces_keep_lists(loop: Any, open_trace: Any, nm: Path, tmp_path: Path) -> None:
    trace = open_trace(loop.stream(5), images=loop.images(), symbols=[nm])
    trace.save(tmp_path / "saved.ptk")
    nm.unlink()
    again = open_trace(tmp_path / "saved.ptk")
    assert again.branches()["from_symbol"].tolist() == trace.branches()["from_symbol"].tolist()
    assert again.symbolize([loop.JMP]) == ["leave(int)"]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("{:x} {:x} Ljava/lang/String;::charAt", "Ljava/lang/String;::charAt"),
        ("0x{:016x} 0x{:016x} char java.lang.String.charAt(int)", "java.lang.String.charAt"),
        ("{:016X} {:x} void [app] App.Program::Main(string[])[Tier0]", "App.Program::Main"),
    ],
    ids=["perf-map-agent", "DumpPerfMapAtExit", "PerfMapEnabled"],
)
def test_maps_of_jit_code_beside_a_recording(
    form: str, name: str, tmp_path: Path, loop: Any, open_trace: Any
) -> None:
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    for pid in (11, 22):
        bundle.add_space(pid=pid, cr3=pid << 12)
    bundle.add_code(loop.BASE, loop.CODE)
    for space, pid in ((1, 11), (2, 22)):
        bundle.add_stream(loop.stream(5), space=space, pid=pid, tid=pid)
    ptkit.Trace(bundle, ptkit.decode.Settings()).save(tmp_path / "saved.ptk")
    text = form.format(loop.BASE, len(loop.CODE))
    (tmp_path / "perf-22.map").write_text(f"{text}\n{form.format(loop.BASE + 0x1000, 8)}\n")
    trace = open_trace(tmp_path / "saved.ptk", symbols=[tmp_path / "perf-22.map"])
    branches = trace.branches(symbol=name)
    assert 0 < len(branches) == len(trace.branches(pid=22))
    assert set(branches["pid"].tolist()) == {22}
    others = trace.branches(pid=11, columns=["from_symbol"])["from_symbol"].tolist()
    assert others == [None] * len(branches)
    (shown,) = set(branches["from_symbol_full"].tolist())
    assert text.endswith(shown)
    assert shown in trace.functions(pid=22)["function_full"].tolist()


def test_lists_that_cannot_be_used_are_refused(tmp_path: Path, loop: Any, open_trace: Any, nm: Path) -> None:
    def opened(symbols: Any) -> Any:
        return open_trace(loop.stream(2), images=loop.images(), symbols=symbols)

    text = tmp_path / "text.txt"
    text.write_text("no list\nof symbols\n")
    with pytest.raises(ptkit.FormatError, match=r"text\.txt: is a text file and no list of symbols .* give"):
        opened([text])
    listed = tmp_path / "libother.so.nm"
    listed.write_text("0000000000000010 T f\n")
    with pytest.raises(ptkit.ConfigError, match=r"neither code there nor a module libother\.so.*FILE@BASE"):
        opened([listed])
    with pytest.raises(ptkit.OpenError, match="no such file"):
        opened([tmp_path / "absent.nm"])
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(gzip.compress(b"{" * 1000)[:-9])
    with pytest.raises(ptkit.FormatError, match="cannot be unpacked"):
        opened([cut])
    for wrong in (7, b"x", [7], [(nm, -1)], [(nm, 1, -2)], [(nm, 1, 2, 3)], [""]):
        with pytest.raises((ptkit.ConfigError, ptkit.OpenError)):
            opened(wrong)


def test_lists_of_no_code_are_warned_of(loop: Any, nm: Path) -> None:
    with warned("SYMBOLS_ELSEWHERE", 2):
        ptkit.open(loop.stream(2), cpu="6/142/9", images=loop.images(), symbols=[(nm, 0x7000_0000)])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ptkit.open(loop.stream(2), cpu="6/142/9", images=loop.images(), symbols=[nm])
    assert of_code(trace_warnings(said), "SYMBOLS_ELSEWHERE") == []


def test_verbs_print_names_of_lists(
    loop: Any, nm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream, code = tmp_path / "raw.pt", tmp_path / "code"
    stream.write_bytes(loop.stream(3))
    code.write_bytes(loop.CODE)
    words = [str(stream), "--processor", "6/142/9", "--code", f"{code}@{loop.BASE:#x}"]
    assert main(["branches", *words, "--symbols", str(nm), "--symbol", "leave"]) == 0
    assert "leave(int) -> again" in capsys.readouterr().out
    assert main(["instructions", *words, "--symbols", f"{nm}@{loop.BASE & ~0xFFFF:#x}", "--limit", "1"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("again")
    assert main(["edges", *words, "--symbols", str(nm)]) == 0
    assert "again" in capsys.readouterr().out
    assert main(["branches", *words, "--symbols", str(nm), "--symbol", "agin"]) == 2
    assert "no symbol 'agin'; did you mean again" in capsys.readouterr().err


@pytest.fixture
def leaving(tmp_path: Path, packets: Any, open_trace: Any) -> Any:
    """A driver that calls a function that it imports, traced by its own range: the target is not recorded."""
    call = bytes.fromhex("ff15") + (0x1100 - 0x1006).to_bytes(4, "little")
    back = LOAD + 0x1006
    path = tmp_path / "driver.sys"
    path.write_bytes(pe_with_import(call + b"\x90\xc3", 0x140000000, "ExpInterlockedPopEntrySList"))
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND
    stream += packets.pge(LOAD + 0x1000) + packets.TIP_PGD + packets.pge(back) + packets.TIP_PGD
    return open_trace(stream, images=[(path, LOAD)], ranges=[("filter", LOAD, LOAD + 0x1FFF)])


def test_interrupts_before_calls_through_import_slots_have_no_names(
    tmp_path: Path, packets: Any, open_trace: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    call = bytes.fromhex("ff15") + (0x1100 - 0x1006).to_bytes(4, "little")
    path = tmp_path / "driver.sys"
    path.write_bytes(pe_with_import(call + b"\x90\xc3", 0x140000000, "ExpInterlockedPopEntrySList"))
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND
    stream += packets.pge(LOAD + 0x1000) + packets.fup(LOAD + 0x1000) + packets.TIP_PGD
    trace = open_trace(stream, images=[(path, LOAD)])
    branches = trace.branches(columns=["kind", "to_symbol"])
    assert branches["kind"].tolist() == [ptkit.BranchKind.ASYNC]
    assert branches["to_symbol"].tolist() == [None]
    trace.save(tmp_path / "driver.ptk")
    words = [str(tmp_path / "driver.ptk"), "--image", f"{path}@{LOAD:#x}"]
    for command in (["branches"], ["branches", "--json"], ["packets", "--branches"], ["edges"]):
        assert main([command[0], *words, *command[1:]]) == 0
        said = capsys.readouterr().out
        assert "sync" in said.lower() or command == ["edges"]
        assert "ExpInterlockedPopEntrySList" not in said


def test_calls_through_import_slots_have_names(
    leaving: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = leaving.branches(kind="CALL_INDIRECT", columns=["from_ip", "to_ip", "to_symbol", "flags"])
    assert calls["to_symbol"].tolist() == ["ExpInterlockedPopEntrySList"]
    assert calls["to_known"].tolist() == [False]
    assert leaving.branches(kind="RETURN")["to_symbol"].tolist() == [None]
    # Without the source of the branch there is no import to look up, but the target has its name.
    alone = leaving.branches(columns=["to_ip", "space", "tsc", "tsc_error"])
    assert "to_symbol" in alone.available
    assert alone["to_symbol"].tolist() == [None, None]
    assert leaving.branches(columns=["to_symbol"])["to_symbol"].tolist()[0] == "ExpInterlockedPopEntrySList"
    leaving.save(tmp_path / "driver.ptk")
    # A bundle has the code and names of functions; imports are in the file.
    words = [str(tmp_path / "driver.ptk"), "--image", f"{tmp_path / 'driver.sys'}@{LOAD:#x}"]
    assert main(["branches", *words]) == 0
    (call,) = [line for line in capsys.readouterr().out.splitlines() if "call_indirect" in line]
    assert call.endswith("-> ExpInterlockedPopEntrySList")
    assert main(["branches", *words, "--json", "--kind", "call_indirect"]) == 0
    row = json.loads(capsys.readouterr().out.splitlines()[1])
    assert (row["to_ip"], row["to_symbol"]) == (None, "ExpInterlockedPopEntrySList")
