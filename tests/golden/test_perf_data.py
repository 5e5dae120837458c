"""Recordings of perf in the emulated machine, opened with ptkit.open(): recordings/README.md."""

from __future__ import annotations

import lzma
import warnings
from pathlib import Path

import numpy as np
import pytest
from reduced import unpack
from warned import warned

import ptkit
from ptkit.cli.main import main

FOLDER = Path(__file__).resolve().parent / "recordings"
SMALL = FOLDER.parents[1] / "fuzz" / "seeds" / "fuzz_perf_data" / "file"  # has mapped /nowhere/ls
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz"))


def opened(name: str, folder: Path) -> ptkit.Trace:
    """A recording with the code of its execution log."""
    path = folder / f"{name}.perf.data"
    path.write_bytes(lzma.decompress((FOLDER / f"{name}.perf.data.xz").read_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)  # programs of the machine are not here
        return ptkit.open(path, images=[unpack(FOLDER / f"{name}.npz").images])


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction(name: str, tmp_path: Path) -> None:
    trace = opened(name, tmp_path)
    truth = unpack(FOLDER / f"{name}.npz")
    assert trace.info.format == "perf.data"
    assert len(trace.streams) == len(truth.streams)
    for number, stream in enumerate(trace.streams):
        key = (stream.cpu, -1) if stream.cpu is not None else (-1, stream.tid)
        expected = next(truth.streams[one] for one in truth.streams if one[0] == key[0])
        found = trace.instructions(stream=number, columns=["ip"])
        assert len(found.errors) == 0, f"{key}: {found.errors}"
        assert np.array_equal(found["ip"], expected), key


def test_processes_are_separate(tmp_path: Path) -> None:
    trace = opened("all", tmp_path)
    names = {tid: name for _, tid, name in trace.info.threads}
    assert {"rounds", "perf"} <= set(names.values())
    rows = trace.instructions(columns=["ip", "tid", "pid", "space"])
    of_rounds = np.isin(rows["tid"], [tid for tid, name in names.items() if name == "rounds"])
    assert of_rounds.sum() > 1000
    assert len(np.unique(rows["space"][of_rounds])) == 1
    pids = {space: pid for space, (pid, *_) in enumerate(trace.info.spaces)}
    assert {pids[space] for space in np.unique(rows["space"][of_rounds]).tolist()} == set(
        np.unique(rows["pid"][of_rounds]).tolist()
    )


def test_info_has_cpu_and_command(tmp_path: Path) -> None:
    info = opened("timed", tmp_path).info
    assert info.cpu == (6, 85, 4)
    command = info.recording["command"]
    assert command[1:4] == ["record", "-e", "intel_pt/cyc,cyc_thresh=1,mtc,mtc_period=3,tsc,psb_period=0/u"]


def test_the_source_of_scripts_is_opened_instead(tmp_path: Path) -> None:
    (tmp_path / "perf.data").write_bytes(SMALL.read_bytes())
    buffer = tmp_path / "perf.data-aux-idx0.bin"
    buffer.write_bytes(b"any")
    with warned("LIBIPT_PERF_DATA_OPENED", tmp_path / "perf.data"):
        assert ptkit.open(buffer, format="libipt-script").streams


def test_folders_of_binaries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warned("FILES_MISSING", 1, "/nowhere/ls"):
        assert ptkit.open(SMALL).info.code_bytes == 0
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere" / "ls").write_bytes(b"\x90\xc3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ptkit.open(SMALL, binaries=[tmp_path]).info.code_bytes > 0
    assert main(["info", str(SMALL)]) == 0
    assert "1 file is missing, so code in it is not decoded: /nowhere/ls" in capsys.readouterr().out
    assert main(["info", str(SMALL), "--binaries", str(tmp_path)]) == 0
    assert "is missing" not in capsys.readouterr().out


def test_missing_folders_of_binaries(tmp_path: Path) -> None:
    with pytest.raises(ptkit.MissingFileError, match="no such folder of binaries"):
        ptkit.open(SMALL, binaries=[tmp_path / "absent"])
    with pytest.raises(ptkit.ConfigError, match="must be a list of folders"):
        ptkit.open(SMALL, binaries=str(tmp_path))
