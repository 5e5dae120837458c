"""Both engines give the same tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit

pytestmark = pytest.mark.skipif(
    "libipt" not in ptkit._core.engines(), reason="this build has no libipt (apt-get install libipt-dev)"
)


def test_engines_agree_on_the_loop(loop: Any, open_trace: Any) -> None:
    ours, theirs = (
        open_trace(loop.stream(50), images=loop.images(), engine=engine, resync="psb")
        for engine in ("ptkit", "libipt")
    )
    for table, columns in (
        ("instructions", ("ip", "size", "cls")),
        ("branches", ("from_ip", "to_ip", "kind")),
    ):
        # The last jump's target is in a TIP that no packet follows: libipt does not go there.
        one, other = getattr(ours, table)()[:-1], getattr(theirs, table)()[:-1]
        for name in columns:
            assert np.array_equal(one[name], other[name]), (table, name)
    assert ours.edges()["count"].tolist() == [250, 50, 50]
    assert theirs.edges()["count"].tolist() == [250, 50, 49]


def test_engines_agree_on_mruby(corpus: Path, open_trace: Any) -> None:
    path = corpus / "libxdc" / "mruby"
    ours, theirs = (open_trace(path, engine=engine, resync="psb") for engine in ("ptkit", "libipt"))
    columns = ["ip"]
    assert np.array_equal(
        ours.instructions(columns=columns)["ip"], theirs.instructions(columns=columns)["ip"]
    )


def test_missing_engine_is_refused(monkeypatch: pytest.MonkeyPatch, loop: Any) -> None:
    monkeypatch.setattr(ptkit._core, "engines", lambda: ["ptkit"])
    with pytest.raises(ptkit.UnsupportedError, match="apt-get install libipt-dev"):
        ptkit.open(loop.stream(1), engine="libipt")
