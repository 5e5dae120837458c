"""Checks of an installed wheel, with nothing but its own libraries (python -I wheel_smoke.py).

It needs no test runner, for only the wheel and what it depends on are installed where it runs.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import ptkit
from ptkit import _core, capture
from ptkit.capture import driver

SOURCES = Path(__file__).resolve().parents[2]
PACKAGE = Path(ptkit.__file__).resolve().parent

# again: dec ecx; jnz again; jmp rax
BASE = 0x1000
CODE = bytes.fromhex("ffc975fcffe0")
# PSB, TSC, MODE.Exec (64 bit), PSBEND; TIP.PGE to `again`; taken, taken, not taken; TIP to `again`;
# not taken; TIP to `again`; TIP.PGD
STREAM = bytes.fromhex("0282") * 8 + bytes.fromhex(
    "1900100000000000 9901 0223 d10010000000000000 1c cd0010000000000000 04 cd0010000000000000 01".replace(
        " ", ""
    )
)


def command(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command that pip installed."""
    return subprocess.run(
        [Path(sys.prefix) / "bin" / "ptkit", *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def mapped_libraries() -> set[Path]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = (Path(words[5]) for words in (line.split(maxsplit=5) for line in lines) if len(words) == 6)
    return {path for path in paths if re.match(r"lib(Zydis|Zycore|elf|zstd|ipt)\b", path.name)}


class InstalledWheel(unittest.TestCase):
    def test_package_is_not_that_of_the_source_tree(self) -> None:
        for path in (PACKAGE, Path(_core.__file__).resolve()):
            assert path.is_relative_to(Path(sys.prefix).resolve()), path
            assert not path.is_relative_to(SOURCES / "python"), path
        assert importlib.metadata.version("ptkit") == ptkit.__version__

    def test_libraries_are_those_of_the_wheel(self) -> None:
        libraries = mapped_libraries()
        found = {re.match(r"lib([A-Za-z]+)", path.name)[1] for path in libraries}
        wanted = {"Zydis", "elf", "zstd"} | ({"ipt"} if "libipt" in _core.engines() else set())
        assert wanted <= found
        for path in libraries:
            assert path.parent == PACKAGE.parent / "ptkit.libs"

    def test_licences_of_libraries_are_there(self) -> None:
        files = [str(path) for path in importlib.metadata.files("ptkit") or []]
        licences = [path for path in files if "/licenses/" in path]
        assert any(path.endswith("THIRD_PARTY.md") for path in licences), licences
        bundled = [path for path in licences if "/bundled/" in path]
        for name in {path.name for path in mapped_libraries()}:
            library = re.match(r"lib([A-Za-z]+)", name)[1].lower()
            assert any(library in path.lower() for path in bundled), (library, bundled)

    def test_packets(self) -> None:
        kinds = " ".join(ptkit.packets(STREAM).named("kind"))
        assert kinds == "PSB TSC MODE_EXEC PSBEND TIP_PGE TNT_8 TIP TNT_8 TIP TIP_PGD"

    def test_control_flow_by_every_engine(self) -> None:
        assert "ptkit" in _core.engines()
        for engine in _core.engines():
            with self.subTest(engine=engine):
                trace = ptkit.open(STREAM, cpu="6/142", images=[{BASE: CODE}], engine=engine)
                branches = trace.branches(columns=["from_ip", "taken"])[:6]
                assert (branches["from_ip"] - BASE).tolist() == [2, 2, 2, 4, 2, 4]
                assert branches["taken"].tolist() == [True, True, False, True, False, True]
                assert len(trace.errors) == 0, trace.errors


class InstalledCommand(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def record(self, backend: str) -> None:
        bundle = self.folder / "true.ptk"
        done = command("record", "--backend", backend, "-o", bundle, "--", "true")
        assert done.returncode == 0, done.stderr
        trace = ptkit.open(bundle)
        assert len(trace.instructions(columns=["ip"])) > 1000
        assert len(trace.errors) == 0, trace.errors
        done = command("info", bundle, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["format"] == "ptk"
        assert "could not be parsed" not in done.stdout

    def test_help(self) -> None:
        done = command("--help")
        assert done.returncode == 0, done.stderr
        assert "record" in done.stdout

    def test_doctor(self) -> None:
        done = command("doctor", "--json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["version"] == ptkit.__version__
        assert report["engines"] == _core.engines()

    def test_the_plugin_is_there(self) -> None:
        assert (PACKAGE / "libptkit_qemu.so").is_file()

    def test_the_sources_of_the_driver_are_there(self) -> None:
        kernel = PACKAGE / "kernel"
        assert driver.find_sources() == kernel
        listed = {
            str(path.relative_to(SOURCES / "kernel"))
            for path in (SOURCES / "kernel").rglob("*")
            if path.suffix in (".c", ".h", ".def") or path.name in ("Kbuild", "Makefile", "dkms.conf")
            if (SOURCES / "kernel" / "windows") not in path.parents
        }
        assert {"dkms.conf", "linux/Kbuild", "common/pt_rules.def", "include/ptkit/ptkit_ioctl.h"} <= listed
        found = {str(path.relative_to(kernel)) for path in kernel.rglob("*") if path.is_file()}
        assert found == {name for name in listed if not name.endswith(".mod.c")}

    # That recordings have names as root shows that its libraries are found.
    def test_the_parser_is_there(self) -> None:
        parser = PACKAGE / "ptkit-parser"
        assert os.access(parser, os.X_OK)
        done = subprocess.run([parser], env={}, capture_output=True, check=False, timeout=60)
        assert done.returncode == 2, done.stderr

    def test_recording_by_single_steps(self) -> None:
        step = {backend.name: backend for backend in capture.probe()}["step"]
        if not step.available:
            self.skipTest(step.detail)
        self.record("step")

    def test_recording_by_the_emulator(self) -> None:
        if shutil.which("qemu-x86_64") is None:
            self.skipTest("QEMU is not installed")
        self.record("emulator")

    def test_missing_qemu_is_named(self) -> None:
        words = ("record", "--backend", "emulator", "-o", self.folder / "none.ptk", "--", "/bin/true")
        done = command(*words, PATH=str(self.folder))
        assert done.returncode != 0
        assert "qemu-user" in done.stderr
        assert not (self.folder / "none.ptk").exists()


if __name__ == "__main__":
    unittest.main(verbosity=2)
