"""``pylog create-topic``: a new topic in a log directory."""

from __future__ import annotations

from typing import Annotated

import typer

from pylog.cli import exit_status
from pylog.cli.owned_directory import owned_directory, write_summary
from pylog.cli.write_options import AsJson, Directory, Topic  # noqa: TC001 - typer reads them
from pylog.files.partition_metadata import format_uuid, parse_uuid
from pylog.writing.topic_creation import create_topic as create


def create_topic(
    directory: Directory,
    topic: Topic,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="N", min=1, help="How many partitions.")
    ] = 1,
    topic_id: Annotated[
        str | None,
        typer.Option(
            "--topic-id",
            metavar="ID",
            help="22 characters, as Kafka prints topic ids. Default: a random one.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="KEY=VALUE",
            help="A topic property, such as cleanup.policy=compact; may be given several times.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make a topic's partitions, and the directory if need be.

    Properties are kept in pylog-topic-configs.json in the log directory, which a broker passes
    over: it has them from its own cluster. For a broker to serve the topic, its cluster must know
    it under the same id.

    Exit status: 0 done, 1 something in the directory is damaged, 2 wrong usage, the topic is there
    already, or the directory is locked or cannot be written.
    """
    properties = _properties(config or [])
    wanted_id = None if topic_id is None else parse_uuid(topic_id)
    with owned_directory(directory, must_exist=False) as manager:
        new_id = format_uuid(
            create(manager, topic, partitions, topic_id=wanted_id, properties=properties)
        )
    write_summary(
        {"topic": topic, "partitions": partitions, "topicId": new_id, "config": properties},
        [f"created topic {topic} with {partitions} partition{'s'[: partitions > 1]}, id {new_id}"],
        as_json=as_json,
    )
    return exit_status.SOUND


def _properties(texts: list[str]) -> dict[str, str]:
    properties: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            msg = f"--config {text!r} is not of the form key=value"
            raise typer.BadParameter(msg)
        if name in properties:
            msg = f"--config names {name} twice"
            raise typer.BadParameter(msg)
        properties[name] = value.strip()
    return properties
