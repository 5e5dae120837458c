"""Counts of packets; and which instruction set makes them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import ptkit

PSB = bytes.fromhex("0282") * 8
STREAM = (
    b"\x55"
    + PSB
    + bytes.fromhex("0223 06 1c 0000000000 6d001040000000")
    + bytes(100)
    + b"\x05"
    + PSB
    + b"\x06"
)


def counted(table: ptkit.Table) -> dict[ptkit.PacketKind, int]:
    """Rows by kind, every byte of a PAD run as one."""
    pads = table["kind"] == ptkit.PacketKind.PAD
    kinds, counts = np.unique(table["kind"], return_counts=True)
    result = {ptkit.PacketKind(kind): int(count) for kind, count in zip(kinds, counts, strict=True)}
    if pads.any():
        result[ptkit.PacketKind.PAD] = int(table["size"][pads].sum())
    return result


def test_counts_are_those_of_the_rows() -> None:
    for sync in (False, True):
        table = ptkit.packets(STREAM, sync=sync)
        counts = ptkit.packet_counts(STREAM, sync=sync)
        assert dict(counts) == counted(table)
        assert counts.errors == len(table.errors)
        tnt = table["kind"] == ptkit.PacketKind.TNT_8
        assert counts.tnt_bits == table["payload2"][tnt].sum()
    assert counts[ptkit.PacketKind.PSB] == 2
    assert counts[ptkit.PacketKind.PTW] == 0
    assert ptkit.PacketKind.PTW not in list(counts)
    assert (counts.errors, counts.lost_bytes) == (1, 2)
    assert counts.last_ip == 0
    assert "PAD" in str(counts)
    assert "tnt_bits" in str(counts)


def test_counts_of_a_trace() -> None:
    with pytest.warns(ptkit.PtkitWarning):
        trace = ptkit.open(STREAM)
    assert dict(trace.packet_counts()) == counted(trace.packets(columns=["kind", "size"]))
    assert trace.packet_counts(stream=0) == trace.packet_counts()
    with pytest.raises(ptkit.ConfigError, match="stream"):
        trace.packet_counts(stream=1)


def test_rows_are_the_same_with_and_without_times() -> None:
    plain = ptkit.packets(STREAM * 50, columns=["offset", "size", "kind", "ip", "payload", "payload2"])
    timed = ptkit.packets(STREAM * 50)
    for name in plain.columns:
        assert (plain[name] == timed[name]).all(), name
    parts = ptkit.packets(STREAM * 50, columns=["offset"])
    assert (parts["offset"] == timed["offset"]).all()


@pytest.mark.parametrize("name", ["sse9", "AVX512"])
def test_an_unknown_instruction_set_is_an_error(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import ptkit"],
        env=os.environ | {"PTKIT_FORCE_ISA": name},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ConfigError" in done.stderr
    assert f"PTKIT_FORCE_ISA={name} cannot be had" in done.stderr


def test_the_command_line_says_it_on_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ptkit", "info", "nothing"],
        env=os.environ | {"PTKIT_FORCE_ISA": "mmx"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("ptkit: error: ")
    assert done.stderr.count("\n") == 1
    assert "PTKIT_FORCE_ISA=mmx cannot be had" in done.stderr
    assert "scalar" in done.stderr


def test_every_instruction_set_gives_the_same() -> None:
    code = f"import ptkit; print(dict(ptkit.packet_counts(bytes.fromhex('{(STREAM * 20).hex()}'))))"
    outputs = set()
    for name in ("scalar", "avx512"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PTKIT_FORCE_ISA": name},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            assert "cannot be had" in done.stderr
            assert name != "scalar"
            continue
        outputs.add(done.stdout)
    assert len(outputs) == 1
