"""``pylog compact``: keep the last record of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.cleanup import cleanup_document, cleanup_lines
from pylog.cli.options import command
from pylog.cli.output import write_summary
from pylog.cli.progress import Interruption
from pylog.results import NotCleaned
from pylog.text.words import counted, format_bytes, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import CompactionSummary, CompactionTotals, PartitionCompaction


_STOPPED = (
    "pylog: stopped: no segment is half replaced and no record is lost; run it again for the rest"
)
_STOPPED_DRY_RUN = "pylog: stopped: nothing was changed"

_WHY_NOT_CLEANED = {
    NotCleaned.EMPTY: "no records",
    NotCleaned.CLEAN: "clean already: nothing was written since it was cleaned",
    NotCleaned.ACTIVE_SEGMENT: "all that is dirty is in the active segment, which is never "
    "cleaned; --roll begins a new one first",
    NotCleaned.HIGH_WATERMARK: "all that is dirty may not be replicated: it is above the high "
    "watermark (--high-watermark)",
    NotCleaned.OPEN_TRANSACTION: "all that is dirty follows the start of an open transaction: see "
    "pylog transactions",
    NotCleaned.MIN_COMPACTION_LAG: "all that is dirty is younger than min.compaction.lag.ms",
    NotCleaned.DIRTY_RATIO: "its dirty ratio is not above min.cleanable.dirty.ratio, nor has it "
    "waited for max.compaction.lag.ms (--once)",
}


@command(
    "compact",
    "pylog compact /mnt/kafka-logs --dry-run",
    "pylog compact /mnt/kafka-logs --topic accounts --roll",
)
@options.flag(
    "--roll",
    help="Begin a new segment of each log first, so that records in the active segment, which is "
    "never cleaned, can be cleaned.",
)
@options.cleanup(
    all_topics="all compacted ones",
    counted="lags and delete horizons",
    once="One pass, as a broker's cleaner makes it: only logs whose dirty ratio is above "
    "min.cleanable.dirty.ratio, or that wait for longer than max.compaction.lag.ms, and one round "
    "for each.",
)
def compact(
    directory: str,
    *,
    topics: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.compact` has, too
) -> int:
    """Keep the last record of each key, in topics that are compacted.

    Partitions of topics whose cleanup.policy contains compact are cleaned as by a broker: offsets
    stay as they are; records without a value stay for delete.retention.ms after they were first
    cleaned. Records stay in the active segment, after the last stable offset, and while they are
    younger than min.compaction.lag.ms. Records above the high watermark may not be replicated: they
    stay, and replace no other record (--high-watermark). Every dirty log is cleaned, in as many
    rounds as it takes; a broker waits until enough is dirty (--once). Nothing is removed by age or
    size: see retention.

    Memory is bounded by log.cleaner.dedupe.buffer.size, 128 MiB unless --server-properties says
    otherwise; a round has room for about 5 million keys then.

    Records without a key are removed as well, whatever their age, as by a broker's cleaner. A topic
    has some if it was not always compacted. They are counted separately.

    If nothing is cleaned, it says why, for each partition. A record whose checksum in a compressed
    message of format v0 or v1 is wrong stays, and gets a right one, as from a broker's cleaner. It
    is named, and the status is 1: nobody sees the damage any more.

    A topic's configuration is found as by retention: in --config, the topic's own properties,
    __cluster_metadata, --server-properties. A topic for which none of these has cleanup.policy and,
    if that is compact, delete.retention.ms and min.compaction.lag.ms is an error, and nothing is
    changed. Without --topic, --config does not hold for Kafka's internal topics.

    With --dry-run nothing is changed or locked: all is read and counted, and the configuration of
    topics is printed, each value with its source. Of a partition that needs several rounds it
    counts the first.

    Ctrl-C ends it between two steps, with status 130. No log is left half changed: segments have
    been replaced as a whole or not at all, and the next run continues.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, the configuration
    of a topic is not known, no such topic, or the directory is locked or cannot be written.
    """
    has_bar = progress.is_seen()
    with (
        Interruption() as interruption,
        progress.ProgressBar("reading" if dry_run else "compacting", None) as bar,
    ):

        def between_steps(done_bytes: int, total_bytes: int) -> None:
            with interruption.allowed():
                if has_bar:
                    bar.show(done_bytes, total_bytes)

        try:
            summary = pylog.compact(
                directory,
                topics=options.names_in(topics, None) or None,
                dry_run=dry_run,
                progress=between_steps,
                **of_library,
            )
        except KeyboardInterrupt:
            click.echo(_STOPPED_DRY_RUN if dry_run else _STOPPED, err=True)
            raise
    write_summary(cleanup_document(summary), compaction_lines(summary), as_json=as_json)
    has_failed = any(each.failure or each.damage for each in summary.partitions)
    return exit_status.FINDINGS if has_failed else exit_status.SOUND


def compaction_lines(summary: CompactionSummary) -> Iterator[str]:
    """Yield a table of the topics that are cleaned, what went wrong, and the sum."""
    yield from cleanup_lines(
        summary,
        _columns({each: of for each, of in summary.by_topic.items() if of.cleaned_partitions}),
        [*_failures(summary), *_damage(summary), *_without_key(summary), *_reasons(summary)],
        _removed(summary),
        done="cleaned",
    )


def _failures(summary: CompactionSummary) -> Iterator[str]:
    verb = "would not be" if summary.is_dry_run else "was not"
    for each in summary.partitions:
        if each.failure is not None:
            yield f"{each.topic_partition} {verb} fully cleaned: {each.failure}"


def _damage(summary: CompactionSummary) -> Iterator[str]:
    gets = "would get" if summary.is_dry_run else "got"
    for each in summary.partitions:
        if each.damage is not None:
            records = counted(each.damaged_records, "record")
            yield (
                f"{each.topic_partition}: {records} with a wrong checksum {gets} a right one, as "
                f"from a broker's cleaner, the first one at {each.damage}; compare with another "
                "replica"
            )


def _without_key(summary: CompactionSummary) -> Iterator[str]:
    """Yield how many records went though no later one replaced them."""
    had = "have" if summary.is_dry_run else "had"
    for topic, totals in summary.by_topic.items():
        if totals.invalid_records:
            yield (
                f"{topic}: {totals.invalid_records} of these {counted(totals.records, 'record')} "
                f"{had} no key: no later record replaces them, and a compacted topic keeps none"
            )


def _reasons(summary: CompactionSummary) -> Iterator[str]:
    """Yield why nothing was cleaned, if that is so: a line a reason."""
    if summary.totals.cleaned_partitions:
        return
    reasons: dict[str, list[str]] = {}
    for each in summary.partitions:
        if each.not_cleaned is not None and each.held_back is None:  # which says it, and more
            why = _WHY_NOT_CLEANED[each.not_cleaned]
            reasons.setdefault(why, []).append(str(each.topic_partition))
    for topic in sorted(set(summary.configs) - set(summary.by_topic)):
        (policy,) = (each for each in summary.configs[topic] if each.name == "cleanup.policy")
        why = f"not compacted: cleanup.policy is {policy.value or '(empty)'}"
        reasons.setdefault(why, []).append(topic)
    for why, names in reasons.items():
        yield f"{named(names)}: {why}"


def _columns(topics: dict[str, CompactionTotals]) -> dict[str, list[str]]:
    rows = topics.values()
    return {
        "TOPIC": list(topics),
        "PARTITIONS": [str(each.cleaned_partitions) for each in rows],
        "RECORDS": [str(each.records) for each in rows],
        "REMOVED": [_size(each.removed_bytes) for each in rows],
        "LEFT": [format_bytes(each.size_bytes) for each in rows],
    }


def _removed(summary: CompactionSummary) -> str | None:
    totals = summary.totals
    if not totals.cleaned_partitions:
        return None
    partitions = counted(totals.cleaned_partitions, "partition")
    is_more = summary.is_dry_run and any(map(_needs_rounds, summary.partitions))
    if is_more and not totals.records:
        return f"nothing of {partitions} in the first of several rounds"
    at_least = "at least " if is_more else ""
    records = counted(totals.records, "record")
    return f"{at_least}{records} of {partitions} ({_size(totals.removed_bytes)})"


def _size(removed_bytes: int) -> str:
    """Return a size, also of what became larger: v0 and v1 do, as v2."""
    return (
        format_bytes(removed_bytes)
        if removed_bytes >= 0
        else f"grew {format_bytes(-removed_bytes)}"
    )


def _needs_rounds(each: PartitionCompaction) -> bool:
    return each.rounds > 0 and not each.is_complete and each.failure is None
