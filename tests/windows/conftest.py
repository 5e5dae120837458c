"""What the modules of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mingw import require_mingw
from wine import Wine, private_wine, require_wine


@pytest.fixture(scope="session")
def wine() -> Iterator[Wine]:
    """One prefix for all tests; skips where Wine or mingw-w64 is not installed."""
    require_wine()
    require_mingw()
    with private_wine() as prefix:
        yield prefix
