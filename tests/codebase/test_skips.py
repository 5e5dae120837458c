"""`make test` shows why tests were skipped, and fails if a reason is not in the list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "report_skips.py"

PYTEST = """<testsuites><testsuite>
<testcase classname="" name="module"><skipped message="collection skipped">{collected}</skipped></testcase>
<testcase classname="a" name="b"><skipped type="pytest.skip" message="{reason}">x.py:3: r</skipped></testcase>
<testcase classname="a" name="c"/>
</testsuite></testsuites>
"""
GOOGLETEST = """<testsuites><testsuite name="A">
<testcase name="B" status="run" result="skipped">
<skipped message="/src/tests/unit/x.cpp:142&#x0A;{reason}"><![CDATA[/src/tests/unit/x.cpp:142
{reason}]]></skipped></testcase>
<testcase name="C" status="run" result="completed"/>
</testsuite></testsuites>
"""
MODULE = "('/x.py', 17, 'Skipped: node is not installed')"


def report(folder: Path, pytest_reason: str, google_reason: str) -> subprocess.CompletedProcess[str]:
    files = [folder / "pytest.xml", folder / "test_x.0.xml"]
    files[0].write_text(PYTEST.format(reason=pytest_reason, collected=MODULE))
    files[1].write_text(GOOGLETEST.format(reason=google_reason))
    command = [sys.executable, str(TOOL), "test", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_skips_are_shown_by_reason(tmp_path: Path) -> None:
    done = report(tmp_path, "node is not installed", "no corpus (PTKIT_CORPUS)")
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines() == [
        "skipped tests: 3",
        "     2  node is not installed",
        "     1  no corpus (PTKIT_CORPUS)",
    ]


@pytest.mark.parametrize(
    "reasons", [("does not compile", "no corpus (PTKIT_CORPUS)"), ("node is not installed", "x")]
)
def test_an_unexpected_skip_fails(tmp_path: Path, reasons: tuple[str, str]) -> None:
    done = report(tmp_path, *reasons)
    assert done.returncode == 1
    assert done.stdout.count("<-- unexpected") == 1


def test_make_test_reports_skips() -> None:
    recipes = (ROOT / "Makefile").read_text()
    assert "tools/report_skips.py test $(BUILD)/test/gtest/*.xml $(BUILD)/test/pytest.xml" in recipes
    assert "tools/report_skips.py emulated $(BUILD)/emulated.xml" in recipes


def test_a_program_that_does_not_compile_fails_its_test(tmp_path: Path) -> None:
    (tmp_path / "bad.c").write_text("int main(void) { return nothing; }\n")
    (tmp_path / "test_bad.py").write_text(
        "from pathlib import Path\n"
        "from compiling import compiled\n"
        "def test_it():\n"
        f"    compiled(Path({str(tmp_path)!r}) / 'bad', Path({str(tmp_path)!r}) / 'bad.c')\n"
    )
    support = ROOT / "tests" / "support" / "programs"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", f"pythonpath={support}"]
    done = subprocess.run([*command, tmp_path / "test_bad.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout
    assert "does not compile" in done.stdout
