"""Import time, Ctrl-C, the GIL, out of memory."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import ptkit


def test_import_is_quick() -> None:
    # Processor time: what the import costs, whatever else the machine does.
    code = "import time; t = time.process_time(); import ptkit; print(time.process_time() - t)"
    times = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        times.append(float(done.stdout))
    assert min(times) < 0.3, times


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, ptkit; print(*sorted({'pandas', 'pyarrow', 'rich', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.fixture(scope="module")
def long_trace(loop: Any, packets: Any, open_trace: Any) -> Any:
    """About 180 million branches: some seconds of work."""
    chunk = loop.header(loop.BASE, 1000) + packets.tnt("111111") * 1_000_000
    data = loop.header(None, 1000) + packets.pge(loop.BASE) + chunk * 30
    return open_trace([data], images=loop.images())


def _for_ever(action: Any) -> None:
    while True:
        action()


def _interrupted_after(action: Any) -> float:
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.3, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            _for_ever(action)
    finally:
        timer.join()
    return time.perf_counter() - sent[0]


@pytest.mark.parametrize("way", ["edges", "parts", "packets"])
def test_ctrl_c_stops_a_long_decode(long_trace: Any, way: str) -> None:
    actions = {
        "edges": lambda: long_trace.edges(),
        "parts": lambda: list(long_trace.iter_branches(rows=10**6, reuse=True, columns=["kind"])),
        "packets": lambda: [len(p) for p in long_trace.iter_packets(rows=10**7, reuse=True)],
    }
    delays = [_interrupted_after(actions[way]) for _ in range(3)]
    assert statistics.median(delays) < 0.2, delays


def test_ctrl_c_in_a_part_that_shares_memory(long_trace: Any) -> None:
    columns = ["from_ip", "to_ip"]
    first = next(long_trace.iter_branches(rows=1000, columns=columns))
    parts = long_trace.iter_branches(rows=100_000_000, reuse=True, columns=columns)
    timer = threading.Timer(0.02, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(parts)
    timer.join()
    assert next(parts, None) is None  # it has ended
    del parts
    again = long_trace.iter_branches(rows=1000, reuse=True, columns=columns)
    part = next(again)
    for name in columns:
        assert part[name].tolist() == first[name].tolist()
    assert len(next(again)) == 1000


def test_ctrl_c_stops_all_threads(loop: Any, packets: Any) -> None:
    bundle = ptkit._core.Bundle()
    bundle.add_code(loop.BASE, loop.CODE)
    data = loop.header(None, 1000) + packets.pge(loop.BASE) + packets.tnt("111111") * 10_000_000
    for _ in range(4):
        bundle.add_stream(data)
    trace = ptkit.Trace(bundle, ptkit.decode.Settings())
    delays = [_interrupted_after(lambda: trace.edges(threads=2)) for _ in range(3)]
    assert statistics.median(delays) < 0.2, delays


def test_ctrl_c_stops_walks_through_wrong_code(loop: Any, packets: Any, open_trace: Any) -> None:
    # Zeros are instructions without end: each target gives a walk that only its bound ends.
    targets = b"".join(packets.tip(0x100000 * number) for number in range(1, 20_001))
    data = loop.header(None, 1000) + packets.pge(loop.BASE) + targets
    trace = open_trace(data, image_callback=lambda _address, size, _space: bytes(size))
    delays = [_interrupted_after(trace.branches) for _ in range(3)]
    assert min(delays) < 0.2, delays


@pytest.mark.parametrize("way", ["edges", "parts", "calls", "frames", "coverage"])
def test_ctrl_c_stops_within_a_packet(packets: Any, open_trace: Any, way: str) -> None:
    # Each bit of a packet leads through eight million jumps.
    jumps = bytes.fromhex("eb00") * 8_000_000
    code = {0x1000: jumps + b"\x0f\x84" + (2**32 - len(jumps) - 6).to_bytes(4, "little")}
    stream = packets.PSB + packets.MODE_64 + packets.fup(0x1000) + packets.PSBEND + packets.tnt("111111")
    trace = open_trace(stream, images=code)
    coverage = ptkit.CoverageDecoder(code)
    actions = {
        "edges": lambda: trace.edges(),
        "parts": lambda: list(trace.iter_branches(rows=1000, columns=["kind"], reuse=True)),
        "calls": lambda: trace.calls(),
        "frames": lambda: list(trace.iter_calls(rows=1000)),
        "coverage": lambda: coverage.decode(stream),
    }
    delays = [_interrupted_after(actions[way]) for _ in range(3)]
    assert min(delays) < 1, delays  # the first walk looks ahead, which is not interrupted


def test_other_threads_run_while_decoding(long_trace: Any) -> None:
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    parts = long_trace.iter_branches(rows=100_000_000, columns=["kind"])
    thread.start()
    next(parts)
    stop.set()
    thread.join()
    assert counted > 5


_STARVED = """
import resource, sys, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
from conftest import LoopProgram, Packets
import ptkit
data = LoopProgram.header(None, 1000) + Packets.pge(LoopProgram.BASE) + Packets.tnt("111111") * 4_000_000
trace = ptkit.open(data, images=LoopProgram.images())
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
try:
    trace.branches()
except MemoryError:
    print("MemoryError")
print(sum(len(part) for part in trace.iter_branches(rows=100_000, reuse=True, columns=["kind"])))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and RLIMIT_AS")
def test_out_of_memory_is_a_memory_error() -> None:
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    command = [sys.executable, "-c", _STARVED, tests]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["MemoryError", "24000000"]
