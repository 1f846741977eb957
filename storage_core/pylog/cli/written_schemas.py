"""Options of the command that encodes keys and values by schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

import pylog
from pylog.cli import options
from pylog.cli.record_options import packed

if TYPE_CHECKING:
    from pylog.jobs import SchemaRegistration


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSchemas:
    """What is encoded, by which schemas."""

    value_schema: str | None
    key_schema: str | None
    subject: str | None
    compatibility: str | None
    message: str | None
    framing: str
    schemas: str | None
    registry_topic: str

    def plan(
        self, directory: str, topic: str | None, line_format: str, values: str | None
    ) -> SchemaRegistration | None:
        """Return how a topic's keys and values are encoded; None if they are not."""
        files = {"key": self.key_schema, "value": self.value_schema}
        if not any(files.values()):
            given = {
                "--subject": self.subject,
                "--compatibility": self.compatibility,
                "--message": self.message,
                "--schemas": self.schemas,
            }
            for name, each in given.items():
                if each is not None:
                    raise click.UsageError(f"{name} is for --value-schema and --key-schema")
            return None
        if topic is None:
            raise click.UsageError("--value-schema and --key-schema need --topic")
        if line_format == "text" or values is not None:
            raise click.UsageError(
                "--value-schema and --key-schema are for --format jsonl without --values"
            )
        main = "value" if self.value_schema is not None else "key"
        wanted = {
            name: pylog.jobs.WriterSchema(
                schema=None if each == "latest" else each,
                subject=self.subject if name == main else None,
                registry=self.schemas,
                registry_topic=self.registry_topic,
                compatibility=self.compatibility,
                message=self.message if name == main else None,
                framing=self.framing,
            )
            for name, each in files.items()
            if each is not None
        }
        return pylog.jobs.plan_registration(directory, topic, wanted)


written_schemas = packed(
    WrittenSchemas,
    "schemas",
    (
        click.option(
            "--value-schema",
            metavar="FILE",
            help="Encode values by a schema (.avsc, .json, .proto): with jsonl, the member value "
            "is JSON as pylog cat --value-format prints it. latest: the one that is registered.",
        ),
        click.option("--key-schema", metavar="FILE", help="The same for keys."),
        click.option(
            "--subject",
            metavar="NAME",
            help="The subject of the schema. Default: TOPIC-value (TOPIC-key).",
        ),
        click.option(
            "--compatibility",
            type=click.Choice(pylog.jobs.COMPATIBILITY_LEVELS),
            metavar="LEVEL",
            help="How a new schema has to agree with the versions before: NONE, BACKWARD, FORWARD, "
            "FULL, or one of these three with _TRANSITIVE. Default: what the registry's topic "
            "says, else BACKWARD.",
        ),
        click.option(
            "--message",
            metavar="NAME",
            help="The full name of the Protobuf message. Default: the first of the file.",
        ),
        click.option(
            "--framing",
            type=click.Choice(["prefix", "header"]),
            default="prefix",
            show_default=True,
            help="How values refer to the schema: by the id before them, or by a header.",
        ),
        click.option(
            "--schemas",
            metavar="DIR|URL",
            type=options.FILE,
            help="The log directory of a registry that has the schema, or the URL of one that "
            "runs. Default: the directory that is written, where a new schema is registered.",
        ),
        options.registry_topic,
    ),
)
"""Gives a command's function the argument ``schemas``, `WrittenSchemas`."""
