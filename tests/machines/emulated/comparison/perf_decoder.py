"""Perf's own decoder of Processor Trace, as a third referee: the package's `perf script`, which runs here."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from compare import Decoded
from perf_data import by_time
from perf_script import Samples, samples
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
        self.objects = folder / ".debug"

    def path(self, name: str, kcore: str | None = None) -> Path:
        """A recording, to be opened: a file, or a folder if it has the kernel's code.

        Parameters
        ----------
        kcore
            The recording whose kernel's code it gets; None: its own.
        """
        kernel = name if kcore is None else kcore
        files = {"data": name}
        if f"{kernel}.kcore" in self._files:
            files |= {f"kcore_dir/{file}": f"{kernel}.{file}" for file in KCORE}
        folder = self._folder / name
        for target, file in files.items():
            path = folder / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._files[file])
        return folder if len(files) > 1 else folder / "data"

    def samples(self, path: Path, cpu: int | None = None) -> Samples:
        """Every instruction of a recording, and whose it is, as perf prints them: by time.

        Parameters
        ----------
        cpu
            Only this one's.
        """
        options = ["-f", "-i", str(_copy_by_time(path)), "--itrace=i0nse", "-F", "tid,ip"]
        if cpu is not None:
            options += ["-C", str(cpu)]
        command = [*self._command, "--buildid-dir", str(self.objects), "script", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return samples(done.stdout, 2, done.stderr)

    def instructions(self, path: Path, cpu: int | None = None) -> Decoded:
        """Without threads."""
        return self.decoded(self.samples(path, cpu))

    @staticmethod
    def decoded(found: Samples) -> Decoded:
        """Samples as what a decoder found."""
        return Decoded(found.from_ip, found.errors, found.warnings, "perf script")


def _copy_by_time(path: Path) -> Path:
    """The recording with switches by time (see `by_time`), and with the same kernel's code."""
    copy = path.with_name(f"{path.name}.by-time")
    data = path
    target = copy
    if path.is_dir():
        copy.mkdir(exist_ok=True)
        data, target = path / "data", copy / "data"
        if not (copy / "kcore_dir").exists():
            (copy / "kcore_dir").symlink_to(path / "kcore_dir")
    target.write_bytes(by_time(data.read_bytes()))
    return copy
