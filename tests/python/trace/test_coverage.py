"""Coverage of one buffer after another, against edges worked out by hand and against `Trace.edges`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit

PSB = bytes.fromhex("0282" * 8 + "9901 0223")  # PSB, MODE.Exec 64, PSBEND
ON_AT_1000 = bytes.fromhex("51 00100000")  # TIP.PGE
LOOP = {0x1000: bytes.fromhex("74fe 90 c3")}  # 1000 jz 1000; 1002 nop; 1003 ret
TRACES = ("Unzip", "avscript_32", "dyn_test", "mruby")
DATA = {"from_ip", "to_ip", "kind", "count", "space", "flags"}


def loop(times: int) -> bytes:
    """Packets of a loop that goes round so many times, and then to a far address by RET."""
    full, rest = divmod(times, 6)
    # TNT-8: a stop bit, then the bits, oldest first, then a zero.
    last = (1 << (rest + 1) | ((1 << rest) - 1) << 1) << 1
    return PSB + ON_AT_1000 + b"\xfe" * full + bytes([last]) + bytes.fromhex("01")


def hash_of(from_ip: int, to_ip: int) -> int:
    mixed = (from_ip * 0x9E3779B97F4A7C15 + to_ip) % 2**64
    return ((mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 % 2**64) >> 32


def same(mine: ptkit.Table, other: ptkit.Table, names: Any) -> None:
    assert len(mine) == len(other)
    for name in names:
        np.testing.assert_array_equal(mine[name], other[name], err_msg=name)


@pytest.fixture
def maps() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(65536, np.uint8), np.full(65536, 255, np.uint8)


def test_edges_equal_those_worked_out_by_hand(maps: tuple[np.ndarray, np.ndarray]) -> None:
    bitmap, virgin = maps
    decoder = ptkit.CoverageDecoder(LOOP)
    for times in (20, 3, 127, 6):
        bitmap[:] = 0
        result = decoder.decode(loop(times), bitmap, virgin)
        assert (result.edges, result.branches, result.errors, result.gaps) == (2, times + 1, 0, 0)
        assert result.bytes == len(loop(times))
        table = decoder.edges()
        assert table["from_ip"].tolist() == [0x1000, 0x1000]
        assert table["to_ip"].tolist() == [0x1000, 0x1002]
        assert table["count"].tolist() == [times, 1]
        assert table.named("kind") == ["COND", "COND"]
        assert np.flatnonzero(bitmap).tolist() == sorted(
            hash_of(0x1000, to) & 0xFFFF for to in (0x1000, 0x1002)
        )
        assert bitmap[decoder.index(0x1000, 0x1000)] == times
        assert repr(result).startswith(f"CoverageResult(bytes={result.bytes}, instructions=")
        assert len(decoder.errors()) == len(decoder.gaps()) == 0


def test_new_bits_count_new_edges(maps: tuple[np.ndarray, np.ndarray]) -> None:
    _, virgin = maps
    decoder = ptkit.CoverageDecoder(LOOP)
    seen = [decoder.decode(loop(times), virgin=virgin).new_bits for times in (8, 15, 8, 20, 31, 32)]
    assert seen == [2, 0, 0, 1, 0, 1]
    assert decoder.decode(loop(200)).new_bits == 0


def test_new_edges_are_those_of_the_call(maps: tuple[np.ndarray, np.ndarray]) -> None:
    bitmap, virgin = maps
    decoder = ptkit.CoverageDecoder(LOOP)
    seen = []
    for times in (0, 8, 8, 200):
        result = decoder.decode(loop(times), bitmap, virgin, clear=True)
        new = decoder.new_edges()
        assert result.new_edges == len(new)
        assert (result.new_bits == 2) == bool(len(new))
        seen.append(
            list(zip(new["from_ip"].tolist(), new["to_ip"].tolist(), new["count"].tolist(), strict=True))
        )
    assert seen == [[(0x1000, 0x1002, 1)], [(0x1000, 0x1000, 8)], [], []]
    decoder.decode(loop(8))
    assert len(decoder.new_edges()) == 0
    assert decoder.new_edges().columns == decoder.edges().columns


def test_the_map_is_cleared_on_request() -> None:
    decoder = ptkit.CoverageDecoder(LOOP)
    bitmap = np.full(65536, 9, np.uint8)
    for clear, hits in ((True, 30), (True, 30), (False, 60)):
        decoder.decode(loop(30), bitmap, clear=clear)
        assert bitmap[decoder.index(0x1000, 0x1000)] == hits
        assert np.count_nonzero(bitmap) == 2
    assert decoder.decode(loop(30), clear=True).edges == 2


def test_a_ring_is_taken_in_chunks() -> None:
    decoder = ptkit.CoverageDecoder(LOOP)
    stream = loop(100)
    for at in range(len(stream) + 1):
        result = decoder.decode((stream[:at], memoryview(stream)[at:]))
        assert (result.bytes, result.branches, result.errors, result.gaps) == (len(stream), 101, 0, 0)
    ring = np.frombuffer(stream[20:] + stream[:20], np.uint8)
    assert decoder.decode([ring[-20:], ring[:-20]]).branches == 101
    assert decoder.decode([stream]).branches == 101
    assert decoder.decode([]).errors == decoder.decode(b"").errors == 1
    # Offsets count from the first byte of the older chunk.
    broken = [stream[:-1], b"\x02\x0b"]
    assert decoder.decode(broken).errors == 1
    assert decoder.errors()["offset"].tolist() == [len(stream) - 1]


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        ("raw.pt", 'buffer must be bytes-like, not str; read files in mode "rb"'),
        (7, "buffer must be bytes-like, not int"),
        (None, "buffer must be bytes-like, not NoneType"),
        ({1: b""}, "buffer must be bytes-like, not dict"),
        (
            [2, 130],
            r"each item of a list of chunks \(of a ring, the oldest first\) must be bytes-like, not int",
        ),
        (("raw.pt",), 'must be bytes-like, not str; read files in mode "rb"'),
        ([[b""]], "must be bytes-like, not list"),
        (np.zeros(9, np.uint16), "buffer must be one-dimensional contiguous bytes"),
    ],
)
def test_buffers_of_a_wrong_type_are_named(buffer: Any, message: str) -> None:
    decoder = ptkit.CoverageDecoder(LOOP)
    with pytest.raises(TypeError, match=message):
        decoder.decode(buffer)
    assert decoder.decode(loop(1)).edges == 2


def test_text_from_the_callback_is_named() -> None:
    decoder = ptkit.CoverageDecoder(image_callback=lambda address, size, space: "nop")  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="what image_callback returns must be bytes-like, not str"):
        decoder.decode(loop(1))


def test_one_array_as_both_maps_is_refused() -> None:
    decoder = ptkit.CoverageDecoder(LOOP, map_size=1024)
    memory = np.full(2048, 255, np.uint8)
    for virgin in (memory[:1024], memory[512:1536]):
        with pytest.raises(ptkit.ConfigError, match="share memory"):
            decoder.decode(loop(1), memory[:1024], virgin, clear=True)
    assert (memory == 255).all()
    assert decoder.decode(loop(1), memory[:1024], memory[1024:], clear=True).new_bits == 2


def test_map_index_of_many_edges() -> None:
    decoder = ptkit.CoverageDecoder(LOOP, map_size=1024)
    from_ip, to_ip = np.array([0, 0x1000, 2**64 - 1], np.uint64), np.array([1, 0x1004, 5], np.uint64)
    expected = [hash_of(a, b) & 1023 for a, b in zip(from_ip.tolist(), to_ip.tolist(), strict=True)]
    assert decoder.index(from_ip, to_ip).tolist() == expected
    assert decoder.index(0x1000, 0x1004) == expected[1]


def test_edges_go_into_arrays_of_the_caller() -> None:
    decoder = ptkit.CoverageDecoder(LOOP)
    decoder.decode(loop(9))
    from_ip, count = np.zeros(1, np.uint64), np.zeros(9, np.int64)
    kind = np.full(9, 99, np.uint8)
    assert decoder.edges_into(from_ip, count=count, kind=kind) == 2
    assert from_ip[0] == 0x1000
    assert sorted(count.tolist()) == [0] * 7 + [1, 9]
    assert kind.tolist() == [0, 0] + [99] * 7
    for wrong in (np.zeros(9, np.uint64), np.zeros(9, np.int64)[::2], [1, 2], np.zeros((3, 3), np.int64)):
        with pytest.raises(TypeError, match="count must be"):
            decoder.edges_into(count=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", TRACES)
def test_coverage_equals_the_edges_table(name: str, corpus: Path, open_trace: Callable[..., Any]) -> None:
    trace = open_trace(corpus / "libxdc" / name)
    edges = trace.edges()
    buffer = (corpus / "libxdc" / name / "trace").read_bytes()
    decoder = ptkit.CoverageDecoder(trace)
    expected = np.zeros(65536, np.int64)
    np.add.at(expected, decoder.index(edges["from_ip"], edges["to_ip"]), edges["count"].astype(np.int64))
    for _ in range(3):
        bitmap = np.zeros(65536, np.uint8)
        result = decoder.decode(buffer, bitmap)
        same(decoder.edges(), edges, DATA)
        same(decoder.errors(), trace.errors, trace.errors.columns)
        same(decoder.gaps(), trace.gaps, trace.gaps.columns)
        np.testing.assert_array_equal(bitmap, np.minimum(expected, 255))
        assert result.errors == len(trace.errors)
        assert result.instructions == len(trace.instructions(columns=["ip"]))


def damaged(buffer: bytes, count: int) -> Iterator[bytes]:
    """Cut, and with bytes that are not what they were."""
    random = np.random.default_rng(7)
    for _ in range(count):
        begin = int(random.integers(0, len(buffer) // 2))
        part = np.frombuffer(buffer[begin : begin + int(random.integers(0, 9000))], np.uint8).copy()
        hits = random.integers(0, 4)
        if len(part):
            part[random.integers(0, len(part), hits)] = random.integers(0, 256, hits)
        yield part.tobytes()


def test_damaged_buffers_leave_nothing_for_the_next(corpus: Path, open_trace: Callable[..., Any]) -> None:
    folder = corpus / "libxdc" / "Unzip"
    trace = open_trace(folder)
    decoder = ptkit.CoverageDecoder(trace)
    buffer = (folder / "trace").read_bytes()
    whole = trace.edges()
    wrong = 0
    for part in damaged(buffer, 60):
        result = decoder.decode(part)
        wrong += result.errors
        fresh = ptkit.CoverageDecoder(trace)
        assert fresh.decode(part).errors == result.errors == len(decoder.errors())
        assert len(decoder.gaps()) == result.gaps
        same(decoder.edges(), fresh.edges(), DATA)
        same(decoder.errors(), fresh.errors(), decoder.errors().columns)
    assert wrong > 0
    decoder.decode(buffer)
    same(decoder.edges(), whole, DATA)


def test_threads_with_a_decoder_each(corpus: Path, open_trace: Callable[..., Any]) -> None:
    trace = open_trace(corpus / "libxdc" / "Unzip")
    buffer = (corpus / "libxdc" / "Unzip" / "trace").read_bytes()
    edges = trace.edges()
    found: list[ptkit.Table] = []

    def work() -> None:
        decoder = ptkit.CoverageDecoder(trace)
        for _ in range(20):
            decoder.decode(buffer)
        found.append(decoder.edges())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for table in found:
        same(table, edges, DATA)


def test_maps_of_a_wrong_form_are_refused() -> None:
    decoder = ptkit.CoverageDecoder(LOOP, map_size=1024)
    for name in ("bitmap", "virgin"):
        for size in (0, 1023, 65536):
            with pytest.raises(ptkit.ConfigError, match=f"{name} has {size} bytes; map_size is 1024"):
                decoder.decode(loop(1), **{name: np.zeros(size, np.uint8)})
        read_only = np.zeros(1024, np.uint8)
        read_only.flags.writeable = False
        wrong: tuple[Any, ...] = (
            np.zeros(1024, np.uint16),
            np.zeros(1024, bool),
            np.zeros(1024, np.int8),
            np.zeros(2048, np.uint8)[::2],
            np.zeros((32, 32), np.uint8),
            read_only,
            bytes(1024),
            [0] * 1024,
        )
        for array in wrong:
            with pytest.raises(TypeError, match=f"{name} must be a contiguous writable array of uint8"):
                decoder.decode(loop(1), **{name: array})
    assert decoder.decode(loop(1), bytearray(1024)).edges == 2  # type: ignore[arg-type]


def test_arguments_of_a_wrong_type_are_refused(corpus: Path, open_trace: Callable[..., Any]) -> None:
    for size in (0, 1000, -1, 2**33, 1.5):
        with pytest.raises(ptkit.ConfigError, match="map_size="):
            ptkit.CoverageDecoder(LOOP, map_size=size)  # type: ignore[arg-type]
    with pytest.raises(ptkit.ConfigError, match="there is no code"):
        ptkit.CoverageDecoder()
    with pytest.raises(ptkit.ConfigError, match="resync"):
        ptkit.CoverageDecoder(LOOP, resync="never")
    for ranges in ([("on", 1, 2)], [("filter", 2, 1)], [("filter", 1, 2)] * 5, [3]):
        with pytest.raises(ptkit.ConfigError, match="ranges"):
            ptkit.CoverageDecoder(LOOP, ranges=ranges)  # type: ignore[arg-type]
    with pytest.raises(ptkit.ConfigError, match="space="):
        ptkit.CoverageDecoder(LOOP, space=1)
    with pytest.raises(TypeError, match="image_callback"):
        ptkit.CoverageDecoder(LOOP, image_callback=3)  # type: ignore[arg-type]
    with pytest.raises(ptkit.ConfigError, match="trace's own"):
        ptkit.CoverageDecoder(open_trace(corpus / "libxdc" / "Unzip"), cpu="6/158")
    with pytest.raises(TypeError, match="buffer must be"):
        ptkit.CoverageDecoder(LOOP).decode(np.zeros(9, np.uint16))  # type: ignore[arg-type]
    decoder = ptkit.CoverageDecoder(LOOP)
    with pytest.raises(ptkit.ConfigError, match="last"):
        decoder.forget(5, 4)


def test_no_packets_and_no_code() -> None:
    decoder = ptkit.CoverageDecoder(LOOP)
    assert decoder.decode(b"").errors == 1
    assert "no PSB" in decoder.errors().messages()[0]
    result = decoder.decode(PSB + bytes.fromhex("51 00900000 06 01"))
    assert (result.errors, result.edges) == (1, 0)
    assert decoder.errors()["ip"].tolist() == [0x9000]


def test_code_that_changes() -> None:
    code = np.frombuffer(LOOP[0x1000], np.uint8).copy()
    decoder = ptkit.CoverageDecoder({0x1000: code})
    decoder.decode(loop(2))
    code[1] = 0  # jz 1002
    decoder.forget(0x1000, 0x1003)
    decoder.decode(PSB + ON_AT_1000 + bytes.fromhex("06 01"))
    assert decoder.edges()["to_ip"].tolist() == [0x1002]
    decoder.set_images(LOOP)
    assert decoder.decode(loop(5)).branches == 6
    assert decoder.edges()["to_ip"].tolist() == [0x1000, 0x1002]


def test_callback_gives_code() -> None:
    asked: list[int] = []

    def read(address: int, size: int, space: int) -> bytes | None:
        asked.append(address)
        if address == 0xDEAD000:
            raise KeyError("no such page")
        return LOOP[0x1000] + bytes(size - 4) if address == 0x1000 else None

    decoder = ptkit.CoverageDecoder(image_callback=read)
    assert decoder.decode(loop(4)).branches == 5
    assert asked[0] == 0x1000
    with pytest.raises(KeyError, match="no such page"):
        decoder.decode(PSB + bytes.fromhex("51 00d0ea0d 06 01"))
    assert decoder.decode(loop(4)).branches == 5


def test_ranges_limit_coverage() -> None:
    # 1000 jmp 2000; outside of the filter: TIP.PGD without an IP stands for it.
    code = {0x1000: bytes.fromhex("e9 fb0f0000"), 0x2000: b"\x90" * 16}
    buffer = PSB + ON_AT_1000 + bytes.fromhex("01")
    inside = ptkit.CoverageDecoder(code, ranges=[("filter", 0x1000, 0x1FFF)])
    result = inside.decode(buffer)
    assert (result.edges, result.errors) == (1, 0)
    assert inside.edges()["to_ip"].tolist() == [0x2000]


def test_one_thread_at_a_time() -> None:
    entered, leave = threading.Event(), threading.Event()

    def read(address: int, size: int, space: int) -> bytes:
        entered.set()
        leave.wait(10)
        return LOOP[0x1000] + bytes(size - 4)

    decoder = ptkit.CoverageDecoder(image_callback=read)
    thread = threading.Thread(target=decoder.decode, args=(loop(3),))
    thread.start()
    assert entered.wait(10)
    for call in (lambda: decoder.decode(loop(1)), decoder.edges, decoder.errors, decoder.forget):
        with pytest.raises(RuntimeError, match="another thread uses this decoder"):
            call()
    leave.set()
    thread.join()
    assert decoder.edges()["count"].tolist() == [3, 1]


def test_edges_have_the_names_of_the_images(tmp_path: Path, maps: tuple[np.ndarray, np.ndarray]) -> None:
    """Those of images that the decoder was given, and of a trace; as edges of a trace have them."""
    from small_elf import elf

    path = tmp_path / "a.out"
    path.write_bytes(elf(LOOP[0x1000], 0x1000, "spin"))
    decoder = ptkit.CoverageDecoder([path])
    decoder.decode(loop(3), *maps)
    trace = ptkit.open(loop(3), images=[path], cpu="6/158/10")
    for edges in (decoder.edges(), decoder.new_edges()):
        assert len(edges) == 2
        for name in (
            "from_symbol",
            "to_symbol",
            "from_module",
            "to_module",
            "from_module_offset",
            "to_symbol_offset",
        ):
            assert edges.named(name) == trace.edges().named(name), name
    decoder.set_images(LOOP)
    maps[1].fill(0xFF)
    decoder.decode(loop(3), *maps)
    assert decoder.new_edges().named("from_symbol") == [None, None]
    assert decoder.new_edges().named("from_module") == ["[anon 0x1000]"] * 2
