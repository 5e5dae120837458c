"""The plan of a recording as text and as JSON: what ``ptkit doctor --plan`` prints."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ptkit.cli.output.terminal import console, print_text
from ptkit.planning import Estimate, RecordingPlan
from ptkit.planning.advice import rate_text, size_text
from ptkit.planning.estimates import DEFAULT_BUFFER
from ptkit.support.text import counted, one_line

__all__ = ["plan_document", "print_plan"]

_STREAMS = 8
_WARNINGS = 5
_NAME = 28  # columns of a stream's name


def plan_document(plan: RecordingPlan) -> dict[str, Any]:
    """The document of ``ptkit doctor --plan --json``."""
    reasons = [{"option": option, "reason": why} for option, why in plan.reasons]
    return {**asdict(plan), "reasons": reasons}


def print_plan(plan: RecordingPlan) -> None:
    """Print a plan on standard output."""
    screen = console()
    for line in _lines(plan, screen.width):
        print_text(line)
    screen.print(_table(plan))
    for line in _recommended(plan, screen.width):
        print_text(line)


def _lines(plan: RecordingPlan, width: int) -> Iterator[str]:
    """The lines before the table of settings."""
    for fact in (
        _probe(plan),
        *_caveats(plan),
        _packets(plan),
        _branches(plan),
        _losses(plan),
        _consumer(plan),
    ):
        yield from _wrapped(fact, width)
    yield ""
    yield f"{'stream':{_NAME}}{'mean':>14}{'largest ' + _window(plan):>20}"
    for stream in plan.streams[:_STREAMS]:
        name = textwrap.shorten(one_line(stream.name), _NAME - 1, placeholder="...")
        yield f"{name:{_NAME}}{rate_text(stream.bytes_per_second):>14}{rate_text(stream.largest):>20}"
    if len(plan.streams) > _STREAMS:
        yield f"({counted(len(plan.streams) - _STREAMS, 'stream')} with less)"
    yield ""


def _wrapped(fact: str, width: int) -> list[str]:
    return textwrap.wrap(fact, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _window(plan: RecordingPlan) -> str:
    return f"{1000 * plan.window_seconds:.2g} ms"


def _probe(plan: RecordingPlan) -> str:
    return (
        f"probe: {plan.seconds:.3g} s with backend {plan.backend}, {counted(plan.trace_bytes, 'byte')} of "
        f"trace, {rate_text(plan.bytes_per_second)} with timing packets {','.join(plan.timing) or 'none'}"
    )


def _caveats(plan: RecordingPlan) -> Iterator[str]:
    if plan.complete:
        yield (
            "short: all that was probed ended within the probe. Most of it is start-up, and its rates are "
            "not those of a long run: give the program more to do."
        )
    if plan.overflows or plan.losses:
        yield "lossy: the probe itself lost trace, so rates and buffers are estimated too low."
    if not plan.measures_silicon:
        why = f" ({plan.reason})" if plan.reason else ""
        yield (
            f"rates: of backend {plan.backend}, not of a processor, on which programs run many times as "
            f"fast, with other CYC and MTC packets{why}. Bytes of TNT and TIP packets are the same there."
        )


def _packets(plan: RecordingPlan) -> str:
    shares = sorted(plan.groups.items(), key=lambda one: one[1], reverse=True)
    total = max(plan.trace_bytes, 1)
    return "packets: " + ", ".join(f"{name} {100 * size / total:.1f} %" for name, size in shares if size)


def _branches(plan: RecordingPlan) -> str:
    if not plan.branches or not plan.instructions:
        return ""
    per_instruction = plan.branch_bytes / plan.instructions
    return (
        f"branches: {counted(plan.branches, 'branch', 'branches')} "
        f"({plan.branches / plan.seconds:,.0f} a second here), each takes "
        f"{plan.branch_bytes / plan.branches:.3f} bytes of TNT and TIP packets. A processor writes "
        f"{rate_text(per_instruction * 1e9)} of them for each billion instructions a second."
    )


def _losses(plan: RecordingPlan) -> str:
    parts = []
    if plan.overflows:
        parts.append(f"{counted(plan.overflows, 'overflow')} of the trace unit (OVF)")
    if plan.losses:
        losses = counted(plan.losses, "loss", "losses")
        parts.append(f"{losses} of the recorder ({counted(plan.lost_bytes, 'byte')} known)")
    text = "losses in the probe: " + (", ".join(parts) or "none")
    return "; ".join([text, *plan.warnings[:_WARNINGS]])


def _consumer(plan: RecordingPlan) -> str:
    return (
        f"consumer: {rate_text(plan.drain_bytes_per_second)} of trace can be packed and written to "
        f"{plan.folder}, {plan.packed:.2f} bytes of bundle for a byte"
    )


def _table(plan: RecordingPlan) -> object:
    from rich.table import Table

    table = Table(title="Settings")
    table.add_column("options")
    headings = ["mean", f"largest {_window(plan)}"]
    if plan.measures_silicon:
        headings += [f"lost with {size_text(DEFAULT_BUFFER)}", "buffer"]
    for heading in headings:
        table.add_column(heading, justify="right")
    for one in plan.estimates:
        cells = [rate_text(one.bytes_per_second), rate_text(one.largest), _lost(one), _buffer(one)]
        table.add_row(" ".join(one.options) or "(defaults)", *cells[: len(headings)])
    return table


def _lost(one: Estimate) -> str:
    if one.overflow_windows:
        return "OVF"
    return f"{100 * one.lost_share:.2g} %" if one.lost_share else "nothing"


def _buffer(one: Estimate) -> str:
    return "none" if one.buffer_bytes is None else size_text(one.buffer_bytes)


def _recommended(plan: RecordingPlan, width: int) -> Iterator[str]:
    if not plan.measures_silicon:
        yield from _wrapped(
            f"With backend {plan.backend} the program waits for the recorder, so nothing is lost:", width
        )
    elif not plan.reasons:
        yield "The defaults lose nothing:"
    else:
        for option, why in plan.reasons:
            yield from _wrapped(f"{option}: {why}", width)
        yield "Recommended:"
    yield f"  {shlex.join(plan.command)}"
