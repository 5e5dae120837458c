"""JSON and elements of the page: nothing of a recording is markup."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["data_element", "json_text"]

_MARKUP = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


def json_text(value: Any) -> str:
    """JSON in ASCII, without the characters that HTML gives a meaning."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_MARKUP)


def data_element(name: str, data: bytes) -> bytes:
    """An element with a chunk in base64."""
    begin = f'<script type="application/octet-stream" class="chunk" id="{name}">'
    return begin.encode() + data + b"</script>\n"
