"""Warnings about traces, by code and arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import ptkit


def trace_warnings(caught: Iterable[Any]) -> list[ptkit.TraceWarning]:
    """Those about traces among caught Python warnings."""
    said = [one.message.args[0] for one in caught if isinstance(one.message, ptkit.PtkitWarning)]
    assert all(isinstance(one, ptkit.TraceWarning) for one in said), said
    return said


def of_code(warnings: Iterable[ptkit.TraceWarning], code: str) -> list[ptkit.TraceWarning]:
    """Warnings with this code."""
    return [one for one in warnings if one.code == code]


@contextmanager
def warned(code: str, *arguments: object) -> Iterator[None]:
    """Expects a warning with this code; each argument is part of the warning's argument of that index."""
    with pytest.warns(ptkit.PtkitWarning) as caught:
        yield
    found = of_code(trace_warnings(caught), code)
    assert any(
        len(one.arguments) >= len(arguments)
        and all(str(part) in whole for part, whole in zip(arguments, one.arguments, strict=False))
        for one in found
    ), (code, arguments, [str(one.message) for one in caught])
