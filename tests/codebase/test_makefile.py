"""Targets of the Makefile install what they run: each works alone on a machine that has none of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSTALLER = "tools/install_packages.sh"
# Programs of recipes, and their packages. Debian's smallest system has the others.
PACKAGES = {
    "cmake": "cmake",
    "ctest": "cmake",
    "python3": "python3",
    "git": "git",
    "clang-format": "clang-format",
}
# Packages that others bring.
BROUGHT = {"python3-venv": "python3"}
ALWAYS_THERE = {"bash", "echo", "mkdir", "rm", "timeout", "touch", "xargs"}
NOTHING_RUNS = {"help", "clean"}


def makefile() -> str:
    return (ROOT / "Makefile").read_text()


def targets() -> list[str]:
    phony = re.search(r"^\.PHONY: (.*)$", makefile(), re.MULTILINE)
    assert phony is not None
    return [name for name in phony[1].split() if name not in NOTHING_RUNS]


def groups() -> dict[str, set[str]]:
    """The packages of each group of the installer, optional ones among them."""
    found: dict[str, set[str]] = {}
    for name, packages in re.findall(r'\[(\w+)\]="([^"]*)"', (ROOT / INSTALLER).read_text()):
        found.setdefault(name, set()).update(packages.split())
    return found


def recipe(target: str, build: Path) -> str:
    """The commands that make would run for a target where nothing is built."""
    folders = [f"BUILD={build}", f"VENV={build}/venv", "PYTHON=python3"]
    done = subprocess.run(
        ["make", "-n", "-B", "-C", ROOT, *folders, target], capture_output=True, text=True, check=True
    )
    return done.stdout.replace("\\\n", " ")


def programs(commands: str) -> set[str]:
    """The first word of each command that is no assignment."""
    found = set()
    for command in re.split(r"\n|&&|\|\|?|;|\$\(", commands):
        words = [word for word in command.split() if not re.match(r"\w+=", word)]
        if words and not words[0].startswith(("make", "#", '"')):
            found.add(words[0])
    return found


@pytest.fixture(autouse=True)
def has_make() -> None:
    if shutil.which("make") is None:
        pytest.skip("make is missing")


@pytest.mark.parametrize("target", targets())
def test_target_installs_what_it_runs(target: str, tmp_path: Path) -> None:
    commands = recipe(target, tmp_path)
    installed = set()
    for names in re.findall(rf"{INSTALLER} (.*)", commands):
        installed |= set().union(*(groups()[name] for name in names.split()))
    assert installed
    installed |= {BROUGHT[name] for name in installed & set(BROUGHT)}
    own = str(tmp_path)
    for program in programs(commands) - ALWAYS_THERE:
        if not program.startswith(own):
            assert PACKAGES[program] in installed, program


# The libraries of clang's sanitizers are a package of their own.
def test_clang_comes_with_its_sanitizers() -> None:
    for name in ("lint", "wine"):
        assert {"clang", "libclang-rt-dev"} <= groups()[name], name


# Recipes run after the packages that they need are installed: what is looked up before is not there yet.
def test_programs_are_looked_up_when_recipes_run() -> None:
    for name, how in re.findall(r"^(\w+) *(:=|=)(?=.*command -v)", makefile(), re.MULTILINE):
        assert how == "=", name
