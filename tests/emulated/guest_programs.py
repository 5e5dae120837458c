"""Programs for the machine that make recordings hard to follow; guest/ has their sources."""

from __future__ import annotations

from pathlib import Path

from boot_image import HERE, compile_for_guest
from compiling import build

QUESTIONS = 20  # of lively.c: each has two switches between threads on one CPU
LIVELY = "lively /lib/first.so /lib/second.so /bin/busybox true"


def compile_programs(folder: Path) -> dict[str, Path]:
    """All of them, by their paths in the guest."""
    folder.mkdir()
    guest = HERE / "guest"
    files = {"bin/changes.sh": guest / "changes.sh", "bin/rounds": build("rounds", folder, "-static-pie")}
    for name in ("lively", "jitter"):
        files[f"bin/{name}"] = compile_for_guest(guest / f"{name}.c", folder / name, "-O1")
    files["bin/crowd"] = compile_for_guest(
        guest / "crowd.c", folder / "crowd", "-O1", "-static-pie", "-pthread"
    )
    for turn, name in enumerate(("first", "second")):
        options = ("-O1", "-shared", "-fPIC", f"-DTURN={turn}")
        files[f"lib/{name}.so"] = compile_for_guest(guest / "plugin.c", folder / f"{name}.so", *options)
    return files
