"""Which options avoid losses, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ptkit.planning.estimates import DEFAULT_BUFFER, Estimate
from ptkit.planning.packet_bytes import PacketBytes
from ptkit.planning.settings import Settings

__all__ = ["Advice", "Choice", "advise", "alternatives", "rate_text", "size_text"]

_MTC_PERIODS = (6, 9)
_CYC_THRESHOLDS = (3, 6)
_LONG_PSB_PERIOD = 1 << 16
_RING = 64 << 20


@dataclass(frozen=True)
class Choice:
    """Settings, and what they lead to."""

    settings: Settings
    estimate: Estimate


@dataclass(frozen=True)
class Advice:
    """Recommended options.

    Attributes
    ----------
    options : tuple of str
        Words for ``ptkit record``.
    reasons : tuple of tuple of str
        Options, and why in half a sentence.
    """

    options: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]


def rate_text(rate: float) -> str:
    """Bytes a second as text: ``"38 MB/s"``."""
    if rate >= 999.5e6:
        return f"{rate / 1e6:,.0f} MB/s"
    return f"{rate / 1e6:.3g} MB/s" if rate >= 999.5e3 else f"{rate / 1e3:.3g} kB/s"


def size_text(size: int) -> str:
    """A power of two as options have it: ``"16M"``."""
    for unit, letter in ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)


def alternatives(wish: Settings, most: Sequence[str]) -> list[Settings]:
    """Settings with fewer and fewer packets, what is wished first.

    Parameters
    ----------
    wish : Settings
        Settings that the user wants.
    most : sequence of str
        Timing packets that the probe had.
    """
    wish = replace(wish, timing=tuple(name for name in wish.timing if name in most))
    found = [wish]
    if "cyc" in wish.timing:
        found += [replace(wish, cyc_threshold=one) for one in _CYC_THRESHOLDS if one > wish.cyc_threshold]
        found.append(replace(wish, timing=tuple(name for name in wish.timing if name != "cyc")))
    if "mtc" in wish.timing:
        found += [replace(found[-1], mtc_period=one) for one in _MTC_PERIODS if one > wish.mtc_period]
    if wish.psb_period < _LONG_PSB_PERIOD:
        found.append(replace(found[-1], psb_period=_LONG_PSB_PERIOD))
    if "mtc" in wish.timing and "tsc" in wish.timing:
        found.append(replace(found[-1], timing=("tsc",)))  # without TSC packets rows have no thread
    return found


def _setting_reasons(found: PacketBytes, wish: Choice, taken: Choice) -> list[tuple[str, str]]:
    """Why settings are other than what is wished; the last reason has the rate with all of them."""
    groups, before, now = found.groups, wish.settings, taken.settings

    def share(name: str) -> str:
        return f"{name} makes {100 * groups[name] / max(found.total, 1):.0f} % of the bytes"

    left_out = [name.upper() for name in before.timing if name not in now.timing]
    reasons = []
    if left_out:
        reasons.append((f"--timing {','.join(now.timing) or 'none'}", " and ".join(map(share, left_out))))
    if "mtc" in now.timing and now.mtc_period != before.mtc_period:
        reasons.append((f"--mtc-period {now.mtc_period}", share("MTC")))
    if "cyc" in now.timing and now.cyc_threshold != before.cyc_threshold:
        reasons.append((f"--cyc-threshold {now.cyc_threshold}", share("CYC")))
    if now.psb_period != before.psb_period:
        reasons.append((f"--psb-period {now.psb_period}", share("PSB+")))
    if reasons:
        option, why = reasons[-1]
        all_of = "this" if len(reasons) == 1 else "all of these"
        reasons[-1] = (option, f"{why}; with {all_of} {rate_text(taken.estimate.bytes_per_second)}")
    return reasons


def _buffer(estimate: Estimate) -> tuple[list[str], list[tuple[str, str]]]:
    """The buffer's size, if it has to be larger than the default."""
    size, usual = estimate.buffer_bytes, size_text(DEFAULT_BUFFER)
    if size is None or size <= DEFAULT_BUFFER:
        return [], []
    option = f"--buffer {size_text(size)}"
    if estimate.lost_share > 0:
        return option.split(), [(option, f"{usual} (default) would lose {100 * estimate.lost_share:.2g} %")]
    return option.split(), [
        (option, f"{usual} (default) suffices only while the recorder keeps its full speed")
    ]


def _lossless(choices: Sequence[Choice]) -> tuple[Choice, list[tuple[str, str]]] | None:
    """The first settings without losses; else the ones with the fewest bytes that just have none."""
    taken = next((one for one in choices if one.estimate.is_lossless), None)
    if taken is not None:
        return taken, []
    close = [one for one in choices if one.estimate.lost_share == 0 and one.estimate.overflow_windows == 0]
    if not close:
        return None
    why = "the recorder takes this only at more than half of its measured speed; if trace is lost, use --ring"
    return min(close, key=lambda one: one.estimate.bytes_per_second), [("(close)", why)]


def _last_resort(choices: Sequence[Choice]) -> tuple[Choice, list[str], list[tuple[str, str]]]:
    """Settings, words and reasons where no settings are without losses."""
    calm = next((one for one in choices if one.estimate.overflow_windows == 0), None)
    if calm is None:
        least = min(choices, key=lambda one: one.estimate.bytes_per_second)
        words, reasons = _buffer(least.estimate)
        rest = ("(losses stay)", "the trace unit itself overflows (OVF); --filter leaves out code")
        return least, words, [*reasons, rest]
    ring, rate = f"--ring {size_text(_RING)}", rate_text(calm.estimate.bytes_per_second)
    why = (
        f"no buffer suffices for {rate} in the long run: this keeps the last part, complete; "
        "or leave out code by --filter"
    )
    return calm, ring.split(), [(ring, why)]


def advise(found: PacketBytes, choices: Sequence[Choice], usual: Settings) -> Advice:
    """Take the first settings without losses, which have the most packets.

    Parameters
    ----------
    found : PacketBytes
        Packets of the probe.
    choices : sequence of Choice
        Wanted settings first, then settings with fewer packets.
    usual : Settings
        The defaults of ``ptkit record``.
    """
    lossless = _lossless(choices)
    if lossless is None:
        taken, words, reasons = _last_resort(choices)
    else:
        taken, notes = lossless
        words, reasons = _buffer(taken.estimate)
        reasons += notes
    return Advice(
        (*taken.settings.words(usual), *words),
        (*_setting_reasons(found, choices[0], taken), *reasons),
    )
