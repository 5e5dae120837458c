"""The programs for slowdown: natively, recorded, and in QEMU alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QEMU = "qemu-x86_64"


@dataclass(frozen=True)
class Program:
    """One line of the table. QEMU runs what a program executes on the processor itself, so that programs with
    children must start these in QEMU, too: `emulated`."""

    argv: list[str]
    emulated: list[str]
    output: Path | None = None  # the output file; None: standard output


def _plain(argv: list[str]) -> Program:
    program = shutil.which(argv[0])
    return Program(argv, [QEMU, program or argv[0], *argv[1:]])


def _text(folder: Path, size: int) -> str:
    path = folder / "text"
    line, value, lines = 0, 1, []
    while size > 0:
        value = value * 1103515245 + 12345 & 0x7FFFFFFF
        lines.append(f"{line} the {value % 9973} quick {value >> 16} brown fox {value % 31}\n")
        size -= len(lines[-1])
        line += 1
    path.write_text("".join(lines))
    return str(path)


def _compiled(folder: Path, source: str, *flags: str) -> str:
    program = folder / Path(source).stem
    (path,) = (ROOT / "tests" / "programs").rglob(source)
    compiler = "g++" if path.suffix == ".cpp" else "gcc"
    subprocess.run([compiler, "-O2", "-pthread", *flags, "-o", str(program), str(path)], check=True)
    return str(program)


def gzip(folder: Path) -> Program:
    return _plain(["gzip", "-c", _text(folder, 10_000_000)])


def python(folder: Path) -> Program:
    # The program itself: python3 may be a script.
    interpreter = str(Path(sys.executable).resolve())
    return _plain([interpreter, "-S", "-E", "-c", "print(sum(len(str(i * i)) for i in range(1_000_000)))"])


def exceptions(folder: Path) -> Program:
    return _plain([_compiled(folder, "exceptions.cpp"), "2000"])


def threads(folder: Path) -> Program:
    return _plain(["sort", "--parallel=2", "-S", "64M", "-k", "4", _text(folder, 8_000_000)])


def gcc(folder: Path) -> Program:
    source, output = folder / "source.c", folder / "source.o"
    bodies = (
        f"int f{i}(int x, int* y) {{ for (int j = x; j > 0; --j) y[j] ^= x * {i} + y[{i % 7}]; return 0; }}\n"
        for i in range(100)
    )
    source.write_text("#include <stdio.h>\n" + "".join(bodies))
    # With -B the assembler gets its path, which QEMU needs: it does not look into PATH.
    assembler = Path(shutil.which("as") or "/usr/bin/as")
    words = [f"-B{assembler.parent}/", "-O2", "-c", "-o", str(output), str(source)]
    emulated = [QEMU, shutil.which("gcc") or "gcc", "-wrapper", QEMU, *words]
    return Program(["gcc", *words], emulated, output)


def bash(folder: Path) -> Program:
    def script(run: str) -> str:
        return f"{run}seq 200000 | {run}sed 's/1/one/' | {run}sort | {run}uniq -c | {run}tail -n 3"

    prefix = f"{QEMU} {Path(shutil.which('seq') or '/usr/bin/seq').parent}/"
    shell = shutil.which("bash") or "bash"
    return Program(["bash", "-c", script("")], [QEMU, shell, "-c", script(prefix)])


def luajit(folder: Path) -> Program:
    body = "t[i % 50] = (t[i % 50] or 0) + i; if i % 7 == 0 then s = s + #tostring(i) end"
    return _plain(["luajit", "-e", f"local t, s = {{}}, 0 for i = 1, 2000000 do {body} end print(s)"])


def node(folder: Path) -> Program:
    loop = "for (let i = 0; i < 300000; i++) { s += String(i % 97).length * (i & 3) }"
    return _plain(["node", "-e", f"let s = 0; {loop} console.log(s)"])


def static(folder: Path) -> Program:
    return _plain([_compiled(folder, "odd.c", "-static"), "50000"])


PROGRAMS: dict[str, Callable[[Path], Program]] = {
    "gzip of 10 MB": gzip,
    "python3 -c": python,
    "C++ with exceptions": exceptions,
    "sort, 2 threads": threads,
    "gcc -O2 -c": gcc,
    "bash, pipeline of 5": bash,
    "luajit": luajit,
    "node": node,
    "static": static,
}

# Short enough for single steps.
SMALL: dict[str, Callable[[Path], Program]] = {
    "true": lambda folder: _plain(["true"]),
    "gzip of 1 kB": lambda folder: _plain(["gzip", "-c", _text(folder, 1000)]),
    "luajit, one line": lambda folder: _plain(["luajit", "-e", "print(7)"]),
    "static, small": lambda folder: _plain([_compiled(folder, "odd.c", "-static")]),
}
