"""Describes the machine of the figures."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from harness.contest import ROOT


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    names = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.split(":", 1)[1].strip() for line in names if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _compiler(build: Path) -> str:
    for path in build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake"):
        fields = dict(
            line[4:-1].split(" ", 1)
            for line in path.read_text().splitlines()
            if line.startswith("set(CMAKE_CXX_COMPILER_") and " " in line
        )
        return " ".join(fields.get(f"CMAKE_CXX_COMPILER_{key}", '""').strip('"') for key in ("ID", "VERSION"))
    return "unknown"


def _commit() -> str:
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def machine(build: Path) -> dict[str, str]:
    """Processor, kernel, compiler, commit, load."""
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "cpu": _cpu(),
        "cpus": str(os.cpu_count()),
        "governor": governor.read_text().strip() if governor.exists() else "unknown",
        "kernel": platform.release(),
        "compiler": _compiler(build),
        "python": platform.python_version(),
        "commit": _commit(),
        "load": f"{os.getloadavg()[0]:.2f}",
    }
