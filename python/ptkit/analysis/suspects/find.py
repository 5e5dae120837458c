"""From recordings to suspects: one recording in memory at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ptkit.analysis.suspects.facts import Found
from ptkit.analysis.suspects.measure import SHUFFLES, chance_of
from ptkit.analysis.suspects.ranking import ranked
from ptkit.analysis.suspects.reading import Recordings
from ptkit.analysis.suspects.result import LeftOut, Suspects, suspects_table
from ptkit.errors import ConfigError, PtkitError, PtkitWarning
from ptkit.support.text import counted

__all__ = ["MOST", "Source", "find_suspects"]

MOST = 1000  # rows of the table


@dataclass(frozen=True)
class Source:
    """A recording that is opened when its turn comes.

    Attributes
    ----------
    name : str
        Path or description.
    open : callable
        Returns the trace.
    """

    name: str
    open: Callable[[], Any]


def find_suspects(
    passing: Iterable[Source],
    failing: Iterable[Source],
    query: dict[str, Any],
    *,
    limit: int = MOST,
    shuffles: int = SHUFFLES,
    report: Callable[[str], None] | None = None,
) -> Suspects:
    """Find what separates failing from passing recordings.

    Parameters
    ----------
    passing, failing : iterable of Source
    query : dict
        Which code: ``module``, ``symbol``.
    limit : int
        Rows of the table.
    shuffles : int
        Random labelings, where there are too many for all.
    report : callable, optional
        Takes a sentence on each recording that is left out, instead of a `PtkitWarning`.

    Raises
    ------
    ConfigError
        If no recording of a group can be read, or one is given twice.
    """
    recordings = Recordings()
    found: list[Found] = []
    names: dict[bool, list[str]] = {False: [], True: []}
    left_out: dict[bool, list[LeftOut]] = {False: [], True: []}
    notes: list[str] = []
    seen: set[str] = set()
    for has_failed, sources in ((False, passing), (True, failing)):
        for source in sources:
            if source.name in seen:
                raise ConfigError(
                    f"{source.name}: the recording is given twice; each has failed or passed, once"
                )
            seen.add(source.name)
            try:
                one = recordings.read(source.open(), query, all_own=bool(query))
            except (PtkitError, OSError) as error:
                lost = LeftOut(source.name, str(error))
                left_out[has_failed].append(lost)
                sentence = f"{lost.source} is left out: {lost.reason}"
                if report is not None:
                    report(sentence)
                else:
                    warnings.warn(sentence, PtkitWarning, stacklevel=3)
                continue
            found.append(one)
            names[has_failed].append(source.name)
            notes += [f"{source.name}: {note}" for note in one.notes]
        _check(names[has_failed], left_out[has_failed], "failing" if has_failed else "passing")
    is_failing = np.arange(len(found)) >= len(names[False])
    best = ranked(found, is_failing, limit)
    top = float(np.abs(best.splits.score).max(initial=0.0))
    return Suspects(
        table=suspects_table(best, recordings.files, recordings.texts.all(), is_failing),
        passing=tuple(names[False]),
        failing=tuple(names[True]),
        left_out=(*left_out[False], *left_out[True]),
        files=recordings.files,
        facts=best.tried,
        chance=chance_of(top, best.patterns, is_failing, shuffles),
        notes=tuple(notes),
    )


def _check(names: list[str], left_out: list[LeftOut], group: str) -> None:
    """Refuse a group without any recording."""
    if names:
        return
    if not left_out:
        raise ConfigError(f"there is no {group} recording; give one at least of each kind")
    first = left_out[0]
    raise ConfigError(
        f"none of the {counted(len(left_out), f'{group} recording')} can be used: "
        f"{first.source}: {first.reason}"
    )
