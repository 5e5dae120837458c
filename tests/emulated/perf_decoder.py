"""Perf's own decoder of Processor Trace, as a third referee: the package's `perf script`, which runs here."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import numpy as np
from compare import Decoded
from userland import Userland

# Lines of the guest's script: `perf record` has put there what it recorded, but for the kernel's memory.
KEEP_OBJECTS = "tar -cf /tmp/objects.tar -C /tmp .debug\nhost put objects /tmp/objects.tar\n"
KCORE = ("kcore", "kallsyms", "modules")


def keep(name: str, data: str) -> str:
    """Lines of the guest's script that hand over a recording, made with or without --kcore."""
    copies = "".join(f"  host put {name}.{file} {data}/kcore_dir/{file}\n" for file in KCORE)
    return f"if [ -d {data} ]; then\n{copies}  host put {name} {data}/data\nelse host put {name} {data}\nfi\n"


class PerfDecoder:
    """Decodes recordings of one run of the machine.

    Parameters
    ----------
    userland
        Has perf.
    files
        What the guest handed over.
    folder
        For copies of that; made if absent.
    """

    def __init__(self, userland: Userland, files: dict[str, bytes], folder: Path) -> None:
        self._files = files
        self._folder = folder
        self._command = userland.command("usr/bin/perf")
        with tarfile.open(fileobj=io.BytesIO(files["objects"])) as archive:
            archive.extractall(folder)

    def instructions(self, name: str, cpu: int | None, kcore: str | None = None) -> Decoded:
        """Every instruction of a recording.

        Parameters
        ----------
        cpu
            Only this one's; None: all, by time.
        kcore
            The recording that has the kernel's code.
        """
        data = self._folder / f"{name}.data"
        data.write_bytes(self._files[name])
        options = ["-f", "-i", str(data), "--itrace=i0nse", "-F", "ip"]
        if cpu is not None:
            options += ["-C", str(cpu)]
        if kcore is not None:
            options += ["--kallsyms", str(self._kernel(kcore) / "kallsyms")]
        command = [*self._command, "--buildid-dir", str(self._folder / ".debug"), "script", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        errors = [line.strip() for line in lines if "error" in line]
        ips = [int(line, 16) for line in lines if line and "error" not in line]
        return Decoded(np.array(ips, dtype=np.uint64), errors)

    def _kernel(self, name: str) -> Path:
        folder = self._folder / f"{name}.kernel"
        folder.mkdir(exist_ok=True)
        for file in KCORE:
            (folder / file).write_bytes(self._files[f"{name}.{file}"])
        return folder
