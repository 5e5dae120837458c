#!/usr/bin/env python3
"""Fails on an include or import that goes upward, or sideways between folders of equal rank.

Ranks are those of docs/architecture.md: a file may include from its own folder and from lower ranks only.
pybind11 may appear only in src/bindings, Zydis only in src/insn, libipt only in src/reference.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Ranks of folders that do not exist yet are reserved.
CPP_RANKS = {
    "base": 0,
    "rtit": 1,
    "simd": 1,
    "insn": 1,
    "qemu": 1,
    "trace": 2,
    "packet": 3,
    "image": 3,
    "time": 4,
    "formats": 5,
    "softpt": 4,
    "symbol": 4,
    "flow": 5,
    "capture": 6,
    "index": 6,
    "columns": 7,
    "aggregate": 7,
    "reference": 8,
    "bindings": 9,
}

# Stages of the Python package, lowest first; modules of one stage do not import each other, unless they
# share a folder.
PYTHON_RANKS = {
    "_core": 0,
    "errors": 0,
    "arguments": 1,
    "inputs": 1,
    "text": 0,
    "memory": 1,
    "schema": 1,
    "msr": 2,
    "bundle": 2,
    "info": 2,
    "table": 3,
    "capture": 4,
    "decode": 4,
    "analysis": 5,
    "export": 6,
    "trace": 7,
    "notebook": 8,
    "cli": 9,
}

EXCLUSIVE = {"pybind11/": "bindings", "Zydis/": "insn", "intel-pt.h": "reference"}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')
IMPORT = re.compile(r"^\s*(?:from\s+(ptkit[\w.]*|\.[\w.]*)\s+import\s+(.+)|import\s+(ptkit[\w.]*))")


def cpp_problems() -> list[str]:
    problems = []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in {".h", ".cpp", ".def", ".inl"}:
            continue
        folder = path.relative_to(ROOT / "src").parts[0]
        if folder not in CPP_RANKS:
            problems.append(f"{path}: folder {folder!r} has no rank in tools/check_layers.py")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            where = f"{path.relative_to(ROOT)}:{number}"
            for prefix, owner in EXCLUSIVE.items():
                if target.startswith(prefix) and folder != owner:
                    problems.append(f"{where}: {target} may be included only in src/{owner}")
            other = target.split("/")[0]
            if other in CPP_RANKS and other != folder and CPP_RANKS[other] >= CPP_RANKS[folder]:
                ranks = CPP_RANKS[folder], CPP_RANKS[other]
                problems.append(f"{where}: {folder} (rank {ranks[0]}) includes {target} (rank {ranks[1]})")
    return problems


def python_stage(dotted: str) -> str | None:
    parts = dotted.split(".")
    if parts[0] == "ptkit":
        parts = parts[1:]
    return parts[0].lstrip("_") if parts and parts[0] != "_core" else ("_core" if parts else None)


def python_problems() -> list[str]:
    problems = []
    package = ROOT / "python" / "ptkit"
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        own = relative.parts[0].removesuffix(".py").lstrip("_")
        if own in {"init__", "main__"}:
            continue
        if own not in PYTHON_RANKS:
            problems.append(f"{path.relative_to(ROOT)}: module {own!r} has no rank in tools/check_layers.py")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = IMPORT.match(line)
            if not match:
                continue
            module = match.group(1) or match.group(3)
            names = (match.group(2) or "").replace("(", "").split(",")
            targets = [module]
            if module in {"ptkit", "."}:
                targets = [f"ptkit.{name.split(' as ')[0].strip()}" for name in names if name.strip()]
            for target in targets:
                if target.startswith(".") and len(relative.parts) > 1:
                    continue
                stage = python_stage(target.lstrip("."))
                if stage in PYTHON_RANKS and stage != own and PYTHON_RANKS[stage] >= PYTHON_RANKS[own]:
                    where = f"{path.relative_to(ROOT)}:{number}"
                    ranks = PYTHON_RANKS[own], PYTHON_RANKS[stage]
                    problems.append(f"{where}: {own} (rank {ranks[0]}) imports {target} (rank {ranks[1]})")
    return problems


def main() -> int:
    problems = cpp_problems() + python_problems()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
