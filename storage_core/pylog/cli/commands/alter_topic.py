"""``pylog alter-topic``: other properties or more partitions for a topic that exists."""

from __future__ import annotations

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import write_summary
from pylog.text.words import counted


@command(
    "alter-topic",
    "pylog alter-topic /mnt/kafka-logs --topic orders --config cleanup.policy=compact",
    "pylog alter-topic /mnt/kafka-logs --topic orders --partitions 12",
)
@options.writable_directory
@options.topic
@options.config
@click.option(
    "--delete-config",
    "deleted",
    metavar="KEY",
    multiple=True,
    help="Remove this property of the topic; may be given several times.",
)
@options.number(
    "--partitions", at_least=1, help="How many partitions the topic has afterwards: more than now."
)
@options.server_properties
@options.recover_as_broker
@options.as_json
def alter_topic(
    directory: str,
    *,
    topic: str,
    config: dict[str, str],
    deleted: tuple[str, ...],
    partitions: int | None,
    server_properties: pylog.ServerProperties | None,
    recover_as_broker: bool,
    as_json: bool,
) -> int:
    """Change a topic's properties, or add partitions.

    Properties are kept in pylog-topic-configs.json in the log directory. A broker ignores that
    file: it gets the properties from its own cluster.

    A topic never loses partitions. New ones get the topic's id. Keys go to other partitions than
    before, so old and new records of one key may be in two partitions.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, no such topic or
    property, not more partitions than before, or the directory is locked or cannot be written.
    """
    if not config and not deleted and partitions is None:
        raise click.UsageError("give --config, --delete-config or --partitions")
    owner = pylog.logs.own_log_directory(
        directory,
        must_exist=True,
        server_properties=server_properties,
        recover_as_broker=recover_as_broker,
        works_on=lambda each: each.topic == topic,
    )
    altered = pylog.alter_topic(
        owner, topic, properties=config, deleted_properties=deleted, partitions=partitions
    )
    write_summary(
        {
            "topic": topic,
            "partitions": altered.partitions,
            "addedPartitions": altered.added_partitions,
            "config": altered.properties,
        },
        _lines(topic, altered),
        as_json=as_json,
    )
    return exit_status.SOUND


def _lines(topic: str, altered: pylog.results.AlteredTopic) -> list[str]:
    own = " ".join(f"{name}={text}" for name, text in sorted(altered.properties.items()))
    lines = [f"topic {topic} has {f'these properties: {own}' if own else 'no properties'}"]
    if altered.added_partitions:
        lines.append(
            f"{counted(altered.added_partitions, 'partition')} added, {altered.partitions} in all: "
            "keys now go to other partitions than before"
        )
    return lines
