"""Options of the commands that print keys and values by their schemas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import options
from pylog.cli.output import tell
from pylog.cli.record_options import packed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog.results import Scan

_MOST_DIGITS = 10
_BY_ID = re.compile(r"([0-9]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})=(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedValues:
    """What is decoded, by which schemas."""

    value_format: str | None
    key_format: str | None
    schemas: str | None
    registry_topic: str
    schema: tuple[str, ...]
    subject: str | None
    subject_version: int | str | None
    message: str | None
    message_indexes: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are typed."""
        given = {"key": self.key_format, "value": self.value_format}
        return tuple(name for name, each in given.items() if each is not None)

    def arguments(
        self, paths: tuple[str, ...], *, topics: str | None = None, follows: bool = False
    ) -> dict[str, Any]:
        """Return the choice as arguments of `pylog.scan`; ``paths`` are what the command reads.

        ``topics`` are those of `pylog.jobs.ValueFormat`.
        """
        if not self.columns:
            self._check_unused()
            return {}
        registry = self.schemas or (list(paths) if follows else None)
        by_id: dict[int | str, str] = {}
        unframed = []
        for each in self.schema:
            parts = _BY_ID.fullmatch(each)
            if parts is None:
                unframed.append(each)
            else:
                by_id[int(parts[1]) if parts[1].isdecimal() else parts[1].lower()] = parts[2]
        if len(unframed) > 1:
            msg = "give one --schema without an id: it is that of all values without a prefix"
            raise click.UsageError(msg)
        arguments = {}
        main = "value" if self.value_format is not None else "key"
        for name, given in (("key", self.key_format), ("value", self.value_format)):
            if given is not None:
                is_main = name == main
                arguments[f"{name}_format"] = pylog.jobs.ValueFormat(
                    format=given,
                    registry=registry,
                    registry_topic=self.registry_topic,
                    schemas=by_id,
                    schema=unframed[0] if unframed and is_main else None,
                    subject=self.subject if is_main else None,
                    version=(self.subject_version if is_main else None) or "latest",
                    message=self.message if is_main else None,
                    message_indexes=self.message_indexes,
                    topics=topics,
                )
        return arguments

    def _check_unused(self) -> None:
        given = {
            "--schemas": self.schemas,
            "--schema": self.schema,
            "--subject": self.subject,
            "--subject-version": self.subject_version,
            "--message": self.message,
        }
        for name, each in given.items():
            if each:
                raise click.UsageError(f"{name} is for --value-format and --key-format")


def _version(text: str) -> int | str:
    if text in ("latest", "union"):
        return text
    if not (text.isascii() and text.isdecimal()) or len(text) > _MOST_DIGITS:
        raise ValueError(f"{text!r} is no version: give a number, latest or union")
    return int(text)


_FORMATS = click.Choice(["auto", "avro", "json", "protobuf"])

typed_values = packed(
    TypedValues,
    "typed",
    (
        click.option(
            "--value-format",
            type=_FORMATS,
            help="Decode values by their schemas. auto: by the schema id that each one starts "
            "with, or that a header has. avro, json, protobuf: the same, of that type alone.",
        ),
        click.option("--key-format", type=_FORMATS, help="The same for keys."),
        click.option(
            "--schemas",
            metavar="DIR|URL",
            type=options.FILE,
            help="The log directory that has the schema registry's topic, or the URL of a registry "
            "that runs, such as http://user:password@host:8081. Default: the directory that is "
            "read.",
        ),
        options.registry_topic,
        click.option(
            "--schema",
            metavar="[ID=]FILE",
            multiple=True,
            help="A file with a schema (.avsc, .proto, .json; .ddl: of JSON, as Spark has it): "
            "that of an id, a number or a UUID; or, without ID, that of values (or keys) which "
            "have no prefix. May be given several times.",
        ),
        click.option(
            "--subject",
            metavar="NAME",
            help="The subject whose fields are printed. Default: TOPIC-value (TOPIC-key), or the "
            "only one whose schemas the topic uses.",
        ),
        click.option(
            "--message",
            metavar="NAME",
            help="The full name of the Protobuf message whose fields are printed. Default: the "
            "only one that the first records are of.",
        ),
        click.option(
            "--message-indexes",
            type=click.Choice(["spec", "maps", "no-maps", "ref", "plain", "reverse", "none"]),
            default="spec",
            show_default=True,
            help="How values say which Protobuf message they are: by the specification (where "
            "the entries of maps count as messages, or do not), by Apicurio's name, or as clients "
            "did it wrongly: without zigzag, the innermost message first, or not at all.",
        ),
        click.option(
            "--subject-version",
            metavar="N",
            type=options.ParsedType("version", _version),
            help="A version of the subject, latest, or union: the fields of all versions. "
            "Default: latest.",
        ),
    ),
)
"""Gives a command's function the argument ``typed``, `TypedValues`."""


def tell_without_schema(scan: Scan) -> None:
    """Say which topics are bytes; `NoSchemaError` if all of them are."""
    bare = {name: why for name, why in scan.without_schema.items() if name in _topics_of(scan)}
    if not bare:
        return
    if bare.keys() == _topics_of(scan):
        raise pylog.errors.NoSchemaError(next(iter(bare.values())))
    columns = " and ".join(f"{each}s" for each in scan.typed_columns)
    tell("note", f"no schema, so that {columns} are bytes: {', '.join(sorted(bare))}")


def _topics_of(scan: Scan) -> set[str]:
    return {view.topic for view in scan.partitions}


def tell_undecodable(scan: Scan) -> bool:
    """Say how many keys and values could not be decoded; return whether there are any."""
    return bool(scan.typed_columns) and tell_counts(scan.undecodable.counts)


def tell_counts(counts: Mapping[tuple[str, str], int]) -> bool:
    """Say how many could not be decoded, by topic and column; return whether there are any."""
    if counts:
        parts = [
            f"{pylog.jobs.counted(count, name)} of {topic}"
            for (topic, name), count in sorted(counts.items())
        ]
        tell("warning", f"not decoded: {', '.join(parts)}")
    return bool(counts)
