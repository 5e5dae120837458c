"""Runs scripts in an emulated machine with Processor Trace: `machine.py SCRIPT [FILE...]`."""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

# pytest does so by itself.
sys.path.append(str(Path(__file__).resolve().parents[3] / "support" / "machines"))
sys.path.append(str(Path(__file__).resolve().parents[3] / "support" / "checks"))

import bochs
import boot_image
from debian import Missing, Packages
from kernels import build_folder, build_lock
from userland import Userland

MEMORY = 1024 * boot_image.MEGABYTE
CLOCK = "PTKIT_EMULATED_CLOCK"  # of the environment
IPS = 50_000_000  # instructions in a second of the machine's own time

CONFIGURATION = """\
config_interface: textconfig
display_library: nogui
cpu: model=corei7_skylake_x, count={cpus}, ips={ips}, msrs="{msrs}"
cpu: reset_on_triple_fault=0, ignore_bad_msrs=0
memory: guest={megabytes}, host={megabytes}
romimage: file="{bios}/bochs/BIOS-bochs-latest"
vgaromimage: file="{bios}/vgabios/vgabios.bin"
optramimage1: file="{kernel}", address={kernel_address:#x}
optramimage2: file="{folder}/initrd.img", address={initrd:#x}
optramimage3: file="{folder}/info.img", address={info:#x}
floppya: 1_44="{folder}/boot.img", status=inserted, write_protected=1
boot: floppy
clock: sync=none, time0={clock}
com1: enabled=1, mode=file, dev="{folder}/serial.txt"
log: "{folder}/bochs.txt"
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
"""


@dataclass
class Run:
    """Results of a run of the machine.

    Attributes
    ----------
    files
        By name, what the guest handed over.
    truth
        The file of the log of what was executed.
    seconds
        Of this machine's time.
    clock
        What the guest's clock showed at power-on, in seconds since 1970: two runs with the same clock and the
        same files are the same, instruction by instruction.
    """

    files: dict[str, bytes]
    serial: str
    truth: Path
    seconds: float
    stopped: bool  # by itself, not by the limit
    clock: int
    status: int | None = field(init=False)

    def __post_init__(self) -> None:
        """The script's exit status; None if it did not end."""
        text = self.files.get("status")
        self.status = None if text is None else int(text)


class Machine:
    """The emulated machine, built where it is not.

    Parameters
    ----------
    folder
        The build folder.

    Raises
    ------
    Missing
        Something cannot be downloaded or built here.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or build_folder()
        with build_lock(self.folder):
            self.program = bochs.build(self.folder)
            self.bios = Packages(self.folder / "apt").unpack(self.folder / "bios", "bochsbios", "vgabios")
            self.kernel = boot_image.unpack_kernel(self.folder)
            self.userland = Userland(self.folder)
            self.host = boot_image.compile_static(boot_image.GUEST / "host.c", self.folder / "host")

    def run(
        self,
        script: str,
        folder: Path,
        *,
        files: dict[str, Path] | None = None,
        python: bool = False,
        cpus: int = 1,
        limit: float = 300,
        arguments: str = "",
        clock: int | None = None,
    ) -> Run:
        """Boots, runs `script` (busybox' shell) and switches off.

        Parameters
        ----------
        folder
            For the run's files; made if absent.
        files
            By name in the guest, programs to put there.
        python
            With Python and ptkit's wheel, which is made if it is not there; takes some seconds more to boot.
        limit
            Seconds of processor time, whatever else this machine does, after which the machine is stopped.
        arguments
            More of the kernel's command line.
        clock
            See `Run`; None: $PTKIT_EMULATED_CLOCK, else the time of now.
        """
        if clock is None:
            clock = int(os.environ.get(CLOCK, time.time()))
        folder.mkdir(parents=True, exist_ok=True)
        archive = self.userland.base(self.host)
        archive.add("script", script.encode())
        for name, path in (files or {}).items():
            archive.add(name, path.read_bytes(), 0o755)
        initrd = archive.bytes() + (self._python() if python else b"")
        (folder / "initrd.img").write_bytes(initrd)
        boot_image.write_boot_files(folder, self.kernel, len(initrd), MEMORY, arguments)
        configuration = folder / "bochsrc.txt"
        configuration.write_text(self._configuration(folder, cpus, clock))
        begun = time.monotonic()
        stopped = self._emulate(configuration, folder, limit)
        return Run(
            _received(folder / "output.bin"),
            (folder / "serial.txt").read_text(errors="replace"),
            folder / "truth.bin",
            time.monotonic() - begun,
            stopped,
            clock,
        )

    def _python(self) -> bytes:
        with build_lock(self.folder):
            return self.userland.python()

    def _configuration(self, folder: Path, cpus: int, clock: int) -> str:
        return CONFIGURATION.format(
            cpus=cpus,
            ips=IPS,
            clock=clock,
            msrs=boot_image.HERE / "instrument" / "msrs.def",
            megabytes=MEMORY // boot_image.MEGABYTE,
            bios=self.bios / "usr" / "share",
            kernel=self.kernel.image,
            kernel_address=self.kernel.address,
            initrd=boot_image.INITRD,
            info=boot_image.INFO,
            folder=folder,
        )

    def _emulate(self, configuration: Path, folder: Path, limit: float) -> bool:
        environment = os.environ | {
            "PTKIT_OUTPUT": str(folder / "output.bin"),
            "PTKIT_TRUTH": str(folder / "truth.bin"),
            "BXSHARE": str(self.bios / "usr" / "share" / "bochs"),
        }
        (folder / "serial.txt").touch()
        limited = ["prlimit", f"--cpu={limit:.0f}"]
        command = [*limited, str(self.program), "-q", "-f", str(configuration)]
        with (folder / "console.txt").open("wb") as console:
            done = subprocess.run(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=console, stderr=console, check=False,
            )  # fmt: skip
        return done.returncode >= 0


def _received(path: Path) -> dict[str, bytes]:
    """The files that guest/host.c sent."""
    data = path.read_bytes() if path.exists() else b""
    files, offset = {}, 0
    while offset + 12 <= len(data):
        length, size = struct.unpack_from("<IQ", data, offset)
        name = data[offset + 12 : offset + 12 + length].decode()
        offset += 12 + length + size
        files[name] = data[offset - size : offset]
    return files


def main() -> int:
    """Runs a script and leaves what it handed over in a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("script", type=Path, help="for busybox' shell, run as root")
    parser.add_argument("file", nargs="*", type=Path, help="programs for the guest's /bin")
    parser.add_argument("--python", action="store_true", help="with Python and ptkit in the machine")
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, help="seconds of processor time")
    parser.add_argument("--out", type=Path, default=Path("emulated-run"))
    options = parser.parse_args()
    try:
        machine = Machine()
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    shutil.rmtree(options.out, ignore_errors=True)
    programs = {f"bin/{path.name}": path for path in options.file}
    run = machine.run(
        options.script.read_text(),
        options.out.resolve(),
        files=programs,
        python=options.python,
        cpus=options.cpus,
        limit=options.limit,
    )
    for name, data in run.files.items():
        (options.out / name).write_bytes(data)
    print(run.files.get("log", run.serial.encode()).decode(errors="replace"), end="")
    print(f"{run.seconds:.1f} s, status {run.status}, in {options.out}", file=sys.stderr)
    return 0 if run.status == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
