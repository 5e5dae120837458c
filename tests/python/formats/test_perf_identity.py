"""Recordings by perf and the files that they name: what is believed, and what is not."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from perf_data import stack_file, text_feature
from small_elf import elf

import ptkit

_ARCH = 6
# 401000: nop; 401001: jnz 401000; 401003: call 401010; 401008: ret; 401010: ret
_CODE = bytes.fromhex("90 75fd e808000000 c3").ljust(16, b"\x90") + b"\xc3"
_LOOP = [(0x401001, 0x401000)]
_OUT = [(0x401003, 0x401010), (0x401010, 0x401008)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "p").write_bytes(elf(_CODE, 0x401000, "work"))
    return tmp_path


def _open(folder: Path, branches: list[tuple[int, int]], architecture: str = "x86_64") -> ptkit.Trace:
    path = folder / "perf.data"
    path.write_bytes(stack_file(branches, "/opt/app/p", {_ARCH: text_feature(architecture)}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(path, binaries=[folder / "bin"])


def _codes(trace: ptkit.Trace) -> list[str]:
    return [one.code for one in trace.info.warnings]


@pytest.mark.parametrize("depth", [8, 16, 32])
def test_the_newest_branch_stored_twice_is_one(folder: Path, depth: int) -> None:
    whole = [*_LOOP * (depth - 3), *_OUT]
    twice = _open(folder, [*whole, _OUT[-1]])
    once = _open(folder, whole)
    assert "LBR_NEWEST_TWICE" in _codes(twice)
    assert twice.branches()["to_ip"].tolist() == once.branches()["to_ip"].tolist()
    assert len(twice.instructions()) == len(once.instructions())
    assert len(twice.errors) == 0
    # A loop of one branch repeats.
    assert len(_open(folder, _LOOP * depth).branches()) == depth


def test_a_recording_of_another_architecture_has_branches_alone(folder: Path) -> None:
    own = _open(folder, _LOOP * 3, "x86_64")
    assert len(own.instructions()) > 0
    other = _open(folder, _LOOP * 3, "aarch64")
    assert "ARCHITECTURE_OTHER" in _codes(other)
    assert other.branches()["to_ip"].tolist() == [0x401000] * 3
    assert set(other.branches()["kind"].tolist()) == {int(ptkit.BranchKind.UNKNOWN)}
    assert len(other.instructions()) == 0
    assert len(other.errors) == 0
    with pytest.raises(ptkit.ConfigError, match="the recording is of aarch64"):
        ptkit.open(folder / "perf.data", images=[folder / "bin" / "p"])
