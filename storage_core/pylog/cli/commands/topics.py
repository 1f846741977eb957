"""``pylog topics``: what a cluster's topics consist of."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import known, tell, write_json
from pylog.cli.style import OutputTraits
from pylog.cli.table import aligned_columns
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.results import DescribedPartition, DescribedTopic, TopicDescription


@command(
    "topics",
    "pylog topics /mnt/kafka-logs --topic orders",
    "pylog topics /mnt/metadata /mnt/kafka-logs --pattern '^pay' --json",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all.")
@options.pattern_of_any
@options.as_json_document
def topics(
    paths: tuple[str, ...], *, topics: tuple[str, ...], pattern: str | None, as_json: bool
) -> int:
    """Describe topics: ids, partitions, leaders, configuration.

    A log directory with __cluster_metadata-0 (a controller's, or any KRaft broker's) has the
    metadata of the whole cluster: its newest snapshot and log tell all topics and their partitions,
    on whichever broker they are. The lines are those of kafka-topics --describe; a terminal, for
    which they are too wide, gets a table for each topic. Configs shows the topic's own settings,
    not the brokers' defaults. Uncommitted records are included; they cannot be told apart.

    Without that directory, the command lists the topics and partitions under the PATHs. It shows
    "-" for values that only the cluster knows; Configs shows the settings that pylog has stored.

    Deleted topics come last, as long as the metadata's log or a -delete directory still has them. A
    topic with directories here that the metadata lacks is "not in the cluster's metadata".

    Exit status: 0 nothing wrong was seen, 1 the metadata is damaged, or a side file is, 2 wrong
    usage or a path that cannot be read.
    """
    names = options.names_in(topics, pattern)
    described = pylog.topics(*paths, topics=names or None, pattern=pattern)
    if as_json:
        write_json(_document(described))
    else:
        width = OutputTraits.of(sys.stdout).width
        lines = topic_lines(described) if width is None else _tables(described, width)
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()
        tell("note", _where_from(described))
    tell("warning", *described.errors)
    return exit_status.FINDINGS if described.errors else exit_status.SOUND


_UNKNOWN = "-"
_NOT_IN_METADATA = "not in the cluster's metadata"


def topic_lines(described: TopicDescription) -> Iterator[str]:
    """Yield a line for each topic and each partition of it; those that were deleted come last."""
    for topic in described.topics:
        yield from _topic_lines(topic)
    for topic in described.deleted:
        yield (
            f"Deleted topic: {pylog.jobs.printable(topic.topic)}\t"
            f"TopicId: {topic.topic_id or _UNKNOWN}\t"
            f"PartitionCount: {len(topic.partitions)}"
        )


def _where_from(described: TopicDescription) -> str:
    """Return a line that says what the topics are known from."""
    if described.metadata_path is None:
        return "no __cluster_metadata-0 is here: this is what directories alone tell"
    return (
        f"from {pylog.jobs.printable(described.metadata_path)}, records below offset "
        f"{described.metadata_end_offset}"
    )


def _topic_lines(topic: DescribedTopic) -> Iterator[str]:
    fields = {
        "Topic": pylog.jobs.printable(topic.topic),
        "TopicId": topic.topic_id or _UNKNOWN,
        "PartitionCount": str(len(topic.partitions)),
        "ReplicationFactor": known(topic.replication_factor),
        "Configs": _configs(topic),
    }
    line = "\t".join(f"{name}: {value}" for name, value in fields.items())
    if topic.is_in_metadata is False:
        line += f"\t{_NOT_IN_METADATA}"
    yield line
    for partition in topic.partitions:
        yield "\t" + "\t".join(
            f"{name}: {value}" for name, value in _partition_fields(topic, partition).items()
        )


def _tables(described: TopicDescription, width: int) -> Iterator[str]:
    """Yield the same for a terminal of that width."""
    for topic in described.topics:
        factor = known(topic.replication_factor)
        yield from _wrapped(
            f"{pylog.jobs.printable(topic.topic)}  {topic.topic_id or _UNKNOWN}  "
            f"{counted(len(topic.partitions), 'partition')}, replication factor {factor}"
            + (f", {_NOT_IN_METADATA}" if topic.is_in_metadata is False else ""),
            width,
        )
        if configs := _configs(topic, ", "):
            yield from _wrapped(f"{_INDENT}{configs}", width)
        rows = [
            _partition_fields(topic, partition) | _leader(partition)
            for partition in topic.partitions
        ]
        headings = dict.fromkeys(heading for row in rows for heading in row)
        columns = {
            heading.upper(): [row.get(heading, "") or _UNKNOWN for row in rows]
            for heading in headings
            if heading != "Topic"
        }
        left = columns.keys() - {"PARTITION", "LEADER"}
        for line in aligned_columns(columns, left, width - len(_INDENT), _LEAST_NEEDED):
            yield f"{_INDENT}{line}"
    for deleted in described.deleted:
        yield from _wrapped(
            f"{pylog.jobs.printable(deleted.topic)}  {deleted.topic_id or _UNKNOWN}  "
            f"{counted(len(deleted.partitions), 'partition')}, deleted",
            width,
        )


_INDENT = "  "
_LEAST_NEEDED = ("LASTKNOWNELR", "ELR")


def _leader(partition: DescribedPartition) -> dict[str, str]:
    """Return a leader that is none, with the reason: its last replicas were shut down in order."""
    waits = partition.eligible_leader_replicas or partition.last_known_elr
    is_stopped = partition.leader == -1 and not partition.isr and waits
    return {"Leader": "none (stopped)"} if is_stopped else {}


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _configs(topic: DescribedTopic, separator: str = ",") -> str:
    if topic.configs is None:
        return _UNKNOWN
    return separator.join(
        pylog.jobs.printable(f"{name}={value}") for name, value in topic.configs.items()
    )


def _partition_fields(topic: DescribedTopic, partition: DescribedPartition) -> dict[str, str]:
    fields = {
        "Topic": pylog.jobs.printable(topic.topic),
        "Partition": str(partition.partition),
        "Leader": "none" if partition.leader == -1 else known(partition.leader),
        "Replicas": _ids(partition.replicas),
        "Isr": _ids(partition.isr),
    }
    if partition.adding_replicas:
        fields["Adding Replicas"] = _ids(partition.adding_replicas)
    if partition.removing_replicas:
        fields["Removing Replicas"] = _ids(partition.removing_replicas)
    return fields | {
        "Elr": _ids(partition.eligible_leader_replicas),
        "LastKnownElr": _ids(partition.last_known_elr),
    }


def _ids(ids: tuple[int, ...] | None) -> str:
    return _UNKNOWN if ids is None else ",".join(map(str, ids))


def _document(described: TopicDescription) -> dict[str, Any]:
    document: dict[str, Any] = pylog.jobs.document_of(described)
    for name, topics in (("topics", described.topics), ("deleted", described.deleted)):
        for topic, fields in zip(topics, document[name], strict=True):
            fields["replicationFactor"] = topic.replication_factor
    return document
