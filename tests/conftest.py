"""Fixtures that several folders share: the corpus, and small streams made by hand."""

from __future__ import annotations

import os
import resource
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(os.environ.get("PTKIT_CORPUS", Path(__file__).resolve().parents[2] / "shared" / "traces"))

# The emulator's log of a program that does not end fills the disk; logs of tests take up to six gigabytes.
LARGEST_FILE = 32 << 30
if resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY:
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, resource.RLIM_INFINITY))

BEGIN = time.monotonic()

# Shells run things in the background with SIGINT ignored; tests of Ctrl-C want it as a terminal has it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests in the emulated machine may build a kernel or run for hours: `make emulated` limits their sum.

    With `$PTKIT_EMULATED_COMMIT` only those that this commit gets are run.
    """
    emulated = [item for item in items if item.get_closest_marker("emulated") is not None]
    for item in emulated:
        item.add_marker(pytest.mark.timeout(0))
    if commit := os.environ.get("PTKIT_EMULATED_COMMIT"):
        from emulated_sets import modules_for  # processes of tests import this file without tests/support

        modules = modules_for(commit)
        machines = Path(__file__).resolve().parent / "machines"
        others = {item for item in emulated if item.path.relative_to(machines).as_posix() not in modules}
        config.hook.pytest_deselected(items=[item for item in items if item in others])
        items[:] = [item for item in items if item not in others]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """With `$PTKIT_EMULATED_SECONDS` no test in the emulated machine begins later; one that runs goes on."""
    seconds = os.environ.get("PTKIT_EMULATED_SECONDS")
    if seconds and item.get_closest_marker("emulated") and time.monotonic() - BEGIN > float(seconds):
        pytest.skip(f"PTKIT_EMULATED_SECONDS={seconds} are over")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real traces; skips where it is absent."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus of real traces at {CORPUS} (set PTKIT_CORPUS)")
    return CORPUS


@pytest.fixture(scope="session")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program tests/programs/times/rounds.c."""
    from compiling import build

    return build("rounds", tmp_path_factory.mktemp("rounds"))


@pytest.fixture(scope="session")
def open_trace() -> Callable[..., Any]:
    """`ptkit.open` without warnings about the unknown processor."""
    import ptkit

    def opened(*args: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptkit.PtkitWarning)
            return ptkit.open(*args, **options)

    return opened


class Packets:
    """Packets as bytes, written down from the manual: a second opinion beside the encoder."""

    PSB = bytes.fromhex("0282") * 8
    PSBEND = bytes.fromhex("0223")
    OVF = bytes.fromhex("02f3")
    MODE_64 = bytes.fromhex("9901")
    TIP_PGD = b"\x01"

    @staticmethod
    def tsc(value: int) -> bytes:
        return b"\x19" + value.to_bytes(7, "little")

    @staticmethod
    def _ip(opcode: int, ip: int) -> bytes:
        return bytes([6 << 5 | opcode]) + ip.to_bytes(8, "little")  # IPBytes 110b: all 64 bits

    @classmethod
    def pge(cls, ip: int) -> bytes:
        return cls._ip(0x11, ip)

    @classmethod
    def tip(cls, ip: int) -> bytes:
        return cls._ip(0x0D, ip)

    @classmethod
    def pgd(cls, ip: int) -> bytes:
        return cls._ip(0x01, ip)

    @classmethod
    def fup(cls, ip: int) -> bytes:
        return cls._ip(0x1D, ip)

    @staticmethod
    def tnt(bits: str) -> bytes:
        """`bits` oldest first, "1" taken; at most six."""
        return bytes([int("1" + bits, 2) << 1])


class LoopProgram:
    """`again: dec ecx; jnz again; jmp rax`, and streams of it."""

    BASE = 0x1000
    CODE = bytes.fromhex("ffc975fcffe0")
    JNZ = BASE + 2
    JMP = BASE + 4

    @classmethod
    def header(cls, ip: int | None, tsc: int) -> bytes:
        fup = b"" if ip is None else Packets.fup(ip)
        return Packets.PSB + Packets.tsc(tsc) + Packets.MODE_64 + fup + Packets.PSBEND

    @classmethod
    def stream(cls, rounds: int, *, psb_every: int = 50, tsc: int = 1000, step: int = 100) -> bytes:
        """`rounds` times: the loop taken five times, then left, then entered again by the indirect jump."""
        parts = [cls.header(None, tsc), Packets.pge(cls.BASE)]
        for number in range(1, rounds + 1):
            tsc += step
            if number % psb_every == 0:
                parts.append(cls.header(cls.BASE, tsc))
            parts.append(Packets.tnt("111110") + Packets.tip(cls.BASE))
        return b"".join(parts)

    @classmethod
    def images(cls) -> list[dict[int, bytes]]:
        return [{cls.BASE: cls.CODE}]


@pytest.fixture(scope="session")
def packets() -> type[Packets]:
    """Makers of packets."""
    return Packets


@pytest.fixture(scope="session")
def loop() -> type[LoopProgram]:
    """A program and streams of it."""
    return LoopProgram


@pytest.fixture
def loop_trace(open_trace: Callable[..., Any], loop: type[LoopProgram]) -> Any:
    """200 rounds of the loop program: 1200 conditionals, 200 indirect jumps."""
    return open_trace(loop.stream(200), images=loop.images())
