"""Streams and buffers that begin without a PSB, and PSB+ without PSBEND, in every verb and decoder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.analysis.verify import verify

# 1000 call 1007; 1005 jmp rax; 1007 jz 100a; 1009 nop; 100a ret
_CODE = {0x1000: bytes.fromhex("e802000000 ffe0 7401 90 c3")}
_CPU = "6/142/9"
_FOUR = [(0x1000, 0x1007), (0x1007, 0x100A), (0x100A, 0x1005), (0x1005, 0x1000)]


def _region(packets: Any) -> bytes:
    """A region as Linux writes it when it enables tracing again: twice four branches."""
    run = packets.tnt("11") + packets.tip(0x1000) + packets.fup(0x1000) + packets.TIP_PGD
    return bytes((packets.MODE_64 + packets.pge(0x1000) + run) * 2)


def _pairs(table: Any) -> list[tuple[int, int]]:
    known = table["to_known"]
    return list(zip(table["from_ip"][known].tolist(), table["to_ip"][known].tolist(), strict=True))


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
def test_tables_of_a_region(packets: Any, open_trace: Any, engine: str) -> None:
    trace = open_trace(_region(packets), images=_CODE, sync=False, engine=engine)
    branches = trace.branches()
    assert _pairs(branches) == _FOUR * 2
    assert len(trace.errors) == 0
    assert len(trace.gaps) == 0
    assert len(trace.instructions()) == 8
    edges = trace.edges()
    assert sorted(_pairs(edges)) == sorted(_FOUR)
    assert edges["count"].tolist() == [2] * 4
    assert trace.calls()["instructions"].sum() > 0
    assert trace.functions()["count"].sum() > 0


def test_streams_without_a_psb_have_no_rows_by_default(packets: Any, open_trace: Any) -> None:
    trace = open_trace(_region(packets), images=_CODE)
    assert len(trace.branches()) == 0
    assert trace.errors.named("code") == ["NO_SYNC"]


def test_coverage_of_a_region(packets: Any) -> None:
    buffer = np.frombuffer(_region(packets), np.uint8)
    bitmap = np.zeros(65536, np.uint8)
    result = ptkit.CoverageDecoder(_CODE, sync=False).decode(buffer, bitmap)
    assert (result.edges, result.errors, result.gaps, int(bitmap.sum())) == (4, 0, 0, 8)
    assert ptkit.CoverageDecoder(_CODE).decode(buffer).errors == 1


def test_an_index_is_of_one_setting(packets: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.pt"
    path.write_bytes(_region(packets) + packets.PSB + packets.MODE_64 + packets.PSBEND + _region(packets))
    trace = ptkit.open(path, images=_CODE, cpu=_CPU, sync=False)
    trace.index()
    again = ptkit.open(path, images=_CODE, cpu=_CPU, sync=False)
    assert again.info.warnings == ()
    assert len(again.branches(ip=(0x1000, 0x100F))) == len(trace.branches())
    with pytest.warns(ptkit.PtkitWarning, match="other images or settings"):
        ptkit.open(path, images=_CODE, cpu=_CPU)


_VERBS = [
    ["packets"],
    ["branches"],
    ["instructions"],
    ["events"],
    ["functions"],
    ["calls"],
    ["edges"],
    ["tree"],
    ["info", "--decode"],
]


@pytest.mark.parametrize("verb", _VERBS, ids=lambda verb: verb[0])
def test_verbs_take_no_sync(packets: Any, tmp_path: Path, verb: list[str]) -> None:
    path, code = tmp_path / "region.pt", tmp_path / "code.bin"
    path.write_bytes(_region(packets))
    code.write_bytes(_CODE[0x1000])
    command = [sys.executable, "-m", "ptkit", *verb, str(path), "--code", f"{code}@0x1000"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode != 0
    done = subprocess.run([*command, "--no-sync"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stdout.replace("errors: 0\n", "")
    assert done.stdout


def test_info_counts_what_has_no_psb(packets: Any, tmp_path: Path) -> None:
    path, code = tmp_path / "region.pt", tmp_path / "code.bin"
    path.write_bytes(_region(packets))
    code.write_bytes(_CODE[0x1000])
    command = [sys.executable, "-m", "ptkit", "info", "--decode", "--json", "--no-sync", str(path)]
    done = subprocess.run([*command, "--code", f"{code}@0x1000"], capture_output=True, text=True, check=True)
    assert '"instructions": 8' in json.dumps(json.loads(done.stdout))


def test_verify_says_that_libipt_needs_a_psb(packets: Any, open_trace: Any) -> None:
    trace = open_trace(_region(packets), images=_CODE, sync=False)
    with pytest.raises(ptkit.UnsupportedError, match="PSB"):
        verify(trace)


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
def test_psb_without_psbend(packets: Any, open_trace: Any, engine: str) -> None:
    piece = packets.PSB + packets.MODE_64 + packets.pge(0x1000)
    piece += packets.tnt("11") + packets.tip(0x1000) + packets.fup(0x1000) + packets.TIP_PGD
    trace = open_trace(piece * 2, images=_CODE, engine=engine)
    assert _pairs(trace.branches()) == _FOUR * 2
    assert trace.errors.named("code") == ["UNEXPECTED_PACKET"] * 2
    assert len(trace.gaps) == 0
    flags = trace.packets().where(kind=["MODE_EXEC", "TIP_PGE"])["in_psb"].tolist()
    assert flags == [True, False] * 2
