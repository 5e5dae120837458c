"""Debian's kernel and its headers, unpacked into a build folder; nothing is installed here."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from debian import Missing, Packages

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Kernel:
    """A kernel's unpacked packages."""

    image: Path  # vmlinuz
    headers: Path  # what modules are built against


def build_folder() -> Path:
    """Downloads and builds go to $PTKIT_EMULATED_BUILD, else to build/emulated of the project."""
    return Path(os.environ.get("PTKIT_EMULATED_BUILD", ROOT / "build" / "emulated")).resolve()


@contextmanager
def build_lock(folder: Path, name: str = "lock") -> Iterator[None]:
    """One process at a time downloads and builds in `folder`. The lock is not recursive."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def debian_kernel(folder: Path) -> Kernel:
    """The kernel of this machine's Debian release; downloaded where it is not in `folder`.

    Raises
    ------
    Missing
        It cannot be had here.
    """
    with build_lock(folder):
        packages = Packages(folder / "apt")
        unpacked = folder / "kernel"
        if not unpacked.exists():
            packages.unpack(unpacked, packages.depends("linux-image-amd64", "linux-image-"))
        image = next((unpacked / "boot").glob("vmlinuz-*"))
        return Kernel(image, unpack_headers(packages, folder, image.name.removeprefix("vmlinuz-")))


def unpack_headers(packages: Packages, folder: Path, release: str) -> Path:
    """The headers of a kernel, as modules are built against them."""
    root = folder / f"headers-{release}"
    name = f"linux-headers-{release}"
    if not root.exists():
        fresh = folder / "headers.new"
        shutil.rmtree(fresh, ignore_errors=True)
        needed = [packages.depends(name, prefix) for prefix in ("linux-headers-", "linux-kbuild-")]
        packages.unpack(fresh, name, *needed)
        # The makefile names the folder in which the package would install the rest.
        makefile = fresh / "usr/src" / name / "Makefile"
        makefile.write_text(makefile.read_text().replace("include /usr/src/", f"include {root}/usr/src/"))
        fresh.rename(root)
    return root / "usr/src" / name


def find_busybox() -> Path:
    """A busybox without libraries: the one that is installed, or the package's."""
    installed = Path("/bin/busybox")
    if installed.exists():
        return installed
    root = build_folder() / "busybox"
    with build_lock(build_folder()):
        Packages(build_folder() / "apt").unpack(root, "busybox-static")
    return root / "bin/busybox"


def build_module(
    kernel: Kernel, folder: Path, *options: str, change: Callable[[Path], None] | None = None
) -> tuple[Path, str]:
    """Builds the driver from a copy of its sources in `folder`; the module, and the output of make.

    With the option PTKIT_TEST_MODEL=1 it is built with the model of the processor. `change` changes the
    sources in that folder.

    Raises
    ------
    Missing
        It cannot be compiled here.
    """
    for name in ("kernel", "tests/machines/model/kernel"):
        shutil.copytree(ROOT / name, folder / name)
    if change is not None:
        change(folder)
    sources = folder / "kernel" / "linux"
    return sources / "ptkit.ko", _make(sources, kernel, f"-j{os.cpu_count()}", "W=1", *options)


def build_guest_module(kernel: Kernel, source: Path, folder: Path) -> Path:
    """Builds a module of one source file in `folder`.

    Raises
    ------
    Missing
        It cannot be compiled here.
    """
    folder.mkdir(parents=True)
    shutil.copy(source, folder)
    (folder / "Kbuild").write_text(f"obj-m := {source.stem}.o\n")
    (folder / "Makefile").write_text("modules:\n\t$(MAKE) -C $(KDIR) M=$(CURDIR) $@\n")
    _make(folder, kernel)
    return folder / f"{source.stem}.ko"


def _make(sources: Path, kernel: Kernel, *options: str) -> str:
    command = ["make", "-C", str(sources), f"KDIR={kernel.headers}", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Missing(f"{' '.join(command)}:\n{done.stdout[-4000:]}")
    return done.stdout
