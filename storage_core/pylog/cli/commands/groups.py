"""``pylog groups``: consumer and share groups, how far they have come, and their lag."""

from __future__ import annotations

import csv
import io
import sys
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import command
from pylog.cli.output import known, tell, write_json
from pylog.cli.style import OutputTraits
from pylog.cli.table import aligned_columns
from pylog.text.words import counted, named, offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import ConsumerGroup, GroupListing, SharePartition


_LEFT = {"GROUP", "TOPIC", "CONSUMER-ID", "HOST", "CLIENT-ID", "ASSIGNMENT", "INSTANCE-ID"}
_LEAST_NEEDED = (
    "GROUP",  # which the line above the table has
    "STATE-EPOCH",
    "LEADER-EPOCH",
    "DELIVERY-COMPLETE",
    "START-OFFSET",
)


@command(
    "groups",
    "pylog groups /mnt/kafka-logs",
    "pylog groups /mnt/kafka-logs --group billing --members",
    "pylog groups /mnt/kafka-logs --at -2h --csv > offsets.csv",
)
@options.paths
@click.option(
    "--group",
    "group_ids",
    metavar="G",
    multiple=True,
    help="Only this group; may be given several times. Default: all.",
)
@options.instant(
    "--at",
    "at_ms",
    help="Show what had been committed by TIME, and count lag to where the logs ended then. TIME: "
    "an ISO date or time, how long before now (-2h, -7d), or milliseconds since 1970-01-01 UTC.",
)
@options.isolation(
    "read_committed counts lag to the last stable offset, and not to the end of the log."
)
@options.flag("--members", "shows_members", help="List members, not offsets.")
@options.flag(
    "--csv",
    "as_csv",
    help="Print lines of group, topic, partition and offset, as kafka-consumer-groups "
    "--reset-offsets --from-file reads them.",
)
@options.server_properties
@options.threads("partitions of __consumer_offsets are read side by side")
@options.as_json_document
def groups(
    paths: tuple[str, ...],
    *,
    group_ids: tuple[str, ...],
    shows_members: bool,
    as_csv: bool,
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.groups` has, too
) -> int:
    """List consumer and share groups: offsets, lag, members.

    Groups are read from the partitions of __consumer_offsets under the PATHs; a group is in one of
    them, so groups of other brokers are not listed. Which one follows from the number of
    partitions, known from the cluster's metadata, --server-properties, or a complete set of
    partitions. After that number was raised, state left in other partitions is stale: it is
    reported, not used.

    Columns are as in kafka-consumer-groups --describe: the committed offset, the end of the log,
    the lag between them, and the member that has the partition, if one has; "-" stands for unknown.
    Offsets that were committed in a transaction count once it is committed.

    For a share group, columns are as in kafka-share-groups --describe --verbose, with what the
    lag is counted from: the start offset, the number of finished offsets after it, and the end of
    the log. They are read from __share_group_state in the same way. Brokers before Kafka 4.2 do not
    count finished offsets, so that there is no lag.

    The lag of a partition whose log is not under the PATHs is not known, nor is the lag of a topic
    that has been deleted and made again since. A topic of which only the id is known is shown by
    its id, and has no lines in --csv. Neither has a group with a line break in its id: Kafka's tool
    reads the file line by line.

    Standard error names the positions that a broker would not keep if it started now. A position
    will reset if it is not in its log, or the partition is gone. An offset will expire if it is
    older than offsets.retention.minutes (--server-properties; else 7 days): a broker deletes
    expired offsets ten minutes after its start. Missing partitions of __consumer_offsets are named,
    too.

    With --at, records up to TIME count. Compaction keeps the last commit of each partition: where
    it has removed what had been committed by TIME, the offset is "?", and --csv leaves it out.
    Groups that have been deleted since then may be missing.

    Exit status: 0 nothing wrong was seen, 1 a log could not be read, records of groups are not
    understood, or a broker cannot load a partition of __consumer_offsets or has lost it, 2 wrong
    usage or a path that cannot be read.
    """
    if sum((shows_members, as_csv, as_json)) > 1:
        raise click.UsageError("give one of --members, --csv and --json")
    with progress.ProgressBar("reading groups", None) as bar:
        listing = pylog.groups(
            *paths,
            groups=group_ids or None,
            progress=bar.show if progress.is_seen() else None,
            **of_library,
        )
    is_past = of_library["at_ms"] is not None
    if as_json:
        write_json(_document(listing))
    elif as_csv:
        lines_of_csv = _csv_lines(listing)
        if sys.stdout.isatty():
            lines_of_csv = (f"{pylog.jobs.printable(line[:-1])}\n" for line in lines_of_csv)
        sys.stdout.writelines(lines_of_csv)
    else:
        lines = _lines(
            listing,
            shows_members=shows_members,
            is_past=is_past,
            width=OutputTraits.of(sys.stdout).width,
        )
        sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
    tell("note", *_notes(listing, is_past=is_past))
    if as_csv:
        tell("warning", *_not_in_csv(listing))
    tell("warning", *_left_out(listing))
    unreadable = listing.unreadable_records + listing.unreadable_share_records
    is_gone = listing.missing is not None and listing.missing.gone
    is_sound = not (listing.errors or unreadable or listing.refused or is_gone)
    return exit_status.SOUND if is_sound else exit_status.FINDINGS


def _csv_lines(listing: GroupListing) -> Iterator[str]:
    """Yield lines of what is known, and is a position in the topic that is here now."""
    for group in listing.groups:
        committed = [
            (each.topic, each.partition, each.offset)
            for each in group.offsets
            if not each.is_of_earlier_topic
        ]
        shared = [
            (each.topic, each.partition, each.start_offset)
            for each in group.share_partitions
            if each.topic != each.topic_id  # no tool finds a topic by its id
        ]
        for topic, partition, offset in committed + shared:
            if offset is not None and offset >= 0 and not _has_line_break(group.group_id, topic):
                row = io.StringIO()
                # Fields with either character of a line's end are quoted.
                writer = csv.writer(row, lineterminator="\r\n")
                writer.writerow((group.group_id, topic, partition, offset))
                yield row.getvalue().removesuffix("\r\n") + "\n"


def _has_line_break(*texts: str) -> bool:
    """Whether a line of --csv would be two: Kafka's tool splits the file before it unquotes."""
    return any(len(f"{each}.".splitlines()) > 1 for each in texts)


def _not_in_csv(listing: GroupListing) -> Iterator[str]:
    names = [each.group_id for each in listing.groups if _has_line_break(each.group_id)]
    for each in names:
        yield f"group {each} is not in --csv: its id has a line break, which splits a line of it"


def _lines(
    listing: GroupListing,
    *,
    shows_members: bool = False,
    is_past: bool = False,
    width: int | None = None,
) -> Iterator[str]:
    """Yield for each group a line about it, and a table of its offsets or members."""
    for group in listing.groups:
        epoch = "" if group.epoch is None else f", epoch {group.epoch}"
        protocol = f", {group.protocol}" if group.protocol else ""
        topic = group.dead_letter_topic
        dead_letters = "" if topic is None else f", dead letters to {topic}"
        yield (
            f"{pylog.jobs.printable(group.group_id)}: {group.kind}, {group.state}, "
            f"{counted(len(group.members), 'member')}{epoch}{pylog.jobs.printable(protocol)}"
            f"{pylog.jobs.printable(dead_letters)}"
        )
        if shows_members and group.members:
            yield from aligned_columns(_member_columns(group), _LEFT, width, _LEAST_NEEDED)
        elif not shows_members:
            tables = (_offset_columns, group.offsets), (_share_columns, group.share_partitions)
            for columns_of, rows in tables:
                if rows:
                    columns = columns_of(group, is_past=is_past)
                    yield from aligned_columns(columns, _LEFT, width, _LEAST_NEEDED)
        yield ""
    read = counted(len(listing.partitions), "partition")
    yield f"{counted(len(listing.groups), 'group')}, in {read} of __consumer_offsets"


def _offset_columns(group: ConsumerGroup, *, is_past: bool) -> dict[str, list[str]]:
    members = {each.member_id: each for each in group.members}
    rows = group.offsets
    owners = [members.get(row.member_id or "") for row in rows]
    columns = {
        "GROUP": [pylog.jobs.printable(group.group_id)] * len(rows),
        "TOPIC": [pylog.jobs.printable(row.topic) for row in rows],
        "PARTITION": [str(row.partition) for row in rows],
        "CURRENT-OFFSET": [
            _offset(row.offset, is_past=is_past and row.member_id is None) for row in rows
        ],
        "LOG-END-OFFSET": [known(row.log_end_offset) for row in rows],
        "LAG": [known(row.lag) for row in rows],
    }
    if any(owners):
        columns |= {
            "CONSUMER-ID": [pylog.jobs.printable(row.member_id or "-") for row in rows],
            "HOST": [pylog.jobs.printable(each.client_host) if each else "-" for each in owners],
            "CLIENT-ID": [pylog.jobs.printable(each.client_id) if each else "-" for each in owners],
        }
    return columns


def _share_columns(group: ConsumerGroup, *, is_past: bool) -> dict[str, list[str]]:
    rows = group.share_partitions
    return {
        "GROUP": [pylog.jobs.printable(group.group_id)] * len(rows),
        "TOPIC": [pylog.jobs.printable(row.topic) for row in rows],
        "PARTITION": [str(row.partition) for row in rows],
        "STATE-EPOCH": [known(row.state_epoch) for row in rows],
        "LEADER-EPOCH": [known(row.leader_epoch) for row in rows],
        "START-OFFSET": [_offset(row.start_offset, is_past=is_past) for row in rows],
        "DELIVERY-COMPLETE": [known(row.delivery_complete_count) for row in rows],
        "LOG-END-OFFSET": [known(row.log_end_offset) for row in rows],
        "LAG": [known(row.lag) for row in rows],
    }


def _offset(offset: int | None, *, is_past: bool) -> str:
    if offset is None:
        return "?" if is_past else "-"
    return "-" if offset < 0 else str(offset)  # as Kafka's tools have it


def _member_columns(group: ConsumerGroup) -> dict[str, list[str]]:
    rows = group.members
    return {
        "GROUP": [pylog.jobs.printable(group.group_id)] * len(rows),
        "CONSUMER-ID": [pylog.jobs.printable(row.member_id) for row in rows],
        "INSTANCE-ID": [pylog.jobs.printable(row.instance_id or "-") for row in rows],
        "HOST": [pylog.jobs.printable(row.client_host) for row in rows],
        "CLIENT-ID": [pylog.jobs.printable(row.client_id) for row in rows],
        "ASSIGNMENT": [
            ", ".join(pylog.jobs.printable(str(each)) for each in row.assigned) or "-"
            for row in rows
        ],
    }


def _left_out(listing: GroupListing) -> Iterator[str]:
    """Yield sentences about groups that the listing lacks, and why."""
    yield from map(str, listing.errors)
    yield from map(str, listing.refused)
    if listing.missing is not None and listing.missing.gone:
        yield str(listing.missing)
    for topic, count, writer, decoder in (
        ("__consumer_offsets", listing.unreadable_records, "a", "offsets"),
        ("__share_group_state", listing.unreadable_share_records, "4.0 or a", "share-group-state"),
    ):
        if count:
            yield (
                f"{counted(count, 'record')} of {topic} cannot be understood: {writer} later "
                "version of Kafka wrote them, or they are broken (see pylog dump "
                f"--{decoder}-decoder)"
            )


def _notes(listing: GroupListing, *, is_past: bool) -> Iterator[str]:
    """Yield what was passed over and is not missing, and what the figures do not say."""
    yield from map(str, listing.stale)
    if listing.missing is not None and not listing.missing.gone:
        yield str(listing.missing)
    for group in listing.groups:
        for committed in group.offsets:
            if committed.reset_reason is not None:
                place = f"{committed.topic}-{committed.partition}"
                yield (
                    f"will reset: {group.group_id} at {committed.offset} in {place}: "
                    f"{committed.reset_reason}"
                )
        if not is_past:
            yield from _expiring(group)
        for shared in group.share_partitions:
            yield from _gone(group, shared)
    count = listing.ignored_records
    if count:
        are, say, them = ("is", "says", "it") if count == 1 else ("are", "say", "them")
        yield (
            f"{counted(count, 'record')} of __consumer_offsets {are} of a type that Kafka does not "
            f"have any more, and {say} nothing of groups: brokers ignore {them}, too"
        )


def _expiring(group: ConsumerGroup) -> Iterator[str]:
    """Yield which offsets a broker deletes for their age, those of a group in a line or two."""
    for fate, why in (
        (True, "a broker deletes them soon after its start, unless they are committed anew before"),
        (None, "whether a broker deletes them depends on which members come back after its start"),
    ):
        places = [
            f"{each.topic}-{each.partition}"
            for each in group.offsets
            if each.will_expire is fate and each.offset is not None
        ]
        if places:
            yield (
                f"will expire: {group.group_id} in {named(places)}, by offsets.retention.minutes: "
                f"{why}"
            )


def _gone(group: ConsumerGroup, row: SharePartition) -> Iterator[str]:
    offset, start = row.start_offset, row.log_start_offset
    if offset is not None and start is not None and 0 <= offset < start:
        gone = f"{offsets_text(offset, start)} {'is' if start - offset == 1 else 'are'} gone"
        if row.log_end_offset == start:
            gone = "none of the lag can be read"
        place = f"{row.topic}-{row.partition}"
        yield f"{group.group_id} is at {offset} in {place}, which begins at {start}: {gone}"


def _document(listing: GroupListing) -> dict[str, Any]:
    document: dict[str, Any] = pylog.jobs.document_of(listing)
    for group, fields in zip(listing.groups, document["groups"], strict=True):
        for each, committed in zip(group.offsets, fields["offsets"], strict=True):
            committed["lag"] = each.lag
        for shared, row in zip(group.share_partitions, fields["sharePartitions"], strict=True):
            row["lag"] = shared.lag
    return document
