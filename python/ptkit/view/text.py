"""JSON and elements of the page: nothing of a recording is markup."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["data_element", "json_text"]

_MARKUP = "<>&"


def json_text(value: Any) -> str:
    """JSON in ASCII, without the characters that HTML gives a meaning."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in _MARKUP:
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def data_element(name: str, data: bytes) -> bytes:
    """An element with a chunk in base64."""
    begin = f'<script type="application/octet-stream" class="chunk" id="{name}">'
    return begin.encode() + data + b"</script>\n"
