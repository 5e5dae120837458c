"""Programs of the emulated machine: busybox, perf, and, on demand, Python with ptkit's wheel."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from configparser import ConfigParser
from pathlib import Path

from boot_image import GUEST, run
from cpio import Archive
from debian import Missing, Packages
from wheels import find_wheel

PACKAGES = ("busybox-static", "linux-perf", "python3-numpy", "python3-rich")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADER = "lib64/ld-linux-x86-64.so.2"
# Of Python's folders and files what no program of ours needs.
LEFT_OUT = {"test", "tests", "idlelib", "ensurepip", "pydoc_data", "include"}
NOT_FOR_RUNNING = {".a", ".h", ".pxd", ".pyi", ".js"}


class Userland:
    """Debian's packages, unpacked, and archives of them for the machine's first file system.

    Parameters
    ----------
    folder
        The build folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = Packages(folder / "apt").unpack_closure(folder / "userland", *PACKAGES)

    def base(self, host: Path) -> Archive:
        """Busybox, perf with its libraries, our own program, and what starts them."""
        archive = Archive()
        for name in ("proc", "sys", "dev", "tmp", "sbin", "etc"):
            archive.folder(name)
        archive.device("dev/console", 5, 1)
        archive.add("init", (GUEST / "init").read_bytes(), 0o755)
        archive.add("bin/busybox", (self.tree / "bin" / "busybox").read_bytes(), 0o755)
        archive.add("bin/host", host.read_bytes(), 0o755)
        self._add_program(archive, "usr/bin/perf")
        return archive

    def python(self) -> bytes:
        """Archives with Debian's Python, NumPy and rich, and with ptkit as its wheel installs it."""
        version = (self.tree / "usr/bin/python3").readlink().name.removeprefix("python")
        wheel = find_wheel(self.folder, version)
        ours = self.folder / f"ptkit-{_hash(Path(__file__), wheel)}.cpio"
        if not ours.exists():
            _write(ours, self._ptkit(wheel, version))
        debian = self.folder / f"python-{_hash(Path(__file__))}.cpio"
        if not debian.exists():
            _write(debian, self._debian_python(version))
        return debian.read_bytes() + ours.read_bytes()

    def command(self, program: str) -> list[str]:
        """How an unpacked program is called on this machine, where it is not installed."""
        folders = ":".join(str(folder) for folder in self._library_folders())
        return [str(self._resolved(LOADER)), "--library-path", folders, str(self.tree / program)]

    def _debian_python(self, version: str) -> Archive:
        archive = Archive()
        name = f"python{version}"
        archive.link("usr/bin/python3", name)
        self._add_program(archive, f"usr/bin/{name}")
        stage = self.folder / "python.new"
        shutil.rmtree(stage, ignore_errors=True)
        for folder in (f"usr/lib/{name}", "usr/lib/python3"):
            _copy(self.tree / folder, stage / folder)
        self._add_modules(archive, stage, version)
        return archive

    def _ptkit(self, wheel: Path, version: str) -> Archive:
        """Installs a wheel as pip does: its files, and a command for each entry point."""
        stage = self.folder / "ptkit.new"
        shutil.rmtree(stage, ignore_errors=True)
        packages = stage / f"usr/local/lib/python{version}/dist-packages"
        with zipfile.ZipFile(wheel) as file:
            for member in file.infolist():
                path = Path(file.extract(member, packages))
                path.chmod(path.stat().st_mode | member.external_attr >> 16 & 0o111)
        archive = Archive()
        (points,) = stage.rglob("*.dist-info/entry_points.txt")
        parser = ConfigParser()
        parser.read(points)
        for name, target in parser["console_scripts"].items():
            module, _, function = target.partition(":")
            script = (
                f"#!/usr/bin/python3\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
            )
            archive.add(f"usr/local/bin/{name}", script.encode(), 0o755)
        self._add_modules(archive, stage, version)
        return archive

    def _add_modules(self, archive: Archive, stage: Path, version: str) -> None:
        """Modules of Python, compiled here by the Python of the machine, and the libraries of extensions."""
        compile_all = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")
        python = self.command(f"usr/bin/python{version}")
        run(*python, *compile_all, "-s", stage, "-p", "/", stage, PYTHONHOME=str(self.tree / "usr"))
        files = [path for path in sorted(stage.rglob("*")) if path.is_file()]
        for path in files:
            archive.add(str(path.relative_to(stage)), path.read_bytes(), path.stat().st_mode & 0o777)
        libraries = [path for path in files if ".so" in path.suffixes]
        self._add_libraries(archive, libraries, {path.name for path in libraries})
        shutil.rmtree(stage)

    def _add_program(self, archive: Archive, name: str) -> None:
        archive.add(LOADER, self._resolved(LOADER).read_bytes(), 0o755)
        archive.add(name, (self.tree / name).read_bytes(), 0o755)
        self._add_libraries(archive, [self.tree / name], set())

    def _add_libraries(self, archive: Archive, programs: list[Path], seen: set[str]) -> None:
        """The libraries that programs need, apart from those that are there."""
        waiting, seen = list(programs), set(seen)
        while waiting:
            for line in run("objdump", "-p", waiting.pop()).splitlines():
                kind, _, library = line.strip().partition(" ")
                library = library.strip()
                if kind != "NEEDED" or library in seen:
                    continue
                seen.add(library)
                paths = [folder / library for folder in self._library_folders()]
                found = [path for path in paths if os.path.lexists(path)]
                if not found:
                    raise Missing(f"no {library} among the unpacked packages")
                path = self._resolved(str(found[0].relative_to(self.tree)))
                archive.add(f"{LIBRARIES}/{library}", path.read_bytes(), 0o755)
                waiting.append(path)

    def _library_folders(self) -> list[Path]:
        # Of BLAS and LAPACK there are several to choose from; nobody has chosen here.
        parts = ("lib/x86_64-linux-gnu", LIBRARIES, f"{LIBRARIES}/blas", f"{LIBRARIES}/lapack")
        return [self.tree / part for part in parts]

    def _resolved(self, name: str) -> Path:
        """A file with links followed inside of the tree."""
        path = self.tree / name
        while path.is_symlink():
            target = path.readlink()
            path = self.tree / str(target).lstrip("/") if target.is_absolute() else path.parent / target
        return path


def _copy(source: Path, into: Path) -> None:
    def left_out(folder: str, names: list[str]) -> list[str]:
        links = (name for name in names if (Path(folder) / name).is_symlink())  # to /etc
        return [*links, *(name for name in names if name in LEFT_OUT or Path(name).suffix in NOT_FOR_RUNNING)]

    shutil.copytree(source, into, ignore=left_out)


def _write(path: Path, archive: Archive) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(archive.bytes())
    unfinished.rename(path)


def _hash(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
