"""Raw bytes and code out of a recording, and hit counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import ptk_chunks
import pytest
from small_elf import elf

import ptkit
from ptkit.cli.main import main

COLUMNS = ["from_ip", "to_ip", "kind", "taken"]


def same_rows(one: Any, other: Any) -> bool:
    left, right = one.branches(columns=COLUMNS), other.branches(columns=COLUMNS)
    return len(left) == len(right) and all(np.array_equal(left[name], right[name]) for name in COLUMNS)


def test_raw_bytes_are_those_of_the_stream(loop: Any, loop_trace: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    done = loop_trace.export(path, "raw")
    whole = loop_trace.stream_bytes()
    assert path.read_bytes() == whole
    assert done.bytes == len(whole)
    assert loop_trace.stream_bytes(0, offset=3, size=5) == whole[3:8]
    assert loop_trace.stream_bytes(offset=len(whole), size=5) == b""


def test_raw_bytes_and_code_decode_again(loop: Any, loop_trace: Any, tmp_path: Path) -> None:
    loop_trace.export(tmp_path / "x.pt", "raw")
    loop_trace.export(tmp_path / "code", "code")
    index = json.loads((tmp_path / "code" / "index.json").read_text())
    assert index["format"] == "ptkit code"
    (region,) = index["regions"]
    assert region["module"] == f"[anon {loop.BASE:#x}]"
    assert (region["address"], region["rva"], region["version"]) == (hex(loop.BASE), "0x0", 1)
    assert {int(ip, 16) for ip in region["blocks"]} == set(loop_trace.blocks()["ip"].tolist())
    code = (tmp_path / "code" / region["file"]).read_bytes()
    assert (code, len(code)) == (loop.CODE, region["size"])
    again = ptkit.open(tmp_path / "x.pt", images={int(region["address"], 16): code}, cpu="6/142/9")
    assert same_rows(loop_trace, again)


def test_code_of_files_is_written_by_region(tmp_path: Path, spaces: Any) -> None:
    done = spaces.export(tmp_path / "code", "code")
    index = json.loads(Path(done.files[0]).read_text())
    assert [Path(one["module"]).name for one in index["regions"]] == ["shared_fn", "alpha_fn", "beta_fn"]
    assert [(one["space"], one["pid"]) for one in index["regions"]] == [(0, None), (1, 1), (2, 2)]
    assert len({one["file"] for one in index["regions"]}) == 3
    spaces.export(tmp_path / "code", "code", pid=2)  # replaces the folder
    names = {path.name for path in (tmp_path / "code").iterdir()}
    assert len(names) == 2
    assert "index.json" in names


def test_versions_of_code_are_files_of_their_own(tmp_path: Path, loop: Any) -> None:
    """JIT code that is replaced during the trace."""
    other = loop.CODE.replace(bytes.fromhex("ffc9"), bytes.fromhex("ffc1"))  # inc ecx instead of dec ecx
    stream = loop.stream(2, tsc=100, step=10) + loop.stream(2, tsc=300, step=10)
    space = {"space": 1}
    path = ptk_chunks.write(
        tmp_path / "jit.ptk",
        [
            ptk_chunks.process(0, 7, 1, stream),
            ptk_chunks.code(loop.BASE, loop.CODE, times=(0, 200), **space),
            ptk_chunks.code(loop.BASE, other, times=(200, ptk_chunks.LAST), **space),
        ],
    )
    with pytest.warns(ptkit.PtkitWarning, match="has no end"):
        trace = ptkit.open(path, cpu="6/142/9")
    done = trace.export(tmp_path / "code", "code")
    index = json.loads(Path(done.files[0]).read_text())
    assert [one["version"] for one in index["regions"]] == [1, 2]
    assert [(one["tsc_from"], one["tsc_to"]) for one in index["regions"]] == [(None, "0xc8"), ("0xc8", None)]
    contents = [(tmp_path / "code" / one["file"]).read_bytes() for one in index["regions"]]
    assert contents == [loop.CODE, other]


def test_other_folders_are_not_replaced(tmp_path: Path, loop_trace: Any) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ptkit.ConfigError, match="no part of an export of code, such as notes"):
        loop_trace.export(tmp_path / "mine", "code")
    for _ in range(2):
        loop_trace.export(tmp_path / "again", "code")
    (tmp_path / "again" / "a.i64").write_text("mine")
    with pytest.raises(ptkit.ConfigError, match=r"such as a\.i64"):
        loop_trace.export(tmp_path / "again", "code")
    assert (tmp_path / "again" / "a.i64").read_text() == "mine"
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ptkit.ConfigError, match="is no folder"):
        loop_trace.export(tmp_path / "file", "code")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_several_streams_need_a_choice(
    tmp_path: Path, spaces: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ptkit.ConfigError, match=r"3 streams; choose one by its number.*0: .*2: "):
        spaces.export(tmp_path / "x.pt", "raw")
    with pytest.raises(ptkit.ConfigError, match="stream"):
        spaces.stream_bytes(3)
    spaces.export(tmp_path / "x.pt", "raw", stream=2)
    assert (tmp_path / "x.pt").read_bytes() == spaces.stream_bytes(2)
    spaces.save(tmp_path / "x.ptk")
    words = ["export", str(tmp_path / "x.ptk"), "--format", "raw", "-o", str(tmp_path / "y.pt")]
    assert main(words) == 2
    assert "--stream N" in capsys.readouterr().err
    assert main([*words, "--stream", "1", "--stream", "2"]) == 2
    assert main([*words, "--stream", "1"]) == 0
    assert (tmp_path / "y.pt").read_bytes() == spaces.stream_bytes(1)
    assert main([*words, "--stream", "1", "--module", "alpha_fn"]) == 2
    assert "--module does not go with --format raw" in capsys.readouterr().err


def test_branch_records_have_no_packets(tmp_path: Path) -> None:
    trace = ptkit.open_branches({"from_ip": [0x1000], "to_ip": [0x2000]})
    with pytest.raises(ptkit.UnsupportedError, match="stream 0 has branch records"):
        trace.export(tmp_path / "x.pt", "raw")
    assert not (tmp_path / "x.pt").exists()


def test_long_streams_are_not_held_in_memory(tmp_path: Path) -> None:
    """A stream that is packed to some KiB in the recording."""
    piece, pieces = 8 << 20, 64
    psb = bytes.fromhex("0282" * 8)
    chunks = [ptk_chunks.words("STRM", 0, id=0), ptk_chunks.chunk("DATA", psb, 0)]
    chunks += [ptk_chunks.zeros("DATA", piece, 0, len(psb) + i * piece) for i in range(pieces)]
    path = ptk_chunks.write(tmp_path / "long.ptk", chunks)
    source = (
        "import resource, sys, ptkit\n"
        "trace = ptkit.open(sys.argv[1])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "done = trace.export(sys.argv[2], 'raw')\n"
        "print(done.bytes, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)\n"
    )
    out = tmp_path / "long.pt"
    words = [sys.executable, "-W", "ignore", "-c", source, str(path), str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    written, grown = map(int, done.stdout.split())
    assert written == out.stat().st_size == piece * pieces + len(psb)
    assert grown < piece * pieces // 4


def test_hits_are_executions(loop: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.out").write_bytes(elf(loop.CODE, loop.BASE, "spin"))
    (tmp_path / "raw.pt").write_bytes(loop.stream(50))
    words = ["export", str(tmp_path / "raw.pt"), "--image", str(tmp_path / "a.out"), "--processor", "6/142"]
    out = tmp_path / "x.txt"
    assert main([*words, "--format", "offsets", "--hits", "-o", str(out)]) == 0
    trace = ptkit.open(tmp_path / "raw.pt", images=[tmp_path / "a.out"], cpu="6/142")
    ips, counts = np.unique(trace.instructions()["ip"], return_counts=True)
    executed = dict(zip(ips.tolist(), counts.tolist(), strict=True))
    found = dict(line.split() for line in out.read_text().splitlines())
    assert {loop.BASE + int(name.partition("+")[2], 16): int(count) for name, count in found.items()} == {
        ip: executed[ip] for ip in np.unique(trace.blocks()["ip"]).tolist()
    }
    assert main([*words, "--format", "offsets", "-o", str(out)]) == 0
    assert out.read_text().split() == list(found)
    assert main([*words, "--format", "drcov", "--hits", "-o", str(out)]) == 2
    assert "--hits is for --format offsets" in capsys.readouterr().err


def test_hits_of_rows_without_a_time(tmp_path: Path, loop: Any) -> None:
    """Code that is known from a later time on."""
    chunks = [
        ptk_chunks.process(0, 7, 1, loop.stream(5)),
        ptk_chunks.code(loop.BASE, loop.CODE, times=(200, ptk_chunks.LAST), space=1),
    ]
    with pytest.warns(ptkit.PtkitWarning, match="has no end"):
        trace = ptkit.open(ptk_chunks.write(tmp_path / "x.ptk", chunks), cpu="6/142/9")
    trace.export(tmp_path / "x.txt", "offsets", hits=True)
    found = [line.rsplit(" ", 1) for line in (tmp_path / "x.txt").read_text().splitlines()]
    ips, counts = np.unique(trace.instructions()["ip"], return_counts=True)
    executed = dict(zip(ips.tolist(), counts.tolist(), strict=True))
    blocks = np.unique(trace.blocks()["ip"]).tolist()
    assert [int(count) for _, count in found] == [executed[ip] for ip in blocks]


def test_hits_count_blocks_that_overlap(packets: Any, loop: Any, tmp_path: Path) -> None:
    """The first row of a loop covers its body as well."""
    code = bytes.fromhex("90 90 ff c9 75 fb f4")  # nop; 0x1001: nop; dec ecx; jnz 0x1001; hlt
    stream = loop.header(None, 100) + packets.pge(0x1000) + packets.tnt("111110")
    trace = ptkit.open(stream, images={0x1000: code}, cpu="6/142")
    trace.export(tmp_path / "x.txt", "offsets", hits=True)
    ips, counts = np.unique(trace.instructions()["ip"], return_counts=True)
    executed = dict(zip(ips.tolist(), counts.tolist(), strict=True))
    found = dict(line.rsplit(" ", 1) for line in (tmp_path / "x.txt").read_text().splitlines())
    assert executed[0x1001] == 6
    assert found["[anon 0x1000]+1"] == "6"
    assert found["[anon 0x1000]+0"] == "1"
