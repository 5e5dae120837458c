"""Recordings by `ptkit record --backend driver` beside others, and what was executed meanwhile."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boot_image
from compiling import build
from executed import Executed, Truth
from kernels import build_module, debian_kernel
from machine import Machine, Run

import ptkit

CPUS = 2


@dataclass(frozen=True)
class Part:
    """Of the guest's script, and of the log of the truth.

    Attributes
    ----------
    files
        That it leaves.
    after
        Of the script, what is not in the log.
    """

    name: str
    script: str
    files: tuple[str, ...]
    after: str = ""

    def lines(self) -> str:
        """A part of the log for it, and one that is empty."""
        puts = "".join(f"host put {file} {file}\n" for file in self.files)
        return f"host log tracing\n{self.script}\nhost log never\n{self.after}{puts}"


def record(name: str, options: str) -> str:
    """A command of the guest's script: ptkit records."""
    command = f"ptkit record --json --backend driver -o {name}.ptk {options}"
    return f"{command} 2> {name}.json; echo $? > {name}.status"


@dataclass(frozen=True)
class Recorded:
    """A run of the machine, and how to ask for its parts."""

    run: Run
    truth: Truth
    folder: Path
    parts: list[Part]

    def executed(self, part: Part, cpu: int) -> Executed:
        """Instructions that a processor executed meanwhile."""
        return self.truth.executed(2 * self.parts.index(part) + 1, cpu)

    def user(self, part: Part, cpu: int) -> Executed:
        """The same, user code only."""
        executed = self.executed(part, cpu)
        return executed.select(executed.cpl == 3)

    def trace(self, part: Part) -> ptkit.Trace:
        """The bundle."""
        path = self.folder / f"{part.name}.ptk"
        path.write_bytes(self.run.files[path.name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptkit.PtkitWarning)
            return ptkit.open(path)

    def report(self, part: Part) -> dict[str, Any]:
        """Output of ptkit."""
        found: dict[str, Any] = json.loads(self.run.files[f"{part.name}.json"])
        return found

    def text(self, name: str) -> str:
        """A text file."""
        return self.run.files[name].decode()

    def assert_no_complaint(self) -> None:
        """Of the kernel."""
        _, _, since = self.run.files["dmesg"].partition(b"ptkit: ABI ")
        assert since
        for complaint in (b"WARNING:", b"BUG:", b"Oops", b"unchecked MSR", b"unknown reason", b"LOCKUP"):
            assert complaint not in since


def run_beside(
    machine: Machine, folder: Path, parts: list[Part], script: str, scripts: dict[str, str]
) -> Recorded:
    """One run of the machine with the driver.

    Parameters
    ----------
    script
        The guest's, between loading the driver and unloading it; it has the lines of all parts.
    scripts
        Others, by their name in the guest's /bin.
    """
    module, _ = build_module(debian_kernel(machine.folder), folder / "build")
    source = boot_image.GUEST / "multi_process.c"
    multi_process = boot_image.compile_static(source, folder / "multi_process", "-pthread")
    rounds = build("rounds", folder, "-static-pie")
    files = {"bin/ptkit.ko": module, "bin/multi_process": multi_process, "bin/rounds": rounds}
    for name, text in scripts.items():
        files[f"bin/{name}"] = folder / name
        files[f"bin/{name}"].write_text(text)
    whole = f"insmod /bin/ptkit.ko || exit 1\n{script}\nrmmod ptkit || exit 1\n"
    run = machine.run(whole, folder / "run", files=files, python=True, cpus=CPUS, limit=900)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return Recorded(run, Truth(run.truth), folder, parts)
