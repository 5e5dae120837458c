"""Raw streams that are rings as they were in memory: where the next byte would be written is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit.cli import main

CPU = "6/142/9"


def rows(trace: ptkit.Trace) -> list[tuple[int, int]]:
    table = trace.branches()
    return list(zip(table["from_ip"].tolist(), table["to_ip"].tolist(), strict=True))


@pytest.fixture
def stream(loop: Any) -> bytes:
    return bytes(loop.stream(30, psb_every=7))


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
def test_a_ring_is_put_in_order(stream: bytes, loop: Any, tmp_path: Path, engine: str) -> None:
    expected = ptkit.open(stream, images=loop.images(), cpu=CPU, engine=engine)
    path = tmp_path / "ring.pt"
    for offset in (1, 20, len(stream) // 2, len(stream) - 1):
        ring = stream[-offset:] + stream[:-offset]
        path.write_bytes(ring)
        for source in (path, ring, [ring[:10], ring[10:]]):
            trace = ptkit.open(source, images=loop.images(), cpu=CPU, engine=engine, ring_offset=offset)
            assert rows(trace) == rows(expected)
            assert trace.branches()["offset"].tolist() == expected.branches()["offset"].tolist()
            assert trace.errors.messages() == []


def test_a_ring_that_has_not_wrapped(stream: bytes, loop: Any) -> None:
    ring = stream.ljust(4096, b"\0")
    trace = ptkit.open(ring, images=loop.images(), cpu=CPU, ring_offset=len(stream))
    assert trace.streams[0].size == len(stream)
    assert rows(trace) == rows(ptkit.open(stream, images=loop.images(), cpu=CPU))
    for offset in (0, len(stream)):  # the buffer is in order
        assert ptkit.open(stream, cpu=CPU, ring_offset=offset).streams[0].size == len(stream)


def test_an_index_belongs_to_the_order(stream: bytes, loop: Any, tmp_path: Path) -> None:
    path = tmp_path / "ring.pt"
    path.write_bytes(stream[40:] + stream[:40])
    options: dict[str, Any] = {"images": loop.images(), "cpu": CPU}
    ptkit.open(path, ring_offset=len(stream) - 40, **options).index()
    with pytest.warns(ptkit.PtkitWarning, match="index"):
        ptkit.open(path, **options)
    assert len(rows(ptkit.open(path, ring_offset=len(stream) - 40, **options))) == 30 * 7


def test_offsets_out_of_range_and_other_formats_are_refused(
    stream: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for offset in (-1, "20", len(stream) + 1):
        with pytest.raises(ptkit.ConfigError, match="ring_offset"):
            ptkit.open(stream, cpu=CPU, ring_offset=offset)  # type: ignore[arg-type]
    trace = ptkit.open(stream, cpu=CPU)
    trace.save(tmp_path / "saved.ptk")
    with pytest.raises(ptkit.ConfigError, match="of format ptk"):
        ptkit.open(tmp_path / "saved.ptk", ring_offset=5)
    assert main(["packets", str(tmp_path / "saved.ptk"), "--ring-offset", "0x5"]) != 0
    assert "ring_offset=0x5" in capsys.readouterr().err


def test_the_command_line_takes_the_offset(
    stream: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ring.pt"
    path.write_bytes(stream)
    assert main(["packets", str(path)]) == 0
    expected = capsys.readouterr().out
    path.write_bytes(stream[50:] + stream[:50])
    assert main(["packets", str(path), "--ring-offset", hex(len(stream) - 50)]) == 0
    assert capsys.readouterr().out == expected
