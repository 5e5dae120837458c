"""`ptkit cache` and PTKIT_CACHE say that they have no effect any more."""

from __future__ import annotations

import json

import pytest

from ptkit.cli import main


def test_cache_verb_says_that_it_has_no_effect(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "--clear"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert "no longer kept on disk" in line
    assert main(["cache", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["folder"], document["files"], document["size_bytes"]) == (None, [], 0)


def test_cache_variable_warns_that_it_has_no_effect(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, lines in (("", 0), ("/somewhere", 1)):
        monkeypatch.setenv("PTKIT_CACHE", value)
        assert main(["msr", "list"]) == 0
        assert capsys.readouterr().err.count("PTKIT_CACHE has no effect") == lines
