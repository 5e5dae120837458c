"""Programs for the machine that make recordings hard to follow; guest/ has their sources."""

from __future__ import annotations

from pathlib import Path

from boot_image import GUEST, compile_for_guest
from compiling import build

QUESTIONS = 20  # of mixed_workload.c: each has two switches between threads on one CPU
MIXED_WORKLOAD = "mixed_workload /lib/first.so /lib/second.so /bin/busybox true"


def compile_programs(folder: Path) -> dict[str, Path]:
    """All of them, by their paths in the guest."""
    folder.mkdir()
    files = {"bin/changes.sh": GUEST / "changes.sh", "bin/rounds": build("rounds", folder, "-static-pie")}
    for name in ("mixed_workload", "jitter"):
        files[f"bin/{name}"] = compile_for_guest(GUEST / f"{name}.c", folder / name, "-O1")
    files["bin/multi_process"] = compile_for_guest(
        GUEST / "multi_process.c", folder / "multi_process", "-O1", "-static-pie", "-pthread"
    )
    for turn, name in enumerate(("first", "second")):
        options = ("-O1", "-shared", "-fPIC", f"-DTURN={turn}")
        files[f"lib/{name}.so"] = compile_for_guest(GUEST / "plugin.c", folder / f"{name}.so", *options)
    return files
