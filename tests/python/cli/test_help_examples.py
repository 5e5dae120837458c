"""Every command in a help text runs: those of other machines' hardware as far as this machine can."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import webbrowser
from pathlib import Path

import pytest
from compiling import compiled

import ptkit
from ptkit import _core, capture
from ptkit.cli import main
from ptkit.cli.main import VERBS, build_parser
from ptkit.cli.verbs import bench

BACKENDS = {one.name: one for one in capture.probe()}

pytestmark = pytest.mark.skipif(
    not BACKENDS["emulator"].available, reason=f"no emulator here: {BACKENDS['emulator'].missing}"
)

# A program with the functions of the examples, that raises the signal of the examples.
PROGRAM = """
#include <signal.h>
#include <stdlib.h>
static volatile int sum;
__attribute__((noinline)) void parse(void) { sum += 1; }
__attribute__((noinline)) void free_all(void) { sum += 2; }
int main(void) {
  signal(SIGUSR1, SIG_IGN);
  for (int i = 0; i < 2000; ++i) free(malloc(16 + (unsigned)sum % 2));
  parse();
  raise(SIGUSR1);
  free_all();
  return 0;
}
"""


def _commands(start: str) -> list[str]:
    """Lines of examples that begin with a word."""
    texts = [importlib.import_module(f"ptkit.cli.verbs.{verb}").EXAMPLES for verb in VERBS]
    texts.append(build_parser().epilog or "")
    lines = {line.strip() for text in texts for line in text.splitlines()[1:]}
    return sorted(line for line in lines if line.startswith(start))


OURS = _commands("ptkit ")
RECORD = [line for line in OURS if line.startswith("ptkit record ")]
# Probes that need a back end with which the processor traces.
PLAN = [line for line in OURS if "--plan" in line and re.search(" -p | -a|--levels", line)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "README.md").write_text("b\na\n")
    (folder / "raw.pt").write_bytes(bytes.fromhex("0282" * 8 + "0223" + "71001040000000000a01"))
    (folder / "nine.bin").write_bytes(bytes.fromhex("711093388506f80000"))
    (folder / "code.bin").write_bytes(b"\x90" * 64)
    (folder / "program.c").write_text(PROGRAM)
    compiled(folder / "a.out", "-O1", folder / "program.c")
    shutil.copy(folder / "a.out", folder / "server")
    ptkit.Recorder(["sort", str(folder / "README.md")], folder / "sort.ptk", backend="emulator").run()
    for name in ("before.ptk", "after.ptk"):
        shutil.copy(folder / "sort.ptk", folder / name)
    return folder


def _shell(line: str, folder: Path) -> None:
    """Run a line with `ptkit` as the one of this test; fails if any part of a pipe does."""
    line = re.sub(r"(^|\s)ptkit ", rf"\1{sys.executable} -m ptkit ", line)
    paths = [str(Path(ptkit.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C", "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"


def _bounded(line: str) -> str:
    """All rows of a whole recording take long, and figures that are exact: a few do here."""
    verb = line.split()[1]
    if verb in ("packets", "branches", "instructions") and "--limit" not in line and "--help" not in line:
        return f"{line} --limit 100"
    if verb == "bench" and "--seconds" not in line:
        return f"{line} --seconds 0.001"
    return line


@pytest.mark.parametrize("line", [line for line in OURS if line not in RECORD + PLAN])
def test_example_runs(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "ptkit verify" in line and _core.reference_version() is None:
        pytest.skip("libipt is not in this build")
    ours, _, other = line.partition(" | ")
    if other and shutil.which(other.split()[0]) is not None:
        _shell(line, folder)
        return
    monkeypatch.chdir(folder)
    monkeypatch.setattr(bench, "_MOST_INSTRUCTIONS", 100_000)
    monkeypatch.setattr(bench, "_MADE_BYTES", 8 << 10)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))  # pages without a name of their own stay there
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    words = shlex.split(_bounded(ours.partition(" > ")[0]))[1:]
    if "--help" in words:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
    else:
        assert main(words) == 0, capsys.readouterr().err


@pytest.mark.parametrize("line", RECORD)
def test_record_example_runs_where_its_back_end_works(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = shlex.split(line)[1:]
    options = build_parser().parse_args(words)
    records = "bts" if options.bts else "branch_stack" if options.branch_stack else "packets"
    by_perf = records != "packets" or options.backend == "perf"
    backend = BACKENDS[
        "perf" if by_perf else options.backend if options.backend not in (None, "auto") else "emulator"
    ]
    if "-o" not in words:
        words[1:1] = ["-o", f"{backend.name}.ptk"]
    if backend.recording([records]).available:
        if options.backend == "auto" and not by_perf:
            words[1:1] = ["--backend", "emulator"]
        assert main(words) == 0, capfd.readouterr().err
        return
    assert main(words) == 2
    error = capfd.readouterr().err
    assert "does not work on this system" in error or "no back end on this system can do this" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("line", PLAN)
def test_plan_example_runs_where_the_processor_traces(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = [str(os.getpid()) if word == "1234" else word for word in shlex.split(line)[1:]]
    if any(BACKENDS[name].available for name in ("perf", "driver")):
        assert main(words) == 0, capfd.readouterr().err
        return
    assert main(words) == 2
    error = capfd.readouterr().err
    assert "no back end on this system can do this" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("line", _commands("perf "))
def test_perf_example_reads_the_export(line: str, folder: Path) -> None:
    if shutil.which("perf") is None:
        pytest.skip("no perf here: install linux-perf (Debian) or perf")
    _shell("ptkit export sort.ptk --with-code all -o sort.data", folder)
    _shell(f"{line} | head -1000 > /dev/null || [ $? = 141 ]", folder)
