"""What the jobs that remove records say of it: in the log, and in the line of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylog_jobs import exit_status
from pylog_jobs.job import Outcome

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Mapping

    import pylog


def cleanup_outcome(  # noqa: PLR0913 - what was done, and how it is told
    directory: str,
    summary: pylog.RetentionSummary | pylog.CompactionSummary,
    *,
    logger: logging.Logger,
    failure: str,
    removed: Callable[[Any], str | None],
    counts: Callable[[Any], Mapping[str, object]],
    more: Mapping[str, object] | None = None,
) -> Outcome:
    """Return what came of the job; its log gets a line for each topic and each failure.

    Parameters
    ----------
    directory
        The log directory.
    summary
        What was done.
    logger
        Of the job.
    failure
        What is said of a partition that failed, with places for it and for the reason.
    removed
        Returns the line for a topic that changed, with a place for "were" or "would be"; None for
        any other.
    counts
        Returns what the line of JSON says of a topic, or of all.
    more
        What it says beside that.
    """
    failures = []
    for each in summary.partitions:
        if each.failure is not None:
            failures.append({"partition": str(each.topic_partition), "failure": each.failure})
            logger.error(failure, each.topic_partition, each.failure)
    topics = {}
    for topic, totals in summary.by_topic.items():
        line = removed(totals)
        if line is not None:
            topics[topic] = counts(totals)
            logger.info("%s: %s", topic, line)
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
        exit_status.FINDINGS if failures else exit_status.DONE,
        {
            "directory": directory,
            "dryRun": summary.is_dry_run,
            "now": summary.now_ms,
            **counts(summary.totals),
            **(more or {}),
            "topics": topics,
            "configs": configs,
            "failures": failures,
        },
    )
