"""``pylog delete-records``: move the start of one or more logs."""

from __future__ import annotations

from typing import Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.cleanup import is_agreed, removal_json, removal_lines
from pylog.cli.options import command
from pylog.cli.output import write_summary
from pylog.errors import OffsetAboveHighWatermarkError, OffsetOutOfRangeError
from pylog.text.words import named


@command(
    "delete-records",
    "pylog delete-records /mnt/kafka-logs --topic orders --partition 0 --offset 1000 --dry-run",
    "pylog delete-records /mnt/kafka-logs --topic orders --partition 0 --all",
)
@options.writable_directory
@options.one_topic(required=False)
@options.one_partition(required=False)
@options.number("--offset", metavar="O", help="First offset to keep.")
@options.flag("--all", "everything", help="Delete all replicated records.")
@options.file(
    "--offset-json-file",
    "offset_file",
    help="Offsets of several partitions, as kafka-delete-records takes them: "
    '{"partitions": [{"topic": "t", "partition": 0, "offset": 7}], "version": 1}; offset -1 '
    "deletes all replicated records.",
)
@options.server_properties
@options.high_watermark
@options.recover_as_broker
@options.dry_run
@options.yes
@options.as_json
def delete_records(
    directory: str,
    *,
    topic: str | None,
    partition: int | None,
    offset: int | None,
    everything: bool,
    offset_file: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.delete_records` has, too
) -> int:
    """Stop serving records below an offset.

    The log start offset moves, and the files stay: whole segments below it are removed when
    retention runs. An offset below the start of the log changes nothing. One after its end is an
    error, and so is one after the high watermark: later records may not be replicated. Either
    --topic and --partition say which log, or a file names several; if one of these cannot be moved,
    none is.

    With --dry-run nothing is changed or locked; the command reports the bytes and segments that
    retention may remove afterwards. With --all, the command asks first in a terminal; --yes skips
    the question.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, no such partition
    or offset, or the directory is locked or cannot be written.
    """
    if offset_file is not None:
        if topic is not None or partition is not None or offset is not None or everything:
            msg = "--offset-json-file goes without --topic, --partition, --offset and --all"
            raise click.UsageError(msg)
        offsets = pylog.jobs.read_offset_json_file(offset_file)
    else:
        offsets = _only_offset(topic, partition, offset, everything=everything)
    if not (dry_run or yes) and progress.is_asked() and None in offsets.values():
        everything_of = {place: offset for place, offset in offsets.items() if offset is None}
        planned = pylog.jobs.plan_record_deletion(directory, everything_of, **of_library)
        moved = {place: each for place, each in planned.items() if each.after > each.before}
        size_bytes = sum(each.removal.size_bytes for each in moved.values() if each.removal)
        if moved and not is_agreed(named(list(map(str, moved))), size_bytes):
            return exit_status.UNUSABLE
    try:
        starts = (
            pylog.jobs.plan_record_deletion(directory, offsets, **of_library)
            if dry_run
            else pylog.delete_records(directory, offsets, **of_library)
        )
    except OffsetAboveHighWatermarkError as error:
        error.add_note("nothing has been changed")
        raise
    except OffsetOutOfRangeError as error:
        most = f"--offset {error.log_end_offset}, or --all," if offset_file is None else "offset -1"
        error.add_note(f"{most} keeps no record; nothing has been changed")
        raise
    documents = [_document(place, start) for place, start in starts.items()]
    write_summary(
        {"partitions": documents} if offset_file is not None else documents[0],
        [line for place, start in starts.items() for line in _lines(place, start, offsets[place])],
        as_json=as_json,
    )
    return exit_status.SOUND


def _only_offset(
    topic: str | None, partition: int | None, offset: int | None, *, everything: bool
) -> dict[pylog.TopicPartition, int | None]:
    if topic is None or partition is None:
        raise click.UsageError("give --topic and --partition, or --offset-json-file")
    if (offset is None) is not everything:
        raise click.UsageError("give either --offset or --all")
    return {pylog.TopicPartition(topic, partition): offset}


def _lines(
    place: pylog.TopicPartition, start: pylog.results.MovedOffset, offset: int | None
) -> list[str]:
    held_back = [] if start.held_back is None else [f"{place}: {start.held_back}"]
    return [*_moved(place, start, offset), *held_back]


def _moved(
    place: pylog.TopicPartition, start: pylog.results.MovedOffset, offset: int | None
) -> list[str]:
    if start.after == start.before:
        would = "was" if start.removal is None else "would be"
        reason = "" if offset is None else f", and offset {offset} is not after that"
        return [f"nothing {would} deleted: {place} starts at offset {start.before}{reason}"]
    if start.removal is None:
        return [f"{place} now starts at offset {start.after}; it started at {start.before}"]
    return removal_lines(
        f"{place} would start at offset {start.after}; it starts at {start.before}", start.removal
    )


def _document(place: pylog.TopicPartition, start: pylog.results.MovedOffset) -> dict[str, Any]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "startOffsetBefore": start.before,
        "logStartOffset": start.after,
        "heldBack": pylog.jobs.document_of(start.held_back),
    } | removal_json(start.removal)
