"""Images that the user gives: of all processes or of one, as on disk or as in memory."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_pe import in_memory, pe, pe32_driver, pe_with_import

import ptkit
from ptkit import _core
from ptkit.cli import main
from ptkit.cli.addresses import image_at
from ptkit.trace.opening.images import CodeFile

_BASE = 0x1_4000_0000
_CODE = _BASE + 0x1000
_A, _B = 0x1_001A_D000, 0x2_0002_B000  # CR3
_ONE = bytes.fromhex("ffc975fcffe0")  # again: dec ecx; jnz again; jmp rax
_OTHER = bytes.fromhex("48ffc975fbffe0")  # the same with rcx: its branches are one byte further on
_ENGINES = ["ptkit", "simple", *(["libipt"] if "libipt" in _core.engines() else [])]


def _pip(cr3: int) -> bytes:
    return b"\x02\x43" + (cr3 >> 5 << 1).to_bytes(6, "little")


def _processes(packets: Any, turns: list[tuple[int, int]]) -> bytes:
    """Processes in turn, each behind a PSB+ of its own: (CR3, rounds of its loop)."""
    stream = b""
    for cr3, rounds in turns:
        stream += packets.PSB + packets.MODE_64 + _pip(cr3) + packets.PSBEND + packets.pge(_CODE)
        stream += (packets.tnt("10") + packets.tip(_CODE)) * rounds + packets.fup(_CODE) + packets.TIP_PGD
    return stream


_TURNS = [(_A, 4), (_B, 5), (_A, 6)]
_ROUNDS = {_A: 10, _B: 5}  # of each
_JNZ = {_A: _CODE + 2, _B: _CODE + 3}


@pytest.fixture
def programs(tmp_path: Path) -> dict[int, Path]:
    """Two programs at one base, by CR3."""
    found = {}
    for cr3, name, code in ((_A, "a.exe", _ONE), (_B, "b.exe", _OTHER)):
        found[cr3] = tmp_path / name
        found[cr3].write_bytes(pe(code, _BASE, 0x2000))
    return found


def _check(trace: Any) -> None:
    assert trace.errors.messages() == []
    jumps = trace.branches(kind="COND", columns=["from_ip"])["from_ip"].tolist()
    assert jumps == [_JNZ[cr3] for cr3, rounds in _TURNS for _ in range(2 * rounds)]


@pytest.mark.parametrize("engine", _ENGINES)
@pytest.mark.parametrize("form", ["files", "code", "one of all"])
def test_images_of_two_processes_at_one_address(
    programs: dict[int, Path], packets: Any, open_trace: Any, engine: str, form: str
) -> None:
    images: list[Any] = [(path, _BASE, cr3) for cr3, path in programs.items()]
    if form == "code":  # CR3 as it is written with PCID and the bit that keeps translations
        images = [(_ONE, _CODE, _A | 0x5), (_OTHER, _CODE, 1 << 63 | _B | 0xFFF)]
    elif form == "one of all":  # that of the process wins
        images = [(programs[_B], _BASE, _B), programs[_A]]
    _check(open_trace(_processes(packets, _TURNS), images=images, engine=engine))


def test_rows_of_threads_are_those_of_one(programs: dict[int, Path], packets: Any, open_trace: Any) -> None:
    stream = _processes(packets, _TURNS * 3000)
    images = [(path, _BASE, cr3) for cr3, path in programs.items()]
    slow = open_trace(stream, images=images, engine="simple", threads=1)
    fast = open_trace(stream, images=images, threads=4)
    for table in ("branches", "edges"):
        one, other = getattr(slow, table)(), getattr(fast, table)()
        assert len(one) == len(other) > 0
        for column in ("from_ip", "to_ip", "space"):
            assert np.array_equal(one[column], other[column]), (table, column)
    assert slow.branches(columns=["from_ip"]).errors.messages() == []


def _threads(packets: Any) -> bytes:
    """The same with DRAKVUF's annotations: thread 11 of the first process, 22 of the second."""
    stream = packets.PSB + packets.MODE_64 + packets.PSBEND
    for cr3, rounds in _TURNS:
        for command, number in ((0xC3000000, cr3 & 0xFFFFFFFF), (0x1D000000, {_A: 11, _B: 22}[cr3])):
            stream += b"\x02\x32" + struct.pack("<II", number, command)
        stream += _pip(cr3) + packets.pge(_CODE)
        stream += (packets.tnt("10") + packets.tip(_CODE)) * rounds + packets.fup(_CODE) + packets.TIP_PGD
    return bytes(stream)


def test_names_and_exports_follow_the_process(
    programs: dict[int, Path], packets: Any, open_trace: Any, tmp_path: Path
) -> None:
    recording = tmp_path / "ipt" / "ipt_stream_vcpu0"
    recording.parent.mkdir()
    recording.write_bytes(_threads(packets))
    for name in ("a", "b"):
        (tmp_path / f"{name}.exe.nm").write_text(f"{_CODE:016x} T of_{name}\n")
    (tmp_path / "other.nm").write_text("0000000000001000 T of_process_a\n")
    trace = open_trace(
        recording,
        images=[(path, _BASE, cr3) for cr3, path in programs.items()],
        symbols=[tmp_path / "a.exe.nm", (tmp_path / "b.exe.nm", _BASE)],
    )
    for cr3, name in ((_A, "a"), (_B, "b")):
        rows = trace.branches(cr3=cr3, columns=["from_symbol", "from_module"])
        assert {text.split("+")[0] for text in rows["from_symbol"].tolist()} == {f"of_{name}"}
        assert {Path(text).name for text in rows["from_module"].tolist()} == {f"{name}.exe"}
        assert len(trace.branches(module=f"{name}.exe")) == len(rows)
        assert len(trace.branches(symbol=f"of_{name}")) == len(rows)
    assert trace.format == "drakvuf"
    _check(trace)
    assert {"of_a", "of_b"} <= set(trace.functions()["function"].tolist())
    mapped = trace.mappings()
    assert sorted(zip(mapped["address"].tolist(), mapped["space"].tolist(), strict=True)) == [
        (_CODE, 1),
        (_CODE, 2),
    ]
    trace.export(tmp_path / "offsets.txt", "offsets")
    lines = (tmp_path / "offsets.txt").read_text().split()
    assert {line.split("+")[0] for line in lines} == {"a.exe", "b.exe"}
    named = open_trace(
        recording,
        images=[(path, _BASE, cr3) for cr3, path in programs.items()],
        symbols=[(tmp_path / "other.nm", _BASE, _A)],
    )
    assert set(named.branches(cr3=_B, columns=["from_symbol"])["from_symbol"].tolist()) == {None}
    assert all(named.branches(cr3=_A, columns=["from_symbol"])["from_symbol"].tolist())


def test_saved_traces_keep_processes(
    programs: dict[int, Path], packets: Any, open_trace: Any, tmp_path: Path
) -> None:
    images = [(path, _BASE, cr3) for cr3, path in programs.items()]
    open_trace(_processes(packets, _TURNS), images=images).save(tmp_path / "saved.ptk")
    _check(open_trace(tmp_path / "saved.ptk"))


def test_coverage_of_two_processes(programs: dict[int, Path], packets: Any) -> None:
    decoder = ptkit.CoverageDecoder([(path, _BASE, cr3) for cr3, path in programs.items()])
    result = decoder.decode(_processes(packets, _TURNS))
    assert result.errors == 0
    edges = decoder.edges().where(kind=ptkit.BranchKind.COND)
    counts = dict(zip(edges["from_ip"].tolist(), [0] * len(edges), strict=True))
    for ip, count in zip(edges["from_ip"].tolist(), edges["count"].tolist(), strict=True):
        counts[ip] += count
    assert counts == {_JNZ[cr3]: 2 * rounds for cr3, rounds in _ROUNDS.items()}


@pytest.mark.parametrize("first", ["image", "code"])
@pytest.mark.parametrize("second", ["image", "code"])
@pytest.mark.parametrize("cr3", ["", ",cr3=0x1ad000"])
def test_images_that_overlap_are_refused(
    programs: dict[int, Path],
    packets: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    first: str,
    second: str,
    cr3: str,
) -> None:
    stream = tmp_path / "raw.pt"
    stream.write_bytes(_processes(packets, _TURNS))
    (tmp_path / "one.bin").write_bytes(_ONE)
    words = ["branches", str(stream), "--processor", "6/142/9"]
    named = []
    for kind, path in ((first, programs[_A]), (second, programs[_B])):
        file = path if kind == "image" else path.with_suffix(".bin")
        file.write_bytes(path.read_bytes() if kind == "image" else _ONE)
        words += [f"--{kind}", f"{file}@{_BASE if kind == 'image' else _CODE:#x}{cr3}"]
        named.append(str(file))
    assert main(words) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in named)
    assert f"overlap{' in the address space of CR3 0x1ad000' if cr3 else ''} at {_CODE:#x}-" in said
    assert ("cr3=VALUE" if not cr3 else "CR3 of another process") in said


def test_arrays_of_code_that_overlap_are_refused(packets: Any) -> None:
    images = [(np.frombuffer(_ONE, np.uint8), _CODE), (np.frombuffer(_ONE, np.uint8), _CODE + 1)]
    with pytest.raises(ptkit.ConfigError, match="overlap at 0x"):
        ptkit.open(_processes(packets, _TURNS), images=images)


def test_the_same_image_twice_is_one(programs: dict[int, Path], packets: Any, open_trace: Any) -> None:
    trace = open_trace(_processes(packets, [(_A, 3)]), images=[programs[_A], programs[_A]])
    assert len(trace.branches(kind="COND")) == 6
    assert len(trace.info.files) == 1


def test_processes_on_the_command_line(
    programs: dict[int, Path], packets: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = tmp_path / "raw.pt"
    stream.write_bytes(_processes(packets, _TURNS))
    words = ["branches", str(stream), "--processor", "6/142/9", "--kind", "COND"]
    words += [word for cr3, path in programs.items() for word in ("--image", f"{path},cr3={cr3:#x}")]
    assert main(words) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 * sum(_ROUNDS.values())
    for wrong, said in (
        (",pid=4", "neither cr3=VALUE nor layout"),
        (",cr3=x", "not an address"),
        (",layout=disk", "neither cr3=VALUE nor layout"),
    ):
        with pytest.raises(SystemExit):
            main(["branches", str(stream), "--image", f"{programs[_A]}@{_BASE:#x}{wrong}"])
        assert said in capsys.readouterr().err
    odd = tmp_path / "lib,v=2.so"
    odd.write_bytes(programs[_A].read_bytes())
    assert image_at(f"{odd},cr3=0x1000") == (str(odd), None, 0x1000, None)
    assert main(["branches", str(stream), "--processor", "6/142/9", "--image", str(odd)]) == 0


def test_wrong_items_are_refused(programs: dict[int, Path], packets: Any) -> None:
    stream = _processes(packets, _TURNS)
    for item, said in (
        ((programs[_A], _BASE, -1), "CR3"),
        ((programs[_A], _BASE, "x"), "CR3"),
        ((programs[_A], _BASE, None, "disk"), "layout='disk'"),
        ((_ONE, _CODE, None, "memory"), "only files have a layout"),
        ((programs[_A], _BASE, _A, "file", 1), "none of"),
    ):
        with pytest.raises(ptkit.ConfigError, match=said):
            ptkit.open(stream, images=[item], cpu="6/142/9")


def test_a_cr3_is_refused_where_processes_have_none(loop: Any, tmp_path: Path) -> None:
    bundle = _core.Bundle()
    bundle.add_space(pid=7)
    bundle.add_stream(loop.stream(3), space=1, pid=7, tid=7)
    ptkit.Trace(bundle, ptkit.decode.Settings()).save(tmp_path / "pids.ptk")
    with pytest.raises(ptkit.ConfigError, match="names its processes by PID"):
        ptkit.open(tmp_path / "pids.ptk", images=[(loop.CODE, loop.BASE, 0x1000)])


# --- as in memory ---


def _stream_at(packets: Any, code: int) -> bytes:
    rounds = (packets.tnt("10") + packets.tip(code)) * 3
    return bytes(
        packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(code) + rounds + packets.pgd(code)
    )


@pytest.mark.parametrize("given", ["image", "code", "bytes", "layout"])
def test_dumps_have_the_rows_and_names_of_their_file(
    tmp_path: Path, packets: Any, open_trace: Any, given: str
) -> None:
    at = 0xFFFFF806_5C350000
    file = tmp_path / "driver.sys"
    file.write_bytes(pe_with_import(_ONE, _BASE, "ExpInterlockedPopEntrySList"))
    dump = tmp_path / "dump.bin"
    dump.write_bytes(in_memory(file.read_bytes(), at))
    stream = _stream_at(packets, at + 0x1000)
    expected = open_trace(stream, images=[(file, at)])
    images: dict[str, Any] = {
        "image": (dump, at),
        "code": (CodeFile(str(dump)), at),
        "bytes": (dump.read_bytes(), at),
        "layout": (dump, at, None, "memory"),
    }
    trace = open_trace(stream, images=[images[given]])
    assert trace.errors.messages() == []
    columns = ["from_ip", "to_ip", "kind", "from_module_offset"]
    one, other = expected.branches(columns=columns), trace.branches(columns=columns)
    assert len(one) == 9
    for column in columns:
        assert np.array_equal(one[column], other[column]), column
    name = "image at 0xfffff8065c350000" if given == "bytes" else "dump.bin"
    (module,) = {text.rpartition("/")[2] for text in trace.branches()["from_module"].tolist()}
    assert module == name
    mapped = trace.mappings()
    assert (int(mapped["address"][0]), int(mapped["size"][0])) == (at, 0x2000)  # headers, too


def test_a_dump_is_no_file_if_that_is_said(tmp_path: Path, packets: Any, open_trace: Any) -> None:
    dump = tmp_path / "dump.bin"
    dump.write_bytes(in_memory(pe(_ONE, _BASE, 0x2000)))
    trace = open_trace(_stream_at(packets, _CODE), images=[(dump, _BASE, None, "file")])
    assert len(trace.branches(kind="COND")) == 0  # zeros, not the loop
    assert len(open_trace(_stream_at(packets, _CODE), images=[dump]).branches(kind="COND")) == 6


# --- relocations ---

_LINKED = 0x6E4C0000
_LOADED = 0xF7A10000
# call [slot]; jmp [eax*4 + table]
_DRIVER = (
    b"\xff\x15" + struct.pack("<I", _LINKED + 0x504C) + b"\xff\x24\x85" + struct.pack("<I", _LINKED + 0x2004)
)


def test_instructions_are_those_in_memory(
    tmp_path: Path, packets: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = tmp_path / "driver.sys"
    driver.write_bytes(pe32_driver(_DRIVER, _LINKED, (0x1002, 0x1009)))
    stream = tmp_path / "raw.pt"
    begin = packets.PSB + bytes.fromhex("9902") + packets.PSBEND  # MODE.Exec: 32 bits
    stream.write_bytes(
        begin + packets.pge(_LOADED + 0x1000) + packets.tip(_LOADED + 0x1006) + packets.pgd(_LOADED + 0x1000)
    )
    words = ["instructions", str(stream), "--processor", "6/142/9", "--no-events", "--raw"]

    def printed(*images: str) -> str:
        assert main([*words, *images]) == 0
        return capsys.readouterr().out

    moved = printed("--image", f"{driver}@{_LOADED:#x}")
    assert "call [0xf7a1504c]" in moved
    assert "[eax*4+0xf7a12004]" in moved
    assert "ff 15 4c 50 a1 f7" in moved
    dump = tmp_path / "driver.dmp"
    memory = bytearray(in_memory(driver.read_bytes(), _LOADED))
    for rva in (0x1002, 0x1009):  # a loader of the test's own
        (linked,) = struct.unpack_from("<I", memory, rva)
        struct.pack_into("<I", memory, rva, linked - _LINKED + _LOADED)
    dump.write_bytes(memory)
    of_dump = printed("--image", f"{dump}@{_LOADED:#x}")
    assert of_dump.replace("driver.dmp", "driver.sys") == moved
    trace = ptkit.open(stream, images=[(driver, _LOADED)], cpu="6/142/9")
    code = trace.code(_LOADED + 0x1000, len(_DRIVER))
    assert bytes(code) == bytes(memory[0x1000 : 0x1000 + len(_DRIVER)])
