#!/usr/bin/env python3
"""Fails on an include or import that goes upward, or sideways between folders of equal rank.

Ranks are those of docs/architecture.md: a file may include from its own folder and from lower ranks only.
pybind11 may appear only in src/bindings, Zydis only in src/insn, libipt only in src/reference.
kernel/ includes only itself, by ranks of its folders and rooms, and its files form no circle. Nothing but
tests includes tests/.

The portable folders include no header of POSIX but in src/base/posix, and none of Windows but in
src/base/windows.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A folder's rank, and those of its rooms within it. A file includes from its own room and from lower ones.
CPP_RANKS = {
    "base": 0,
    "confined": 1,
    "msr": 1,
    "cpu": 1,
    "insn": 1,
    "qemu": 1,
    "trace": 2,
    "packet": 3,
    "source": 3,
    "image": 3,
    "dwarf": 4,
    "pdb": 4,
    "time": 4,
    "softpt": 4,
    "ptmodel": 5,
    "unwind": 4,
    "symbol": 5,
    "sideband": 5,
    "formats": 6,
    "flow": 6,
    "capture": 7,
    "index": 7,
    "lines": 7,
    "client": 8,
    "parser": 8,
    "columns": 8,
    "aggregate": 8,
    "calls": 9,
    "capi": 9,
    "reference": 9,
    "bindings": 10,
}
ROOM_RANKS = {
    "base": {".": 0, "system": 1, "posix": 2, "windows": 2},
    "formats": {
        "common": 0,
        "ptk": 1,
        "symbols": 1,
        "perf_event": 1,
        "perf_data": 2,
        "perf_export": 3,
        "foreign": 3,
        ".": 4,
    },
    "flow": {"rows": 0, "code": 1, "walk": 2, "events": 3, "fast": 4, "decoder": 5, "parallel": 6},
    "capture": {
        "common": 0,
        "files": 1,
        "output": 2,
        "encode": 2,
        "sideband": 3,
        "emulator": 4,
        "ptrace": 4,
        "hardware": 5,
        "perf": 6,
        "driver": 7,
        "windows": 8,
    },
    "columns": {"memory": 0, ".": 1, "rows": 2, "sources": 3, "read": 4},
    "calls": {"code": 0, "stack": 1, ".": 2, "sums": 3},
    "dwarf": {".": 0, "files": 1},
    "pdb": {"dump": 0, ".": 1, "posix": 2, "windows": 2},
    "bindings": {".": 0, "recording": 1, "capture": 2, "posix": 3, "windows": 3},
}

# Stages of the Python package, lowest first; modules of one stage do not import each other, unless they
# share a folder.
PYTHON_RANKS = {
    "_core": 0,
    "errors": 0,
    "system": 0,
    "arguments": 1,
    "inputs": 1,
    "text": 0,
    "memory": 1,
    "schema": 1,
    "msr": 2,
    "bundle": 2,
    "images": 3,
    "symbols": 2,
    "info": 2,
    "table": 3,
    "capture": 4,
    "decode": 4,
    "analysis": 5,
    "export": 6,
    "trace": 7,
    "planning": 8,
    "notebook": 8,
    "selftest": 8,
    "cli": 9,
}

EXCLUSIVE = {"pybind11/": "bindings", "Zydis/": "insn", "elfutils/": "dwarf", "intel-pt.h": "reference"}
# Folders that compile without POSIX. What they ask of the system is declared in src/base/system, and defined
# in the rooms posix and windows.
PORTABLE = {
    "base",
    "msr",
    "cpu",
    "insn",
    "trace",
    "packet",
    "source",
    "image",
    "time",
    "softpt",
    "ptmodel",
    "unwind",
    "symbol",
    "sideband",
    "flow",
    "index",
    "lines",
    "columns",
    "aggregate",
    "calls",
}
# Includes of a system's headers, and the room for what has them.
SYSTEM_HEADERS = {
    "posix": re.compile(
        r'"base/posix/|<(sys|linux|asm|arpa|net|netinet)/|<(aio|dirent|dlfcn|fcntl|glob|grp|poll|pthread|pwd|sched'
        r"|semaphore|signal|spawn|termios|unistd)\.h>"
    ),
    "windows": re.compile(r'"base/windows/|<(windows|winternl|winioctl|io|direct|process|psapi)\.h>'),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')
IMPORT = re.compile(r"^\s*(?:from\s+(ptkit[\w.]*|\.[\w.]*)\s+import\s+(.+)|import\s+(ptkit[\w.]*))")


def place_of(path: str) -> tuple[str, str]:
    """Return the folder and the room of a file.

    The path begins below src/ or kernel/. The room "." is the folder itself.
    """
    parts = path.split("/")
    return parts[0], parts[1] if len(parts) > 2 else "."


def cpp_rank(place: tuple[str, str]) -> tuple[int, int]:
    folder, room = place
    return CPP_RANKS[folder], ROOM_RANKS.get(folder, {}).get(room, 0)


def cpp_problems() -> list[str]:
    problems = []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in {".h", ".cpp", ".def", ".inl"}:
            continue
        own = place_of(path.relative_to(ROOT / "src").as_posix())
        folder, room = own
        if folder not in CPP_RANKS:
            problems.append(f"{path}: folder {folder!r} has no rank in tools/check_layers.py")
            continue
        if room not in ROOM_RANKS.get(folder, {".": 0}):
            problems.append(f"{path}: room {room!r} has no rank in tools/check_layers.py")
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
            for room, header in SYSTEM_HEADERS.items():
                if folder in PORTABLE and own != ("base", room) and header.search(line):
                    problems.append(f"{where}: {target} may be included only in src/base/{room}")
            other = place_of(target)
            if other[0] in CPP_RANKS and other != own and cpp_rank(other) >= cpp_rank(own):
                names = "/".join(own).removesuffix("/."), "/".join(other).removesuffix("/.")
                ranks = ".".join(map(str, cpp_rank(own))), ".".join(map(str, cpp_rank(other)))
                problems.append(f"{where}: {names[0]} (rank {ranks[0]}) includes {target} (rank {ranks[1]})")
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


# Folders of kernel/: the interface and register numbers, what every driver compiles, the drivers.
KERNEL_RANKS = {"include": 0, "common": 1, "linux": 2, "windows": 2}
KERNEL_ROOM_RANKS = {
    "linux": {"machine": 0, "follow": 1, "sideband": 2, "unit": 2, "session": 3, ".": 4},
    "windows": {"machine": 0, "sideband": 1, "unit": 1, "session": 2, ".": 3},
}

# tests/unit/<folder> may include headers of its own folder and of the shared one.
SHARED_TESTS = "support"

QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
MODULE = re.compile(r"^\s*(?:from\s+(\w+)[\w.]*\s+import\b|import\s+(\w+))")
DEFINITION = re.compile(r"^(?!static\b)[a-z][\w *]*?\b(ptkit_\w+)\(")

Match = tuple[Path, str, str]


def lines_that_match(folder: Path, suffixes: set[str], pattern: re.Pattern[str]) -> list[Match]:
    """Each include or import of the files below a folder: the file, where it stands, and what it names."""
    found: list[Match] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in suffixes:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := pattern.match(line):
                target = next(group for group in match.groups() if group)
                found.append((path, f"{path.relative_to(ROOT)}:{number}", target))
    return found


def resolve(path: Path, target: str, *folders: Path) -> Path | None:
    """The file that an include names, seen from another file."""
    for folder in (path.parent, *folders):
        if (folder / target).is_file():
            return (folder / target).resolve()
    return None


def find_circle(edges: dict[str, set[str]]) -> list[str]:
    """Nodes of a circle, the first one also last; empty if there is none."""
    finished: set[str] = set()

    def visit(node: str, way: list[str]) -> list[str]:
        if node in way:
            return [*way[way.index(node) :], node]
        if node in finished:
            return []
        for other in sorted(edges.get(node, ())):
            if circle := visit(other, [*way, node]):
                return circle
        finished.add(node)
        return []

    return next((circle for node in sorted(edges) if (circle := visit(node, []))), [])


def kernel_rank(place: tuple[str, str]) -> tuple[int, int] | None:
    """Rank of a folder and rank of its room; None if one of them has no rank."""
    folder, room = place
    rank = KERNEL_RANKS.get(folder)
    room_rank = KERNEL_ROOM_RANKS.get(folder, {room: 0}).get(room)
    return None if rank is None or room_rank is None else (rank, room_rank)


def kernel_problems() -> list[str]:
    """Includes of kernel/: ranks of its folders and rooms, circles of its files, and nothing from outside.

    The node of a circle is a header with the .c file of the same name.
    """
    problems = []
    kernel = ROOT / "kernel"
    edges: dict[str, dict[str, set[str]]] = {}
    for path in sorted(kernel.rglob("*")):
        own = place_of(path.relative_to(kernel).as_posix())
        if path.suffix in {".h", ".c", ".def"} and kernel_rank(own) is None:
            name = "/".join(own).removesuffix("/.")
            problems.append(f"{path.relative_to(ROOT)}: kernel/{name} has no rank in tools/check_layers.py")
    for path, where, target in lines_that_match(kernel, {".h", ".c", ".def"}, QUOTED):
        driver = kernel / path.relative_to(kernel).parts[0]
        other = resolve(path, target, kernel, kernel / "include", driver)
        if other is None or not other.is_relative_to(kernel):
            problems.append(f"{where}: {target} is not a file of kernel/")
            continue
        own, foreign = (place_of(each.relative_to(kernel).as_posix()) for each in (path, other))
        rank, foreign_rank = kernel_rank(own), kernel_rank(foreign)
        if rank is None or foreign_rank is None:
            continue
        if own != foreign and foreign_rank >= rank:
            name = "/".join(own).removesuffix("/.")
            ranks = [".".join(map(str, each)) for each in (rank, foreign_rank)]
            problems.append(f"{where}: kernel/{name} (rank {ranks[0]}) includes {target} (rank {ranks[1]})")
        elif own[0] == foreign[0]:
            node, target_node = (
                each.relative_to(kernel / own[0]).with_suffix("").as_posix() for each in (path, other)
            )
            if node != target_node:
                edges.setdefault(own[0], {}).setdefault(node, set()).add(target_node)
    for folder, graph in edges.items():
        if circle := find_circle(graph):
            problems.append(f"kernel/{folder}: circle of includes: {' -> '.join(circle)}")
    # Otherwise circles of files hide in a header that declares the functions of several.
    drivers = [
        match
        for name in ("linux", "windows")
        for match in lines_that_match(kernel / name, {".c"}, DEFINITION)
    ]
    for path, where, name in drivers:
        header = path.with_suffix(".h")
        if not header.exists() or not re.search(rf"\b{name}\(", header.read_text()):
            problems.append(f"{where}: {name}() is not declared in {header.name}")
    for _, where, target in lines_that_match(ROOT / "src", {".h", ".cpp", ".def", ".inl"}, INCLUDE):
        if (
            target.startswith(("kernel/linux/", "linux/"))
            and (kernel / target.removeprefix("kernel/")).exists()
        ):
            problems.append(f"{where}: {target} is of the Linux driver")
    return problems


def test_problems() -> list[str]:
    """Includes and imports of tests: none from products, none between folders of unit tests."""
    problems = []
    tests = ROOT / "tests"
    for folder in ("src", "kernel", "benchmarks"):
        suffixes = {".h", ".c", ".cpp", ".def", ".inl"}
        for path, where, target in lines_that_match(ROOT / folder, suffixes, INCLUDE):
            other = resolve(path, target, ROOT / "src", ROOT / "kernel", ROOT, tests, tests / "unit")
            if other is not None and other.is_relative_to(tests):
                problems.append(f"{where}: {target} is of tests/")
    for path, where, target in lines_that_match(tests / "unit", {".h", ".cpp"}, QUOTED):
        other = resolve(path, target, tests)
        if other is None or not other.is_relative_to(tests / "unit"):
            continue
        own, foreign = (each.relative_to(tests / "unit").parts[0] for each in (path, other))
        if foreign not in {own, SHARED_TESTS}:
            problems.append(
                f"{where}: {target} is of tests/unit/{foreign}; move it to tests/unit/{SHARED_TESTS}"
            )
    support = tests / "support"
    shared = {path.stem for path in support.rglob("*.py")}
    own_modules = {path.stem for path in tests.rglob("*.py")} - shared
    for _, where, target in lines_that_match(support, {".py"}, MODULE):
        if target in own_modules:
            problems.append(f"{where}: tests/support imports {target}, a module of tests")
    for _, where, target in lines_that_match(ROOT / "python", {".py", ".pyi"}, MODULE):
        if target in shared | own_modules | {"tests"}:
            problems.append(f"{where}: {target} is a module of tests")
    return problems


def main() -> int:
    problems = cpp_problems() + python_problems() + kernel_problems() + test_problems()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
