"""Files that record_options.def generates are up to date; `ptkit record` offers the options of the table."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

ptkit = pytest.importorskip("ptkit", reason="the extension module is not built")

ROOT = Path(__file__).resolve().parents[2]


def test_generated_files_are_up_to_date() -> None:
    tool = ROOT / "tools" / "make_record_options.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_types_have_the_names_of_the_table() -> None:
    from ptkit.capture.option_table import option_rows

    assert list(ptkit.capture.Options.__annotations__) == list(option_rows())


def test_record_offers_each_option_with_a_flag() -> None:
    from ptkit.capture.option_table import option_rows
    from ptkit.cli.verbs import record

    parser = argparse.ArgumentParser()
    record.prepare_parser(parser)
    flags = {flag: action for action in parser._actions for flag in action.option_strings}
    for row in option_rows().values():
        for flag in row.flags.split():
            assert flags[flag].dest == row.name
            assert flags[flag].default is None
            assert row.help in (flags[flag].help or ""), flag


def test_execution_logs_are_no_options() -> None:
    assert not {"truth", "transfers"} & set(ptkit.capture.Options.__annotations__)
    with pytest.raises(TypeError, match="unknown option 'truth'"):
        ptkit.Recorder(["true"], truth="/tmp")
