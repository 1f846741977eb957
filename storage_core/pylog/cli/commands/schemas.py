"""``pylog schemas``: the schemas of a registry, and which topics use them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

import pylog
from pylog.cli import exit_status, options, progress
from pylog.cli.options import command
from pylog.cli.output import known, tell, write_json
from pylog.cli.style import OutputTraits
from pylog.cli.table import aligned_columns
from pylog.text.words import counted, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylog.results import RegistryProblem, SchemaListing, SchemaUse, StoredSchema

_LEFT = {"SUBJECT", "TYPE", "STATE", "REFERENCES", "SUBJECTS", "TOPIC", "FIELD"}
_LEAST_NEEDED = ("REFERENCES",)
_NOTES = {
    "key_format": "are not in the form that Confluent's registry writes",
    "old_magic": "have magic 0, as old registries wrote them",
}
"""Notes about keys that a registry reads all the same, by the code of the problem."""
_MOST_TOLD = 3


@command(
    "schemas",
    "pylog schemas /mnt/kafka-logs",
    "pylog schemas /mnt/kafka-logs --subject orders-value --text",
    "pylog schemas /mnt/kafka-logs --usage --topic orders",
)
@options.paths
@click.option(
    "--subject",
    "subjects",
    metavar="S",
    multiple=True,
    help="Only schemas of this subject; may be given several times. Default: all.",
)
@options.flag("--text", "shows_text", help="Print the text of each schema, and not a table.")
@options.flag(
    "--usage",
    help="Read all records of the topics, and count the schema ids with which their keys and "
    "values start.",
)
@options.topics("Only topics of these names, with --usage. Default: all but internal ones.")
@click.option(
    "--registry-topic",
    metavar="T",
    default="_schemas",
    show_default=True,
    help="The topic in which the registry stores its schemas (its kafkastore.topic).",
)
@options.threads("partitions are read side by side with --usage")
@options.as_json_document
def schemas(
    paths: tuple[str, ...],
    *,
    subjects: tuple[str, ...],
    shows_text: bool,
    topics: tuple[str, ...],
    as_json: bool,
    **of_library: Any,  # noqa: ANN401 - options that `pylog.jobs.schemas` has, too
) -> int:
    """List the schemas of a registry, and which topics use them.

    Schemas are read from the topic _schemas, in which Confluent's Schema Registry and Karapace
    store them: no registry has to run. All schemas that are still on the disk are listed, deleted
    schemas included, since topics may hold messages that use them.

    STATE is the state that the schema has in a registry that starts on the topic: active,
    soft-deleted, hard-deleted, replaced (by a later record for the same version), or ignored (its
    id belongs to another schema already).

    --usage counts the keys and values of each topic by the schema id in their first five bytes,
    which Confluent's serializers write: a zero byte, then the id. Ids without a schema are named;
    values of another format may start with a zero byte, too.

    Problems are named on stderr: records that cannot be understood, ids that were given twice (with
    both texts), references to schemas that are gone, and keys of one version that are written in
    different bytes, so that a compaction keeps both records.

    Exit status: 0 nothing wrong was seen, 1 something is wrong with the registry's records, an id
    is unknown, or bytes of a log could not be read, 2 wrong usage or a path that cannot be read.
    """
    if shows_text and as_json:
        raise click.UsageError("give one of --text and --json")
    names = options.names_in(topics, None)
    if names and not of_library["usage"]:
        raise click.UsageError("--topic is for --usage")
    with progress.ProgressBar("counting schema ids", None) as bar:
        listing = pylog.jobs.schemas(
            *paths,
            topics=names or None,
            progress=bar.show if progress.is_seen() else None,
            **of_library,
        )
    shown = _chosen(listing.schemas, subjects)
    if as_json:
        document = pylog.jobs.document_of(listing)
        document["schemas"] = pylog.jobs.document_of(shown)
        write_json(document)
    else:
        lines = _texts(shown) if shows_text else _lines(listing, shown)
        sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()
    tell("note", *_notes(listing))
    warnings = [*_problems(listing), *_unknown(listing.usage or ()), *map(str, listing.damage)]
    tell("warning", *warnings)
    return exit_status.FINDINGS if warnings else exit_status.SOUND


def _chosen(schemas: list[StoredSchema], subjects: tuple[str, ...]) -> list[StoredSchema]:
    known_subjects = {each.subject for each in schemas}
    for subject in subjects:
        if subject not in known_subjects:
            found = named(sorted(known_subjects)) or "none"
            raise click.UsageError(f"no subject {subject!r} here; subjects found: {found}")
    return [each for each in schemas if not subjects or each.subject in subjects]


def _lines(listing: SchemaListing, shown: list[StoredSchema]) -> Iterator[str]:
    """Yield a table of schemas, and one of their use."""
    width = OutputTraits.of(sys.stdout).width
    if shown:
        columns = {
            "SUBJECT": [pylog.jobs.printable(each.subject) for each in shown],
            "VERSION": [str(each.version) for each in shown],
            "ID": [str(each.id) for each in shown],
            "TYPE": [pylog.jobs.printable(each.type) for each in shown],
            "STATE": [str(each.state) for each in shown],
            "REFERENCES": [_references(each) for each in shown],
        }
        yield from aligned_columns(columns, _LEFT, width, _LEAST_NEEDED)
        yield ""
    if listing.usage:
        uses = listing.usage
        yield from aligned_columns(
            {
                "TOPIC": [pylog.jobs.printable(each.topic) for each in uses],
                "FIELD": [each.field for each in uses],
                "ID": [known(each.id, "more") for each in uses],
                "RECORDS": [str(each.records) for each in uses],
                "SUBJECTS": [pylog.jobs.printable(_subjects(each)) for each in uses],
            },
            _LEFT,
            width,
        )
        yield ""
    yield f"{counted(len(shown), 'schema')} of {counted(_subject_count(shown), 'subject')}"


def _subject_count(shown: Iterable[StoredSchema]) -> int:
    return len({each.subject for each in shown})


def _subjects(use: SchemaUse) -> str:
    return ", ".join(use.subjects) or "unknown id"


def _references(schema: StoredSchema) -> str:
    texts = [f"{each.subject} {each.version}" for each in schema.references]
    return pylog.jobs.printable(", ".join(texts)) or "-"


def _texts(shown: Iterable[StoredSchema]) -> Iterator[str]:
    """Yield the text of each schema after a line about it."""
    for each in shown:
        head = f"{each.subject} version {each.version}, id {each.id}, {each.type}, {each.state}"
        yield pylog.jobs.printable(head)
        yield from map(pylog.jobs.printable, each.schema.splitlines())
        yield ""


def _notes(listing: SchemaListing) -> Iterator[str]:
    for code, text in _NOTES.items():
        some = [each for each in listing.problems if each.code == code]
        if some:
            are = text if len(some) > 1 else text.replace("are", "is", 1).replace("have", "has", 1)
            yield f"{counted(len(some), 'key')} {are}, first at offset {some[0].offset}"
    if listing.unlisted_problems:
        yield f"{counted(listing.unlisted_problems, 'problem')} of these kinds not counted here"


def _problems(listing: SchemaListing) -> Iterator[str]:
    """Yield the first problems of each kind, and how many there are."""
    by_code: dict[str, list[RegistryProblem]] = {}
    for each in listing.problems:
        by_code.setdefault(each.code, []).append(each)
    for code, some in by_code.items():
        if code in _NOTES:
            continue
        for each in some[:_MOST_TOLD]:
            where = "" if each.offset is None else f"offset {each.offset}: "
            yield f"{where}{each.message}"
            if code == "duplicate_id":
                yield from _both_texts(listing.schemas, each)
        if len(some) > _MOST_TOLD:
            yield f"{len(some) - _MOST_TOLD} more like these; --json has them"


def _both_texts(schemas: Iterable[StoredSchema], problem: RegistryProblem) -> Iterator[str]:
    """Yield the texts of an id that was given twice."""
    ignored = [each for each in schemas if each.offset == problem.offset]
    for each in ignored:
        same = [
            other
            for other in schemas
            if (other.context, other.id) == (each.context, each.id) and other.schema != each.schema
        ]
        for text in (each.schema, *dict.fromkeys(other.schema for other in same)):
            yield f"  id {each.id}: {text}"


def _unknown(usage: Iterable[SchemaUse]) -> Iterator[str]:
    """Yield which ids no schema explains, by topic and field."""
    unknown: dict[tuple[str, str], list[SchemaUse]] = {}
    for each in usage:
        if not each.subjects:
            unknown.setdefault((each.topic, each.field), []).append(each)
    for (topic, field), some in unknown.items():
        ids = named([known(each.id, "others") for each in some])
        records = counted(sum(each.records for each in some), field)
        yield f"topic {topic}: {records} with ids that no schema has: {ids}"
