"""``pylog retention``: remove what topics no longer keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.cleanup import cleanup_document, cleanup_lines, is_agreed
from pylog.cli.options import command
from pylog.cli.output import write_summary
from pylog.text.instants import calendar_text, likely_unit
from pylog.text.words import counted, format_bytes, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import RetentionSummary, RetentionTotals


@command(
    "retention",
    "pylog retention /mnt/kafka-logs --dry-run",
    "pylog retention /mnt/kafka-logs --topic orders --config retention.ms=86400000 --yes",
)
@options.cleanup(
    all_topics="all",
    counted="ages",
    once="Make one pass, as a broker's check does. Retention always does, so this changes "
    "nothing; compact has the same option.",
)
@options.yes
def retention(
    directory: str,
    *,
    topics: tuple[str, ...],
    once: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.apply_retention` has, too
) -> int:
    """Remove segments that topics no longer keep, by age and size.

    The oldest segments of each partition are removed, as by a broker: those below the log start
    offset (see delete-records); and, if cleanup.policy contains delete, those that retention.bytes
    does not need and those whose latest record is older than retention.ms. The first segment that
    is kept keeps all after it, and so does one with records above the high watermark, which may not
    be replicated (--high-watermark). The files are gone when the command ends; file.delete.delay.ms
    does not apply.

    A topic's configuration comes from these sources. For each property, the first one that has it
    counts: --config, for this run; the topic's own properties, which create-topic or alter-topic
    stored here, then those in __cluster_metadata; what __cluster_metadata has for this broker, then
    for all brokers; --server-properties; and if that was given, Kafka's defaults.
    __cluster_metadata-0 is looked for in the log directory and, if --server-properties names it
    among its log.dirs, where that broker keeps it.

    Kafka's default would remove everything older than 7 days. A topic for which no source has
    cleanup.policy and retention.ms is therefore an error, and nothing is changed; so is metadata
    that is damaged, or that the controllers may still take back, and a topic that the cluster has
    deleted. Without --topic, --config does not hold for Kafka's internal topics. If nothing else is
    known about a topic, only --config limits it.

    With --dry-run nothing is changed or locked. It prints the configuration of topics, each value
    with its source. It also counts the records that would be removed, and a TIME in the future
    shows what will be removed then. Without --dry-run they are removed at once. In a terminal, the
    command asks before a topic loses all its records; --yes skips the question.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, the configuration
    of a topic is not known, no such topic, or the directory is locked or cannot be written.
    """

    def apply(*, dry_run: bool) -> RetentionSummary:
        with progress.ProgressBar("looking" if dry_run else "removing", None) as bar:
            return pylog.apply_retention(
                directory,
                topics=options.names_in(topics, None) or None,
                dry_run=dry_run,
                progress=bar.show if progress.is_seen() else None,
                **of_library,
            )

    if not (dry_run or yes) and progress.is_asked():
        planned = apply(dry_run=True)
        emptied = _emptied(planned)
        if emptied and not _is_agreed(emptied):
            return exit_status.UNUSABLE
        of_library["now_ms"] = planned.now_ms
    summary = apply(dry_run=dry_run)
    write_summary(_document(summary), retention_lines(summary), as_json=as_json)
    has_failed = any(each.failure is not None for each in summary.partitions)
    return exit_status.FINDINGS if has_failed else exit_status.SOUND


def _emptied(planned: RetentionSummary) -> dict[str, RetentionTotals]:
    """Return the topics of which no record is left."""
    kept = {
        each.topic_partition.topic
        for each in planned.partitions
        if each.failure is not None or each.log_start_offset != each.log_end_offset
    }
    return {
        topic: each
        for topic, each in planned.by_topic.items()
        if each.segments and topic not in kept
    }


def _is_agreed(emptied: dict[str, RetentionTotals]) -> bool:
    topics = "topic" if len(emptied) == 1 else "topics"
    size_bytes = sum(each.deleted_bytes for each in emptied.values())
    return is_agreed(f"{topics} {named(list(emptied))}", size_bytes)


def retention_lines(summary: RetentionSummary) -> Iterator[str]:
    """Yield a table of the topics that lose segments, what was left alone, and the sum."""
    would = "would be" if summary.is_dry_run else "was"
    yield from cleanup_lines(
        summary,
        _columns({topic: each for topic, each in summary.by_topic.items() if each.segments}),
        [
            *(
                f"nothing {would} removed from {each.topic_partition}: {each.failure}"
                for each in summary.partitions
                if each.failure is not None
            ),
            *_time_lines(summary),
        ],
        _removed(summary.totals),
        done="removed",
    )


def _time_lines(summary: RetentionSummary) -> Iterator[str]:
    """Yield what an unusual time decides: one in the future, or that of a file."""
    for each in summary.partitions:
        dated = [segment for segment in each.deleted if segment.is_dated_by_file]
        if dated:
            yield (
                f"{each.topic_partition}: {counted(len(dated), 'segment')} from offset "
                f"{dated[0].base_offset} on {'has' if len(dated) == 1 else 'have'} no timestamp in "
                "the time index: the date of the .log file is taken for the age, as a broker does"
            )
        if each.future is not None:
            base_offset, timestamp, segments = each.future
            unit = likely_unit(timestamp, summary.now_ms)
            guess = "" if unit is None else f", probably {unit}"
            yield (
                f"{each.topic_partition}: segment {base_offset} has a timestamp in the future "
                f"({calendar_text(timestamp, 1000)}{guess}), and keeps "
                f"{counted(segments, 'segment')}, until it is older than retention.ms"
            )


def _columns(topics: dict[str, RetentionTotals]) -> dict[str, list[str]]:
    rows = topics.values()
    columns = {
        "TOPIC": list(topics),
        "PARTITIONS": [str(each.changed_partitions) for each in rows],
        "SEGMENTS": [str(each.segments) for each in rows],
        "RECORDS": ["?" if each.records is None else str(each.records) for each in rows],
        "REMOVED": [format_bytes(each.deleted_bytes) for each in rows],
        "LEFT": [format_bytes(each.size_bytes) for each in rows],
    }
    if all(each.records is None for each in rows):
        del columns["RECORDS"]
    return columns


def _removed(totals: RetentionTotals) -> str | None:
    if not totals.segments:
        return None
    size = format_bytes(totals.deleted_bytes)
    if totals.records is not None:
        size = f"{counted(totals.records, 'record')}, {size}"
    return (
        f"{counted(totals.segments, 'segment')} of "
        f"{counted(totals.changed_partitions, 'partition')} ({size})"
    )


def _document(summary: RetentionSummary) -> dict[str, Any]:
    document = cleanup_document(summary)
    for each, fields in zip(summary.partitions, document["partitions"], strict=True):
        fields["removedBytes"] = each.deleted_bytes
    return document
