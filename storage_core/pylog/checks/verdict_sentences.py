"""The verdict in sentences: what is lost first, then what a start does, then who notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.checks.affected_offsets import AffectedOffsets, merged, unique
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding
from pylog.locations import name_of
from pylog.text.words import counted, named, offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    ByEffect = Mapping[Effect, Sequence[AffectedOffsets]]

_DAMAGED = (kinds.DAMAGED_BATCHES.code, kinds.MISNAMED_SEGMENT.code)
"""Findings whose records nobody gets any more, though their bytes are there."""
_BESIDE_A_START = (Effect.BEHIND, Effect.RESETS, Effect.EXPIRES, Effect.GONE)
"""What is no harm that a start does."""
_MOST_LOSSES = 3
"""How many the headline names."""


def sentences(refusals: Sequence[Finding], by_effect: ByEffect) -> Iterator[str]:
    """Yield the verdict, the worst first."""
    damaged = [each for each in by_effect[Effect.CONSUMERS] if each.code in _DAMAGED]
    gone = [each for each in (*by_effect[Effect.GONE], *damaged) if not _is_told(each, by_effect)]
    lost = merged(sorted(gone, key=lambda each: each.name))
    if lost:
        yield _about_losses(lost)
    consumers = [each for each in by_effect[Effect.CONSUMERS] if each.code not in _DAMAGED]
    yield from _about_starts(refusals, by_effect, consumers, has_lost=bool(lost))
    strays, unserved = by_effect[Effect.STRAY], by_effect[Effect.UNSERVED]
    if strays:
        yield f"A broker sets these aside as -stray, and serves none: {_names(strays)}"
    if unserved:
        yield f"A broker does not serve {_names(unserved)}: {unserved[0].reason}"
    if consumers:
        yield (
            "Consumers get an error, or not what was written, from "
            f"{_places(consumers)}: {name_of(consumers[0].path)}: {consumers[0].reason}"
        )
    unknown = by_effect[Effect.UNKNOWN]
    if unknown:
        yield f"What a broker would do to {_names(unknown)} is not known: {unknown[0].reason}"
    yield from _about_groups(by_effect[Effect.RESETS], by_effect[Effect.EXPIRES])
    behind = by_effect[Effect.BEHIND]
    if behind:
        yield (
            f"Replicas of other nodes have more of {_places(behind)}: {behind[0].path}: "
            f"{behind[0].reason}"
        )


def _is_told(lost: AffectedOffsets, by_effect: ByEffect) -> bool:
    """Whether it is part of what a start removes, or in the swap file that takes its place."""
    return any(
        (each.path == lost.path and each.path.endswith(".swap"))
        or (
            each.name == lost.name
            and None not in (each.from_offset, lost.from_offset)
            and (each.from_offset or 0) <= (lost.from_offset or 0)
            and (
                each.to_offset is None
                or (lost.to_offset is not None and lost.to_offset <= each.to_offset)
            )
        )
        for each in by_effect[Effect.LOSES]
    )


def _about_starts(
    refusals: Sequence[Finding],
    by_effect: ByEffect,
    consumers: Sequence[AffectedOffsets],
    *,
    has_lost: bool,
) -> Iterator[str]:
    later, losing = by_effect[Effect.ENDS_LATER], merged(by_effect[Effect.LOSES])
    if refusals:
        first = refusals[0]
        more = f"; and {len(refusals) - 1} more" if len(refusals) > 1 else ""
        yield f"A broker does not start on this: {first.path}: {first.message}{more}"
    elif later:
        place = later[0]
        yield f"A broker starts on this once, and then not again: {place.path}: {place.reason}"
    if losing:
        more = " more" if has_lost else ""
        yield (
            f"A broker that starts on this loses {_total(losing)}{more}: {_each_loss(losing)}: "
            f"{losing[0].reason}"
        )
    others = [
        effect
        for effect, found in by_effect.items()
        if found and effect not in (*_BESIDE_A_START, Effect.CONSUMERS)
    ]
    if not (refusals or others or consumers):
        has_groups = by_effect[Effect.RESETS] or by_effect[Effect.EXPIRES]
        but = ", but consumer groups lose their positions" if has_groups else ""
        yield f"A broker starts, and loses {'nothing more' if has_lost else 'nothing'}{but}"


def _about_losses(lost: Sequence[AffectedOffsets]) -> str:
    total = _total(lost)
    are = "is" if total == "1 record" else "are"
    reason = "" if all(each.lost_as for each in lost) else f": {lost[0].reason}"
    return f"{total[0].upper()}{total[1:]} {are} lost: {_each_loss(lost)}{reason}"


def _total(lost: Sequence[AffectedOffsets]) -> str:
    count = sum(filter(None, map(_count, lost)))
    is_all = None not in map(_count, lost)
    return (
        counted(count, "record") if is_all else f"at least {count} records" if count else "records"
    )


def _count(lost: AffectedOffsets) -> int | None:
    if lost.from_offset is None or lost.to_offset is None:
        return None
    return lost.to_offset - lost.from_offset


def _each_loss(lost: Sequence[AffectedOffsets]) -> str:
    texts = unique(map(_loss_text, lost))
    more = len(texts) - _MOST_LOSSES
    shown = "; ".join(texts[:_MOST_LOSSES])
    return shown if more <= 0 else f"{shown}; and {more} more"


def _loss_text(lost: AffectedOffsets) -> str:
    """Return ``orders-0: 13 records, offsets 15 to 27, damaged``, with times and groups."""
    how = lost.lost_as
    count = _count(lost)
    parts = ["all records"]
    if count is not None:
        parts = [counted(count, "record"), offsets_text(lost.from_offset or 0, lost.to_offset)]
    elif lost.from_offset is not None:
        parts = [f"all records from offset {lost.from_offset} on"]
    return f"{lost.name}: {', '.join([*parts, *([how] if how else [])])}{lost.notes}"


def _about_groups(
    resets: Sequence[AffectedOffsets], expires: Sequence[AffectedOffsets]
) -> Iterator[str]:
    if resets:
        yield (
            "Consumer groups do not go on where they were: "
            f"{named([each.text for each in resets])}: {resets[0].reason}"
        )
    if expires:
        yield (
            "A broker deletes committed offsets for their age, ten minutes after its start: "
            f"{named([each.text for each in expires])}"
        )


def _places(affected: Sequence[AffectedOffsets]) -> str:
    """Return partitions with offsets and times; ranges that meet are one."""
    return named(unique(each.text for each in merged(affected)))


def _names(affected: Iterable[AffectedOffsets]) -> str:
    return named(unique(each.text if each.groups else each.name for each in affected))
