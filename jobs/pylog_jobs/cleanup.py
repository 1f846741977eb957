"""What the jobs that remove records share: their arguments, and what they say of the result."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pylog
from pylog_jobs.exit_status import DONE, FINDINGS
from pylog_jobs.job import Outcome, labels_of, topics_of
from pylog_jobs.shared_options import add_options, passed_on

if TYPE_CHECKING:
    import argparse
    import logging
    from collections.abc import Callable, Mapping


def add_arguments(parser: argparse.ArgumentParser, *, topics: str, counted: str, once: str) -> None:
    """Add the arguments, which are the options of the command of that name."""
    parser.add_argument("directory", metavar="DIRECTORY", help="a log directory no broker has open")
    add_options(parser, pylog.jobs.cleanup_options(topics=topics, counted=counted, once=once))


def parameters_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the arguments mean, as arguments of the library."""
    labels_of(arguments)["directory"] = arguments.directory
    parameters = passed_on(arguments, pylog.jobs.cleanup_options())
    parameters["directory"] = arguments.directory
    parameters["topics"] = topics_of(arguments.topic)
    path, now = arguments.server_properties, arguments.now
    parameters["server_properties"] = None if path is None else pylog.ServerProperties.read(path)
    parameters["config"] = _properties(arguments.config)
    parameters["now_ms"] = None if now is None else _milliseconds(now)
    return parameters


def _properties(texts: list[str]) -> dict[str, str]:
    properties: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--config {text!r} is not of the form key=value")
        if name.strip() in properties:
            raise ValueError(f"--config names {name.strip()} twice")
        properties[name.strip()] = value.strip()
    return properties


def _milliseconds(text: str) -> int:
    try:
        return pylog.jobs.parse_cleanup_time(text, int(time.time() * 1000))
    except ValueError as error:
        raise ValueError(f"--now {error}") from error


def cleanup_outcome(
    directory: str,
    summary: pylog.results.RetentionSummary | pylog.results.CompactionSummary,
    *,
    logger: logging.Logger,
    failure: str,
    removed: Callable[[Any], tuple[str, int, int]],
    more: Mapping[str, object] | None = None,
) -> Outcome:
    """Return what came of the job; its log gets a line for each topic and each failure.

    ``removed`` says what went of a topic's totals, from how many partitions, and its bytes.
    """
    failures, damage, held_back = [], [], {}
    for each in summary.partitions:
        if isinstance(each, pylog.results.PartitionCompaction) and each.damage is not None:
            place, records = str(each.topic_partition), each.damaged_records
            damage.append({"partition": place, "records": records, "damage": each.damage})
            logger.warning(
                "%s: a wrong checksum becomes right, as by a broker's cleaner, in records: "
                "%d, the first one at %s; compare with another replica",
                *(place, records, each.damage),
            )
        if each.failure is not None:
            failures.append({"partition": str(each.topic_partition), "failure": each.failure})
            logger.error(failure, each.topic_partition, each.failure)
        if each.held_back is not None:
            held_back[str(each.topic_partition)] = pylog.jobs.document_of(each.held_back)
            logger.warning("%s: %s", each.topic_partition, each.held_back)
    topics = {}
    would = "would be" if summary.is_dry_run else "were"
    for topic, totals in summary.by_topic.items():
        what, partitions, removed_bytes = removed(totals)
        if partitions:
            topics[topic] = pylog.jobs.document_of(totals, summary.json_names)
            logger.info(
                "%s: %s of %s %s removed (%d bytes); %d bytes remain",
                *(topic, what, pylog.jobs.counted(partitions, "partition"), would, removed_bytes),
                totals.size_bytes,
            )
    configs = {
        topic: {each.name: {"value": each.value, "source": str(each.source)} for each in entries}
        for topic, entries in summary.configs.items()
        if topic in summary.by_topic
    }
    if summary.is_dry_run:
        for topic, entries in configs.items():
            said = ", ".join(
                f"{name}={of['value']} ({of['source']})" for name, of in entries.items()
            )
            logger.info("%s is configured to %s", topic, said)
    return Outcome(
        FINDINGS if failures or damage else DONE,
        {
            "directory": directory,
            "dryRun": summary.is_dry_run,
            "now": summary.now_ms,
            **pylog.jobs.document_of(summary.totals, summary.json_names),
            **(more or {}),
            "topics": topics,
            "configs": configs,
            "heldBack": held_back,
            "failures": failures,
            "damage": damage,
        },
    )
