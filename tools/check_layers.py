#!/usr/bin/env python3
"""Fails on an include or import that goes upward, or sideways between folders of equal level.

Levels are those of tools/layout.toml: a file may include from its own folder and from lower levels only.
Modules of Python form no circle, nor do imports for types alone. kernel/ includes only itself, by levels of
its folders and sub-folders, and its files form no circle. Nothing but tests includes tests/.

The portable folders include no header of POSIX but in src/base/posix, and none of Windows but in
src/base/win32.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent

LAYOUT = tomllib.loads((ROOT / "tools" / "layout.toml").read_text())


def sub_levels(kind: str) -> dict[str, dict[str, int]]:
    """The level of each sub-folder, by folder. The sub-folder "." is the folder itself."""
    return {
        folder: {name: level for level, names in enumerate(levels) for name in names}
        for folder, levels in LAYOUT[kind].items()
    }


CPP_LEVELS = {folder: row["level"] for folder, row in LAYOUT["folders"].items()}
SUB_LEVELS = sub_levels("subfolders")
KERNEL_LEVELS = {folder: row["level"] for folder, row in LAYOUT["kernel_folders"].items()}
KERNEL_SUB_LEVELS = sub_levels("kernel_subfolders")

# Modules of one level do not import each other, unless they share a folder.
PYTHON_LEVELS = {name: level for level, names in enumerate(LAYOUT["python"]) for name in names}

# They declare functions of the system in src/base/system, and define them in src/base/posix and win32.
PORTABLE = {folder for folder, row in LAYOUT["folders"].items() if row.get("portable")}
NOT_PORTABLE = tuple(f"{path}/" for path in LAYOUT["left_out"]["portable"])
# Includes of a system's headers, and the sub-folder for what has them.
SYSTEM_HEADERS = {
    "posix": re.compile(
        r'"base/posix/|<(sys|linux|asm|arpa|net|netinet)/|<(aio|dirent|dlfcn|fcntl|glob|grp|poll|pthread|pwd|sched'
        r"|semaphore|signal|spawn|termios|unistd)\.h>"
    ),
    "win32": re.compile(r'"base/win32/|<(windows|winternl|winioctl|io|direct|process|psapi)\.h>'),
}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')
IMPORT = re.compile(r"^\s*(?:from\s+(ptkit[\w.]*|\.[\w.]*)\s+import\s+(.+)|import\s+(ptkit[\w.]*))")


def folders_of(path: str, levels: dict[str, dict[str, int]]) -> tuple[str, str]:
    """Return the folder and the sub-folder of a file, which may be below a sub-folder that is listed.

    The path begins below src/ or kernel/. The sub-folder "." is the folder itself.
    """
    folder, *parts = path.split("/")[:-1] or [path]
    for end in range(len(parts), 0, -1):
        name = "/".join(parts[:end])
        if name in levels.get(folder, {}):
            return folder, name
    return folder, parts[0] if parts else "."


def cpp_level(folders: tuple[str, str]) -> tuple[int, int]:
    folder, sub = folders
    return CPP_LEVELS[folder], SUB_LEVELS.get(folder, {}).get(sub, 0)


def cpp_problems() -> list[str]:
    problems = []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in {".h", ".cpp", ".def", ".inl"}:
            continue
        own = folders_of(path.relative_to(ROOT / "src").as_posix(), SUB_LEVELS)
        folder, sub = own
        if folder not in CPP_LEVELS:
            problems.append(f"{path}: folder {folder!r} has no level in tools/layout.toml")
            continue
        if sub not in SUB_LEVELS.get(folder, {".": 0}):
            problems.append(f"{path}: sub-folder {sub!r} has no level in tools/layout.toml")
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            where = f"{path.relative_to(ROOT)}:{number}"
            for prefix, owner in LAYOUT["libraries"].items():
                if target.startswith(prefix) and not f"{folder}/{sub}/".startswith(f"{owner}/"):
                    problems.append(f"{where}: {target} may be included only in src/{owner}")
            portable = folder in PORTABLE and not f"{folder}/{sub}/".startswith(NOT_PORTABLE)
            for system, header in SYSTEM_HEADERS.items():
                if portable and own != ("base", system) and header.search(line):
                    problems.append(f"{where}: {target} may be included only in src/base/{system}")
            other = folders_of(target, SUB_LEVELS)
            if other[0] in CPP_LEVELS and other != own and cpp_level(other) >= cpp_level(own):
                names = "/".join(own).removesuffix("/."), "/".join(other).removesuffix("/.")
                levels = ".".join(map(str, cpp_level(own))), ".".join(map(str, cpp_level(other)))
                problems.append(
                    f"{where}: {names[0]} (level {levels[0]}) includes {target} (level {levels[1]})"
                )
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
        if own not in PYTHON_LEVELS:
            problems.append(f"{path.relative_to(ROOT)}: module {own!r} has no level in tools/layout.toml")
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
                if stage in PYTHON_LEVELS and stage != own and PYTHON_LEVELS[stage] >= PYTHON_LEVELS[own]:
                    where = f"{path.relative_to(ROOT)}:{number}"
                    levels = PYTHON_LEVELS[own], PYTHON_LEVELS[stage]
                    problems.append(
                        f"{where}: {own} (level {levels[0]}) imports {target} (level {levels[1]})"
                    )
    return problems


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


def module_name(path: Path) -> str:
    """The dotted name of a module of Python."""
    parts = path.relative_to(ROOT / "python").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_names(path: Path) -> list[tuple[str, str]]:
    """Module and name of each import of a file, also of those for types alone, and of those in functions."""
    found = []
    package = module_name(path).split(".")[: None if path.name == "__init__.py" else -1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [(module, alias.name) for alias in node.names]
    return found


def python_circles() -> list[str]:
    """Circles of imports among modules. What is imported from `ptkit` itself is of the module that has it."""
    package = ROOT / "python" / "ptkit"
    paths = {module_name(path): path for path in sorted(package.rglob("*.py"))}
    modules = {*paths, "ptkit._core"}
    root = package / "__init__.py"
    homes = {name: module for module, name in imported_names(root) if name} if root.exists() else {}
    edges: dict[str, set[str]] = {}
    for own, path in paths.items():
        targets = set()
        for module, name in imported_names(path):
            if f"{module}.{name}" in modules:
                targets.add(f"{module}.{name}")
            else:
                targets.add(homes.get(name, "") if module == "ptkit" and name else module)
        edges[own] = (targets & modules) - {own}
    circle = find_circle(edges)
    return [f"python/ptkit: circle of imports: {' -> '.join(circle)}"] if circle else []


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


def kernel_level(folders: tuple[str, str]) -> tuple[int, int] | None:
    """Level of a folder and of its sub-folder; None if one of them has no level."""
    folder, sub = folders
    level = KERNEL_LEVELS.get(folder)
    sub_level = KERNEL_SUB_LEVELS.get(folder, {sub: 0}).get(sub)
    return None if level is None or sub_level is None else (level, sub_level)


def kernel_problems() -> list[str]:
    """Includes of kernel/: levels of its folders and sub-folders, circles of files, nothing from outside.

    The node of a circle is a header with the .c file of the same name.
    """
    problems = []
    kernel = ROOT / "kernel"
    edges: dict[str, dict[str, set[str]]] = {}
    for path in sorted(kernel.rglob("*")):
        own = folders_of(path.relative_to(kernel).as_posix(), KERNEL_SUB_LEVELS)
        if path.suffix in {".h", ".c", ".def"} and kernel_level(own) is None:
            name = "/".join(own).removesuffix("/.")
            problems.append(f"{path.relative_to(ROOT)}: kernel/{name} has no level in tools/layout.toml")
    for path, where, target in lines_that_match(kernel, {".h", ".c", ".def"}, QUOTED):
        driver = kernel / path.relative_to(kernel).parts[0]
        other = resolve(path, target, kernel, kernel / "include", driver)
        if other is None or not other.is_relative_to(kernel):
            problems.append(f"{where}: {target} is not a file of kernel/")
            continue
        own, foreign = (
            folders_of(each.relative_to(kernel).as_posix(), KERNEL_SUB_LEVELS) for each in (path, other)
        )
        level, foreign_level = kernel_level(own), kernel_level(foreign)
        if level is None or foreign_level is None:
            continue
        if own != foreign and foreign_level >= level:
            name = "/".join(own).removesuffix("/.")
            levels = [".".join(map(str, each)) for each in (level, foreign_level)]
            problems.append(
                f"{where}: kernel/{name} (level {levels[0]}) includes {target} (level {levels[1]})"
            )
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
            if folder == "src" and target.startswith("ptmodel/"):
                problems.append(f"{where}: {target} is of a library that the core does without")
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
    problems = cpp_problems() + python_problems() + python_circles() + kernel_problems() + test_problems()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
