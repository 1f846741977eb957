"""``pylog create-topic``: a new topic in a log directory."""

from __future__ import annotations

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.options import command
from pylog.cli.output import write_summary


@command(
    "create-topic",
    "pylog create-topic /mnt/kafka-logs --topic orders --partitions 6 --config retention.ms=-1",
)
@options.writable_directory
@click.option("--topic", "-t", metavar="T", required=True, help="The new topic's name.")
@options.number(
    "--partitions",
    at_least=1,
    help="How many partitions. Default: num.partitions of --server-properties, else 1.",
)
@click.option(
    "--topic-id",
    metavar="ID",
    help="22 characters, as Kafka prints topic ids. Default: a random one.",
)
@options.config
@options.server_properties
@options.recover_as_broker
@options.as_json
def create_topic(
    directory: str,
    *,
    topic: str,
    partitions: int | None,
    topic_id: str | None,
    config: dict[str, str],
    server_properties: pylog.ServerProperties | None,
    recover_as_broker: bool,
    as_json: bool,
) -> int:
    """Create a topic, and the log directory if it does not exist.

    Topic properties are kept in pylog-topic-configs.json in the log directory. A broker ignores
    that file: it gets the properties from its own cluster. A broker serves the topic only if its
    cluster knows the topic under the same id: another topic in the directory of a KRaft node is a
    warning, since the node sets it aside as -stray. As in a cluster, test_b is refused beside
    test.b: the metrics of both would have one name.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, the topic exists
    already, or the directory is locked or cannot be written.
    """
    if partitions is None:
        partitions = 1 if server_properties is None else server_properties.num_partitions
    given_id = None if topic_id is None else pylog.parse_uuid(topic_id)
    owner = pylog.logs.own_log_directory(
        directory, server_properties=server_properties, recover_as_broker=recover_as_broker
    )
    new_id = pylog.format_uuid(
        pylog.create_topic(owner, topic, partitions, topic_id=given_id, properties=config)
    )
    write_summary(
        {"topic": topic, "partitions": partitions, "topicId": new_id, "config": config},
        [f"created topic {topic} with {partitions} partition{'s'[: partitions > 1]}, id {new_id}"],
        as_json=as_json,
    )
    return exit_status.SOUND
