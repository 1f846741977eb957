"""Consumer groups for people, as CSV for Kafka's own tool, and as a JSON document."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pylog
from pylog.cli.rendering.aligned_columns import aligned_columns
from pylog.cli.rendering.counted import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog import CommittedOffset, ConsumerGroup, GroupListing

_LEFT = {"GROUP", "TOPIC", "CONSUMER-ID", "HOST", "CLIENT-ID", "ASSIGNMENT", "INSTANCE-ID"}
_LEAST_NEEDED = ("GROUP",)  # which the line above the table has


def group_lines(
    listing: GroupListing,
    *,
    shows_members: bool = False,
    is_past: bool = False,
    width: int | None = None,
) -> Iterator[str]:
    """Yield for each group a line about it, and a table of its offsets or members.

    ``width`` is that of the terminal, None where the lines go elsewhere.
    """
    for group in listing.groups:
        epoch = "" if group.epoch is None else f", epoch {group.epoch}"
        protocol = f", {group.protocol}" if group.protocol else ""
        yield (
            f"{pylog.printable(group.group_id)}: {group.kind}, {group.state}, "
            f"{counted(len(group.members), 'member')}{epoch}{pylog.printable(protocol)}"
        )
        if shows_members and group.members:
            yield from aligned_columns(_member_columns(group), _LEFT, width, _LEAST_NEEDED)
        elif group.offsets and not shows_members:
            columns = _offset_columns(group, is_past=is_past)
            yield from aligned_columns(columns, _LEFT, width, _LEAST_NEEDED)
        yield ""
    read = counted(len(listing.partitions), "partition")
    yield f"{counted(len(listing.groups), 'group')}, in {read} of __consumer_offsets"


def _offset_columns(group: ConsumerGroup, *, is_past: bool) -> dict[str, list[str]]:
    members = {each.member_id: each for each in group.members}
    rows = group.offsets
    owners = [members.get(row.member_id or "") for row in rows]
    columns = {
        "GROUP": [pylog.printable(group.group_id)] * len(rows),
        "TOPIC": [pylog.printable(row.topic) for row in rows],
        "PARTITION": [str(row.partition) for row in rows],
        "CURRENT-OFFSET": [_offset(row, is_past=is_past) for row in rows],
        "LOG-END-OFFSET": [_known(row.log_end_offset) for row in rows],
        "LAG": [_known(row.lag) for row in rows],
    }
    if any(owners):
        columns |= {
            "CONSUMER-ID": [pylog.printable(row.member_id or "-") for row in rows],
            "HOST": [pylog.printable(each.client_host) if each else "-" for each in owners],
            "CLIENT-ID": [pylog.printable(each.client_id) if each else "-" for each in owners],
        }
    return columns


def _offset(row: CommittedOffset, *, is_past: bool) -> str:
    if row.offset is None:
        return "?" if is_past and row.member_id is None else "-"
    return str(row.offset)


def _member_columns(group: ConsumerGroup) -> dict[str, list[str]]:
    rows = group.members
    return {
        "GROUP": [pylog.printable(group.group_id)] * len(rows),
        "CONSUMER-ID": [pylog.printable(row.member_id) for row in rows],
        "INSTANCE-ID": [pylog.printable(row.instance_id or "-") for row in rows],
        "HOST": [pylog.printable(row.client_host) for row in rows],
        "CLIENT-ID": [pylog.printable(row.client_id) for row in rows],
        "ASSIGNMENT": [
            ", ".join(pylog.printable(str(each)) for each in row.assigned) or "-" for row in rows
        ],
    }


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)


def csv_lines(listing: GroupListing) -> Iterator[str]:
    """Yield ``group,topic,partition,offset``, without a heading; what is not known is left out."""
    for group in listing.groups:
        for each in group.offsets:
            if each.offset is not None:
                line = io.StringIO()
                row = (group.group_id, each.topic, each.partition, each.offset)
                csv.writer(line, lineterminator="").writerow(row)
                yield line.getvalue()


def left_out_lines(listing: GroupListing) -> Iterator[str]:
    """Yield what the listing lacks, and why."""
    yield from map(str, listing.errors)
    if listing.unreadable_records:
        yield (
            f"{counted(listing.unreadable_records, 'record')} of __consumer_offsets cannot be "
            "understood: a later version of Kafka wrote them, or they are broken (see pylog dump "
            "--offsets-decoder)"
        )


def note_lines(listing: GroupListing) -> Iterator[str]:
    """Yield what was passed over, and is not missing."""
    count = listing.ignored_records
    if count:
        are, say, them = ("is", "says", "it") if count == 1 else ("are", "say", "them")
        yield (
            f"{counted(count, 'record')} of __consumer_offsets {are} of a type that Kafka does not "
            f"have any more, and {say} nothing of groups: brokers ignore {them}, too"
        )


def group_document(listing: GroupListing) -> dict[str, Any]:
    """Return the document of ``--json``."""
    return {
        "groups": [_group_fields(each) for each in listing.groups],
        "partitions": list(listing.partitions),
        "unreadableRecords": listing.unreadable_records,
        "ignoredRecords": listing.ignored_records,
        "errors": [str(each) for each in listing.errors],
    }


def _group_fields(group: ConsumerGroup) -> dict[str, Any]:
    fields = _camel_cased(group)
    fields["members"] = [
        _camel_cased(member) | {"assigned": [each._asdict() for each in member.assigned]}
        for member in group.members
    ]
    fields["offsets"] = [_camel_cased(each) | {"lag": each.lag} for each in group.offsets]
    return fields


def _camel_cased(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    return {pylog.json_name(name): each for name, each in asdict(value).items()}
