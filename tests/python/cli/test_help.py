"""Help of verbs, and errors that name the nearest word."""

from __future__ import annotations

import pytest

from ptkit.cli import main
from ptkit.cli.main import VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main([verb, "--help"])
    assert exit_info.value.code == 0
    out = capsys.readouterr().out
    assert f"ptkit {verb}" in out.split("examples:")[1]
    assert "--json" in out


def _help(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as exit_info:
        main(list(words))
    assert exit_info.value.code == 0
    return capsys.readouterr().out


RARE = (
    "--bts-index",
    "--ring-offset",
    "--stop-range",
    "--tsc-ctc-ratio",
    "--max-nonturbo-ratio",
    "--mtc-period",
    "--tsc-hz",
    "--cs-base",
    "--resync",
)


@pytest.mark.parametrize("verb", ["info", "packets", "branches", "instructions", "index"])
def test_help_leaves_rare_options_to_help_all(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    short, whole = _help(capsys, verb, "--help"), _help(capsys, verb, "--help-all")
    assert short.splitlines()[0] == f"usage: ptkit {verb} [OPTIONS] FILE"
    for option in RARE:
        assert f"\n  {option} " not in short
        assert f"\n  {option} " in whole
    assert "\n  --image " in short
    rare = len(RARE) + 1 + (verb in ("packets", "branches", "instructions"))  # --engine, --file-offsets
    assert short.splitlines()[-1] == f"`ptkit {verb} --help-all` lists {rare} options more."
    assert "lists" not in whole.splitlines()[-1]


def test_help_names_arguments_that_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert _help(capsys, "export", "--help").splitlines()[0] == "usage: ptkit export [OPTIONS] -o OUT FILE"
    assert _help(capsys, "bench", "--help").splitlines()[0] == "usage: ptkit bench [OPTIONS] [FILE]"
    assert _help(capsys, "msr", "--help").splitlines()[0] == "usage: ptkit msr [OPTIONS] ACTION ..."
    assert _help(capsys, "--help").splitlines()[0] == "usage: ptkit [OPTIONS] VERB ..."
    record = _help(capsys, "record", "--help")
    assert "--tnt-64" not in record
    assert "--tnt-64" in _help(capsys, "record", "--help-all")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["branch"], "; did you mean branches? (see ptkit --help)"),
        (["recrod"], "; did you mean record? (see ptkit --help)"),
        (
            ["info", "--decoded", "x"],
            "ptkit info: error: there is no option --decoded; did you mean --decode? (see",
        ),
        (
            ["packets", "--taken", "x"],
            "ptkit packets: error: there is no option --taken; did you mean --time? (see",
        ),
        (["info", "x", "y"], "ptkit info: error: 'y' is one argument too many (see ptkit info --help)"),
        (
            ["branches", "x", "--tid", "1,2"],
            "argument --tid: '1,2' is not one number: write it without commas",
        ),
        (["record", "--cyc", "--", "true"], "ptkit record: error: there is no option --cyc; did you mean"),
        (["branches", "--sym", "main", "x"], "there is no option --sym; did you mean --symbol? (see"),
        (["msr", "plan", "--use"], "ptkit msr plan: error: there is no option --use; did you mean --user?"),
        (["info", "--engine", "lib", "x"], "'lib' is not one of ptkit, simple, libipt; did you mean libipt?"),
    ],
)
def test_wrong_words_name_the_nearest(
    words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(words)
    assert exit_info.value.code == 2
    err = capsys.readouterr().err
    assert error in err
    assert err.count("\n") == 1
