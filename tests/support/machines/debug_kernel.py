"""A kernel that looks for mistakes: KASAN, lockdep, kmemleak and others, from Debian's source."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from debian import Missing, Packages
from kernels import ROOT, Kernel, build_lock

CONFIG = ROOT / "tests" / "machines" / "linux_driver" / "debug.config"


def debug_kernel(folder: Path) -> Kernel:
    """The kernel with the options of debug.config (CONFIG); built in `folder` unless it is there.

    A changed configuration is another kernel, in a folder of its own.

    Raises
    ------
    Missing
        It cannot be had here; says why.
    """
    tree = folder / f"debug-kernel-{hashlib.sha256(CONFIG.read_bytes()).hexdigest()[:12]}"
    with build_lock(folder, "debug-kernel.lock"):
        if not tree.exists():
            fresh = unpack_source(folder)
            build(fresh, folder)
            fresh.rename(tree)
    return Kernel(tree / "arch/x86/boot/bzImage", tree)


def unpack_source(folder: Path) -> Path:
    """A fresh tree of the kernel's source."""
    packages = Packages(folder / "apt")
    with build_lock(folder):
        source = packages.unpack(folder / "source", packages.depends("linux-source", "linux-source-"))
    tarball = next((source / "usr/src").glob("linux-source-*.tar.xz"))
    tree = folder / "debug-kernel.new"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    run(["tar", "-xf", str(tarball), "-C", str(tree), "--strip-components=1"])
    return tree


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Runs a command, or says what it printed last."""
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise Missing(f"{' '.join(command)}:\n{done.stdout[-4000:]}")


def options(config: Path) -> set[str]:
    """Options that a configuration sets."""
    return {line for line in config.read_text().splitlines() if line.startswith("CONFIG_")}


def build(tree: Path, folder: Path) -> None:
    """Configures and compiles, with few processes: it is done once."""
    needed = ("flex", "bison", "m4", "libfl2", "libsigsegv2")
    with build_lock(folder):
        tools = Packages(folder / "apt").unpack(folder / "tools", *needed)
    environment = {
        **os.environ,
        "PATH": f"{tools}/usr/bin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": f"{tools}/usr/lib/x86_64-linux-gnu",
        "M4": f"{tools}/usr/bin/m4",
        "BISON_PKGDATADIR": f"{tools}/usr/share/bison",
        "KCONFIG_ALLCONFIG": str(CONFIG),
    }
    make = ["nice", "-n", "15", "make", "-C", str(tree), f"-j{os.cpu_count()}"]
    run([*make, "allnoconfig"], environment)
    lost = options(CONFIG) - options(tree / ".config")
    if lost:
        raise Missing(f"the kernel's configuration does not take {', '.join(sorted(lost))}")
    run([*make, "bzImage", "modules"], environment)
