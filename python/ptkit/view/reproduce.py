"""What a page was made of, as words of a shell and as arguments in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit.support.text import one_line

if TYPE_CHECKING:
    from ptkit.decode import CallTimeline
    from ptkit.table import Table

__all__ = ["Reproduced", "selections_of", "selects_all"]

_SPANS = ("ip",)
_OWNERS = ("tid", "pid", "space", "cr3")
_KERNEL = np.uint64(1 << 63)  # its first address
_OS = 1 << 2  # of IA32_RTIT_CTL

#: Arguments, which are options, too, and their values.
Words = list[tuple[str, int]]


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

    @property
    def chosen(self) -> dict[str, Any]:
        """All arguments."""
        return {
            name: value for name, value in {**(self.bound or {}), **self.query}.items() if value is not None
        }

    def head(self, file: str) -> dict[str, Any]:
        """The member ``reproduce`` of a run."""
        chosen = self.chosen
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


def selects_all(parts: Any, timeline: CallTimeline, chosen: Mapping[str, Any]) -> bool:
    """Whether a range of instructions of all tracks can be selected: each has a stream of its own.

    Parameters
    ----------
    parts : OpenParts
        Of the trace.
    timeline : CallTimeline
    chosen : dict
        Selection of its calls.
    """
    tracks = range(len(timeline.tracks))
    are_alone = all(_is_alone(parts, stream, chosen) for stream in parts.scope.streams(chosen))
    return are_alone and not any(_has_stacks(timeline, track) for track in tracks)


def selections_of(
    parts: Any, timeline: CallTimeline, chosen: Mapping[str, Any], functions: Table
) -> list[Words | None]:
    """What selects the thread of each track, so that its instructions count as on the track.

    Parameters
    ----------
    parts, timeline, chosen
        As for `selects_all`.
    functions : Table
        Functions of the calls, with ``entry_ip``.

    Returns
    -------
    list of (list of (str, int) or None)
        None: nothing does. Stacks of a thread have tracks of their own. Where kernel code was traced, calls
        of all threads of a processor are followed from the branch on at which the kernel switches, those of
        a selection from the note of the switch on.
    """
    scope, streams = parts.scope, parts.scope.streams(chosen)
    ctl = parts.opened.bundle.configuration["rtit_ctl"]
    has_kernel = bool((functions["entry_ip"] >= _KERNEL).any()) if ctl is None else bool(ctl & _OS)
    by_owner = any(name in chosen for name in _OWNERS)
    found: list[Words | None] = []
    tracks = timeline.tracks
    shown = Counter((one.tid, one.stream) for one in tracks)
    having = Counter(tid for one in streams for tid in {tid for _, tid in scope.threads_of(one)})
    for number, track in enumerate(tracks):
        is_alone = _is_alone(parts, track.stream, chosen)
        is_exact = is_alone or (track.tid is not None and (by_owner or not has_kernel))
        is_one = shown[track.tid, track.stream] == 1 and not _has_stacks(timeline, number)
        if not is_one or not is_exact:
            found.append(None)
            continue
        words: Words = []
        if track.tid is not None and not (is_alone and len(streams) == 1):
            words.append(("tid", track.tid))
        if (having[track.tid] if words else len(streams)) > 1:
            words.append(("stream", track.stream))
        found.append(words)
    return found


def _is_alone(parts: Any, stream: int, chosen: Mapping[str, Any]) -> bool:
    """Whether all instructions of a stream are those of one thread, and count."""
    is_of_space = "space" in chosen or "cr3" in chosen
    return not is_of_space and bool(parts.instruction_ranges.is_of_one_thread(stream))


def _has_stacks(timeline: CallTimeline, track: int) -> bool:
    """Whether the thread of a track has several stacks, each of which counts its own instructions."""
    return not len(timeline.counts(track)[0])


def _values(name: str, value: Any) -> list[str]:
    """Values of an option that may be repeated."""
    if name in ("time", "instructions"):
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
