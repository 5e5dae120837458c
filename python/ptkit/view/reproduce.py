"""What a page was made of, as words of a shell and as arguments in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptkit.support.text import one_line

__all__ = ["Reproduced"]

_SPANS = ("ip",)


@dataclass(frozen=True)
class Reproduced:
    """A selection of calls.

    Attributes
    ----------
    bound, query : dict
        Arguments of `ptkit.decode.Query`: of the part of the trace (None: it is no selection), and of the
        view.
    frames, inlines, of
        As of `ptkit.Trace.view`.
    """

    bound: Mapping[str, Any] | None
    query: Mapping[str, Any]
    frames: str = "native"
    inlines: bool = False
    of: str | None = None

    def head(self, file: str) -> dict[str, Any]:
        """The member ``reproduce`` of a run."""
        chosen = {
            name: value for name, value in {**(self.bound or {}), **self.query}.items() if value is not None
        }
        words: list[str] = []
        for name, value in chosen.items():
            words += [word for one in _values(name, value) for word in (f"--{name}", one)]
        more = {"frames": self.frames} if self.frames != "native" else {}
        arguments: dict[str, Any] = {**chosen, **more}
        words += [f"--{name}={value}" for name, value in more.items()]
        if self.inlines:
            words.append("--inlines")
            arguments["inlines"] = True
        text = ", ".join(f"{name}={_plain(value)!r}" for name, value in arguments.items())
        return {
            "file": one_line(file),
            "options": [one_line(word) for word in words],
            "query": one_line(text),
        }


def _values(name: str, value: Any) -> list[str]:
    """Values of an option that may be repeated."""
    if name == "time":
        return ["-".join("" if end is None else str(int(end)) for end in value)]
    many = value if isinstance(value, (list, tuple)) and not _is_span(name, value) else [value]
    return [_word(name, one) for one in many]


def _is_span(name: str, value: Any) -> bool:
    """Whether a value is one range of addresses."""
    return name in _SPANS and isinstance(value, tuple) and len(value) == 2


def _word(name: str, value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "-".join(f"{int(one):#x}" for one in value)
    return f"{int(value):#x}" if name in ("ip", "cr3") else str(value)


def _plain(value: Any) -> Any:
    """Lists of one value as the value."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value
