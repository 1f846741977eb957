"""``pylog topics``: what a cluster's topics consist of."""

from __future__ import annotations

import sys

import click

import pylog
from pylog.cli import exit_status, options
from pylog.cli.command_help import command
from pylog.cli.rendering.summary import write_json
from pylog.cli.rendering.topic_text import topic_document, topic_lines, where_from


@command(
    "topics",
    "pylog topics /mnt/kafka-logs --topic orders",
    "pylog topics /mnt/metadata /mnt/kafka-logs --pattern '^pay' --json",
)
@options.paths
@options.topics("Only these topics; may be given several times. Default: all.")
@click.option(
    "--pattern",
    metavar="REGEX",
    help="Only topics in whose name this regular expression is found; ^ and $ stand for the "
    "name's start and end. Internal topics are matched, too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def topics(
    paths: tuple[str, ...], *, topics: tuple[str, ...], pattern: str | None, as_json: bool
) -> int:
    """Describe topics: ids, partitions, leaders, configuration.

    A log directory with __cluster_metadata-0 (that of a controller, or of any KRaft broker) has the
    metadata of the whole cluster: its newest snapshot and log tell all topics and their partitions,
    on whatever broker these lie. The lines are those of kafka-topics --describe; Configs are the
    topic's own, without those that brokers give to all topics. Records that the controllers had not
    yet agreed on cannot be told from others, and count.

    Without that directory, topics and partitions are those that lie under the PATHs, with "-" for
    what only the cluster knows, and Configs are those that pylog has stored.

    Deleted topics come last, as long as the metadata's log or a -delete directory still has them. A
    topic that lies here and that the metadata do not have is "not in the cluster's metadata".

    Exit status: 0 nothing wrong was seen, 1 the metadata are damaged, or a side file is, 2 wrong
    usage or a path that cannot be read.
    """
    names = options.names_in(topics, pattern)
    described = pylog.topics(*paths, topics=names or None, pattern=pattern)
    if as_json:
        write_json(topic_document(described))
    else:
        sys.stdout.writelines(f"{line}\n" for line in topic_lines(described))
        sys.stdout.flush()
        sys.stderr.write(f"pylog: note: {where_from(described)}\n")
    for error in described.errors:
        sys.stderr.write(f"pylog: warning: {pylog.printable(str(error))}\n")
    return exit_status.FINDINGS if described.errors else exit_status.SOUND
