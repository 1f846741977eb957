"""Rows of any Spark source as records of a topic, each exactly once.

A batch has a job id, which the log directory remembers: another run under that id writes nothing. A
stream has a checkpoint. What is read and how a row becomes a record stands in a TOML file.

``python -m pylog_jobs.ingest --config ingest.toml``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as sf

import pylog
from pylog_jobs.ingest_config import BATCH, FAIL, INTERVAL, SKIP, read_ingest_config
from pylog_jobs.job import DONE, Job, Outcome, UsageError, describe, end_process
from pylog_jobs.record_frame import to_records
from pylog_jobs.source_frame import MissingInputError, read_source
from pylog_jobs.stop_request import StopRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pylog_jobs.ingest_config import IngestConfig

_FIRST_ROWS = 5
_LOGGER = logging.getLogger("pylog_jobs.ingest")  # also where this is __main__

ROWS_WRITTEN = "ingest"
"""The name of the observation whose ``rows`` are counted."""
_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestParameters:
    """What to ingest, checked; a dry run only shows the plan and the first rows."""

    config: IngestConfig
    is_dry_run: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    parser.add_argument("--config", metavar="FILE", required=True, help="a TOML file")
    parser.add_argument(
        "--date",
        metavar="YYYY-MM-DD",
        type=dt.date.fromisoformat,
        help="what {date} in the configuration stands for (default: today, UTC)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="write nothing; show the plan and the first rows"
    )


def prepare(arguments: argparse.Namespace) -> IngestParameters:
    """Return the parameters, checked as far as that can be done without Spark."""
    date = arguments.date or dt.datetime.now(dt.UTC).date()
    config = read_ingest_config(arguments.config, date)
    if config.target.job_id is not None:
        config.target.write_job().is_committed()  # raises if it was something else
    return IngestParameters(config=config, is_dry_run=arguments.dry_run)


def run(
    spark: SparkSession, parameters: IngestParameters, stop: StopRequest | None = None
) -> Outcome:
    """Ingest; return how many rows were written."""
    config = parameters.config
    stop = stop or StopRequest()
    try:
        if parameters.is_dry_run:
            return _show(spark, config)
        if config.trigger.is_stream:
            return _ingest_stream(spark, config, stop)
        return _ingest_batch(spark, config)
    except MissingInputError as error:
        if config.source.on_missing == FAIL:
            raise UsageError(str(error)) from error
        if config.source.on_missing != SKIP:
            raise
        _LOGGER.info("%s; nothing is written, and a later run may", error)
        return Outcome(DONE, {**_about(config), "inputMissing": True, "rows": 0})


def _ingest_batch(spark: SparkSession, config: IngestConfig) -> Outcome:
    target = config.target
    if target.job_id is not None and target.write_job().is_committed():
        _LOGGER.info("job %s has been committed before; nothing is written", target.job_id)
        return Outcome(DONE, {**_about(config), "alreadyCommitted": True, "rows": 0})
    records = to_records(read_source(spark, config.source, is_stream=False), config.record)
    observation = Observation(ROWS_WRITTEN)
    counted = records.observe(observation, sf.count(sf.lit(1)).alias("rows"))
    writer = counted.write.format("pylog").mode("append").options(**target.write_options())
    writer.save(target.directory)
    rows = int(observation.get["rows"])
    _LOGGER.info("wrote %d rows to %s", rows, target.directory)
    return Outcome(DONE, {**_about(config), "alreadyCommitted": False, "rows": rows})


def _ingest_stream(spark: SparkSession, config: IngestConfig, stop: StopRequest) -> Outcome:
    records = to_records(read_source(spark, config.source, is_stream=True), config.record)
    writer = (
        records.observe(ROWS_WRITTEN, sf.count(sf.lit(1)).alias("rows"))
        .writeStream.format("pylog")
        .outputMode("append")
        .options(**config.target.write_options())
        .option("checkpointLocation", str(config.trigger.checkpoint))
    )
    if config.trigger.kind == INTERVAL:
        writer = writer.trigger(processingTime=config.trigger.interval or "0 seconds")
    else:
        writer = writer.trigger(availableNow=True)
    ingest = StreamIngest(stop)
    ingest.run(lambda: writer.start(config.target.directory))
    return Outcome(DONE, {**_about(config), "batches": ingest.batches, "rows": ingest.rows})


def _show(spark: SparkSession, config: IngestConfig) -> Outcome:
    """Log what would be done, with the first rows, and return both."""
    rows = read_source(spark, config.source, is_stream=config.trigger.is_stream)
    records = to_records(rows, config.record)
    about = _about(config)
    plan = {
        **about,
        "options": config.target.write_options(),
        "columns": {each.name: each.dataType.simpleString() for each in records.schema},
        "topicExists": _exists(config),
    }
    for name, value in plan.items():
        _LOGGER.info("plan: %s: %s", name, value)
    first = _first_rows(spark, config)
    for row in first:
        _LOGGER.info("row: %s", row)
    return Outcome(DONE, {"dryRun": True, "plan": plan, "firstRows": first})


def _about(config: IngestConfig) -> dict[str, object]:
    return {
        "source": config.source.format or "sql",
        "directory": config.target.directory,
        "topic": config.target.topic,
        "trigger": config.trigger.kind,
        **({"jobId": config.target.job_id} if config.trigger.kind == BATCH else {}),
    }


def _exists(config: IngestConfig) -> bool | None:
    """Return whether the topic is there; None where each row names its own."""
    if config.target.topic is None:
        return None
    try:
        return config.target.topic in pylog.open_directory(config.target.directory)
    except pylog.LogStorageError:
        return False  # there is no log directory yet


def _first_rows(spark: SparkSession, config: IngestConfig) -> list[dict[str, object]]:
    """Return the first records, as text where it is text; of a stream, what it would begin with."""
    try:
        rows = read_source(spark, config.source, is_stream=False)
        records = to_records(rows, config.record).limit(_FIRST_ROWS)
        return [
            {name: _json_value(value) for name, value in row.asDict(recursive=True).items()}
            for row in records.collect()
        ]
    except PySparkException as error:
        if not config.trigger.is_stream:
            raise
        _LOGGER.warning("the first rows of this stream cannot be shown: %s", describe(error))
        return []


def _json_value(value: object) -> object:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    if isinstance(value, list):
        return [_json_value(each) for each in value]
    if isinstance(value, dict):
        return {name: _json_value(each) for name, each in value.items()}
    if isinstance(value, dt.datetime):  # of this machine's time zone, as Spark gives it
        return value.astimezone(dt.UTC).isoformat()
    return value


class StreamIngest:
    """Runs one query to its end, or until the job is asked to stop."""

    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop
        self._last_batch = -1
        self.batches = 0
        self.rows = 0

    def run(self, start: Callable[[], StreamingQuery]) -> None:
        """Start the query and wait until it ends."""
        # The query is stopped here, as a whole; its Spark jobs are not cancelled one by one, which
        # would make it fail.
        self._stop.cancel = None
        query = start()
        _LOGGER.info("query %s, run %s", query.id, query.runId)
        try:
            while query.isActive and not self._stop.wait(_POLL_SECONDS):
                self._note_progress(query)
        finally:
            query.stop()
        self._note_progress(query)
        error = query.exception()
        if error is not None:
            raise error
        self._stop.ensure_not_requested()

    def _note_progress(self, query: StreamingQuery) -> None:
        for each in query.recentProgress:
            counted = each["observedMetrics"].get(ROWS_WRITTEN)
            if each["batchId"] <= self._last_batch or counted is None or not counted["rows"]:
                continue
            self._last_batch = each["batchId"]
            self.batches += 1
            self.rows += counted["rows"]
            _LOGGER.info(
                "batch %d: %d rows in %.1f s",
                *(each["batchId"], counted["rows"], each["batchDuration"] / 1000),
            )


JOB = Job("ingest", __doc__, add_arguments, prepare, run)

if __name__ == "__main__":
    end_process(JOB.main())
