"""Rows of any Spark source as records of a topic, each exactly once.

A batch has a job id, which the log directory remembers: another run under that id writes nothing. A
stream has a checkpoint. What is read and how a row becomes a record stands in a TOML file.

``python -m pylog_jobs.ingest --config ingest.toml``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

import pylog
from pylog_jobs import clock
from pylog_jobs.bookmark import VERSION, Bookmark, RememberedRows
from pylog_jobs.checks import RowChecks
from pylog_jobs.config_file import ConfigFile
from pylog_jobs.config_list import find_configs, labels_of_target, split_configs
from pylog_jobs.error_text import describe
from pylog_jobs.exit_status import DONE, FINDINGS, status_of
from pylog_jobs.incremental import last_run, look_at
from pylog_jobs.ingest_config import AVAILABLE_NOW, BATCH, FAIL, INTERVAL, SKIP
from pylog_jobs.ingest_windows import choose_windows
from pylog_jobs.job import (
    Job,
    JobFailedError,
    Outcome,
    UsageError,
    end_process,
    labels_of,
    say_in_ui,
)
from pylog_jobs.job_report import dataset_of
from pylog_jobs.read_range import next_bookmark
from pylog_jobs.record_frame import MissingInputError, read_source, to_records
from pylog_jobs.record_write import RecordWrite, StagedRows
from pylog_jobs.run_window import RunWindow, add_window_arguments, instant_text, windows_of
from pylog_jobs.stop_request import StoppedError, StopRequest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pylog_jobs.incremental import LastRun, RunPiece
    from pylog_jobs.ingest_config import IngestConfig

_FIRST_ROWS = 5
_LOGGER = logging.getLogger("pylog_jobs.ingest")  # also where this is __main__

ROWS_WRITTEN = "ingest"
"""The name of the observation whose ``rows`` are counted, of a stream."""
_POLL_SECONDS = 0.5
_MOST_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestParameters:
    """What to ingest, checked; a dry run only shows the plan and the first rows."""

    config: IngestConfig
    is_dry_run: bool = False
    is_full: bool = False
    after_version: int | None = None
    backfill: tuple[IngestConfig, ...] = ()  # one for each window, in place of the configuration
    waiting: tuple[RunWindow, ...] = ()  # windows of the backfill that are not over


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    parser.add_argument(
        "--config",
        metavar="PATH",
        nargs="+",
        action="extend",
        required=True,
        help="a TOML file, or several, or a folder of them: one run after the other",
    )
    add_window_arguments(parser)
    parser.add_argument(
        "--full",
        action="store_true",
        help="of an incremental ingest: read everything again, and replace what the topic has",
    )
    parser.add_argument(
        "--after-version",
        metavar="VERSION",
        type=int,
        help="of an ingest from versions of a table: continue after this version, which leaves out "
        "what it and others since the last run have changed",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="write nothing; show the plan and the first rows"
    )


def prepare(arguments: argparse.Namespace) -> IngestParameters:
    """Return the parameters, checked as far as that can be done without Spark."""
    [(name, path)] = find_configs(arguments.config).items()
    labels = labels_of(arguments)
    labels["name"] = name
    file = ConfigFile(path, arguments.secrets)
    labels.update(labels_of_target(file, {}))
    windows = windows_of(arguments, clock.now())
    labels.update(labels_of_target(file, windows[0].values()))
    chosen = choose_windows(file, windows, arguments)
    first = chosen.configs[0]
    if first.trigger.kind == INTERVAL and not getattr(arguments, "is_alone", True):
        raise UsageError(
            f'{path}: [trigger]: kind = "{INTERVAL}" never ends, and other configurations would '
            f'wait for it; run it by itself, or give kind = "{AVAILABLE_NOW}"'
        )
    if arguments.after_version is not None and (
        first.incremental is None or not first.incremental.is_by_version or arguments.full
    ):
        raise UsageError("--after-version belongs to an ingest from versions of a table")
    return IngestParameters(
        config=first,
        is_dry_run=arguments.dry_run,
        is_full=arguments.full,
        after_version=arguments.after_version,
        backfill=tuple(chosen.configs) if arguments.backfill is not None else (),
        waiting=chosen.waiting,
    )


def run(
    spark: SparkSession, parameters: IngestParameters, stop: StopRequest | None = None
) -> Outcome:
    """Ingest; return how many rows were written."""
    stop = stop or StopRequest()
    if parameters.backfill:
        return _backfill(spark, parameters, stop)
    return _run_window(spark, parameters, stop)


def _backfill(spark: SparkSession, parameters: IngestParameters, stop: StopRequest) -> Outcome:
    """Run the windows that are missing, up to the first that fails."""
    done: list[dict[str, object]] = []
    rows = 0
    first = parameters.backfill[0]
    waiting = parameters.waiting
    about = {**_about(first), "jobId": None, "windows": done, "openWindows": len(waiting)}
    if waiting:
        about["openWindowsFrom"] = instant_text(waiting[0].end)
    for config in parameters.backfill:
        window = {**_shown_window(config.window), "jobId": config.target.job_id}
        stop.ensure_not_requested()
        try:
            outcome = _run_window(spark, replace(parameters, config=config, backfill=()), stop)
        except StoppedError:
            raise
        except Exception as error:  # noqa: BLE001 - as at the end of every job
            text = describe(error)
            _LOGGER.error("window %s: %s", config.window, text)  # noqa: TRY400 - one line
            done.append({**window, "error": text})
            return Outcome(status_of(error), {**about, "rows": rows, "error": text})
        names = ("rows", "alreadyCommitted", "inputMissing", "dryRun")
        said = {name: outcome.summary[name] for name in names if name in outcome.summary}
        done.append({**window, **said})
        written = outcome.summary.get("rows", 0)
        rows += written if isinstance(written, int) else 0
        if outcome.summary.get("inputMissing"):
            _LOGGER.info("window %s has no input yet", config.window)
    return Outcome(DONE, {**about, "rows": rows}, _reads(first))


def _run_window(spark: SparkSession, parameters: IngestParameters, stop: StopRequest) -> Outcome:
    config = parameters.config
    try:
        if parameters.is_dry_run:
            return _show(spark, config, is_full=parameters.is_full)
        if config.trigger.is_stream:
            return _ingest_stream(spark, config, stop)
        if config.incremental is not None:
            return _ingest_next(spark, parameters, stop)
        return _ingest_batch(spark, config, stop)
    except MissingInputError as error:
        if config.source.on_missing == FAIL:
            raise UsageError(str(error)) from error
        if config.source.on_missing != SKIP:
            raise
        _LOGGER.info("%s; nothing is written, and a later run may", error)
        return Outcome(DONE, {**_about(config), "inputMissing": True, "rows": 0}, _reads(config))


def _ingest_batch(spark: SparkSession, config: IngestConfig, stop: StopRequest) -> Outcome:
    job_id = config.target.job_id
    write = RecordWrite(config.target, job_id or str(uuid.uuid4()))
    rows = None
    if not write.is_committed:
        source = read_source(spark, config.source, is_stream=False)
        rows = _write(config, write, source, stop)
    if rows is None:
        _LOGGER.info("job %s has been committed before; nothing is written", job_id)
    about = {**_about(config), "alreadyCommitted": rows is None, "rows": rows or 0}
    return Outcome(DONE, about, _reads(config))


def _write(
    config: IngestConfig,
    write: RecordWrite,
    rows: DataFrame,
    stop: StopRequest,
    piece: RunPiece | None = None,
) -> int | None:
    """Stage rows, check them, commit them; return how many, None if that was done before."""
    checks = RowChecks(config.checks)
    carried = () if piece is None else piece.carried
    records = to_records(checks.observed(rows), config.record, carried)
    columns = [each for each in records.columns if each not in carried]
    place = f"{config.target.topic or 'topics'} in {config.target.directory}"
    say_in_ui(rows.sparkSession, f"stage rows for {place}")
    try:
        staged = write.stage(
            records, columns, piece.read_range.remember_from if piece is not None else None
        )
        stop.ensure_not_requested()
        if write.is_committed:  # by another run meanwhile: tasks that began later read nothing
            write.abort()
            return None
        checks.ensure_passed(staged.rows)
        bookmark = None
        if piece is not None:
            if not staged.rows and not piece.read_range.is_new:
                write.abort()
                return 0
            bookmark = _bookmark(piece, staged)
        is_written = write.commit(staged, bookmark)
    except BaseException:
        write.abort()
        raise
    if is_written:
        _LOGGER.info("wrote %d rows to %s", staged.rows, config.target.directory)
    return staged.rows if is_written else None


def _bookmark(piece: RunPiece, staged: StagedRows) -> str:
    """Return the bookmark of the rows that are staged."""
    before = piece.rows_before
    if before is not None:
        passed = piece.about.rows.positions < piece.read_range.known_from
        before += int(passed.sum()) + staged.rows - len(staged.remembered)
    made = next_bookmark(piece.read_range, staged.remembered, piece.about, rows_before=before)
    return made.to_text()


def _ingest_next(spark: SparkSession, parameters: IngestParameters, stop: StopRequest) -> Outcome:
    """Read on from the bookmark; from the first row if all is to be read again."""
    config, is_full = parameters.config, parameters.is_full
    about: dict[str, object] = {**_about(config), "full": is_full}
    for _ in range(_MOST_TRIES):
        last = last_run(config, is_full=is_full)
        _remove_replaced(config, last)
        look = look_at(spark, config, last.read_so_far, parameters.after_version)
        status = DONE if look.gone_back is None else FINDINGS
        if look.gone_back is not None:
            _LOGGER.warning("[incremental]: %s", look.gone_back)
        if look.left_out is not None:
            about |= {
                **look.left_out.to_json(),
                "waitsFor": look.waits_for,
                "wentBack": look.gone_back is not None,
            }
        piece = look.piece
        if piece is None:
            RowChecks(config.checks).ensure_passed(0)
            if is_full and last.number >= 0:
                _start_over_without_rows(config, last)
            return _nothing_new(status, about, config)
        _LOGGER.info("reading from %(from)s to %(to)s", piece.shown)
        if is_full:
            piece = piece._replace(about=replace(piece.about, replaces=_end_offsets(config)))
        write = RecordWrite(config.target, str(config.target.job_id), last.number + 1)
        rows = _write(config, write, piece.rows, stop, piece)
        if rows == 0 and not piece.read_range.is_new:
            return _nothing_new(status, about, config)
        if rows is not None:
            _remove_replaced(config, last_run(config, is_full=False))
            return Outcome(status, {**about, "window": piece.shown, "rows": rows}, _reads(config))
        # Another run, or the completion of one that was killed, was first: go on after it.
        _LOGGER.info("run %d has been committed meanwhile", last.number + 1)
    msg = f"other runs of job {config.target.job_id!r} commit meanwhile: let one run at a time"
    raise JobFailedError(msg)


def _start_over_without_rows(config: IngestConfig, last: LastRun) -> None:
    """Forget the bookmark, and remove what the topic has: the source has no row."""
    nothing = Bookmark(None, VERSION, 0, replaces=_end_offsets(config), nothing_read=True)
    write = RecordWrite(config.target, str(config.target.job_id), last.number + 1)
    write.commit(StagedRows((), 0, RememberedRows()), nothing.to_text())
    _LOGGER.info("the source has no rows: the next run is the first one again")
    _remove_replaced(config, last_run(config, is_full=False))


def _nothing_new(status: int, about: dict[str, object], config: IngestConfig) -> Outcome:
    _LOGGER.info("there is nothing new")
    return Outcome(status, {**about, "window": None, "rows": 0}, _reads(config))


def _end_offsets(config: IngestConfig) -> dict[int, int]:
    """Return where the partitions of the topic end now; what comes later is not replaced."""
    try:
        directory = pylog.open_directory(config.target.directory)
    except pylog.LogStorageError:
        return {}  # there is none yet
    topic = str(config.target.topic)
    views = directory.topics.get(topic, [])
    return {view.topic_partition.partition: view.log_end_offset for view in views}


def _remove_replaced(config: IngestConfig, last: LastRun) -> None:
    """Remove the records that a run with ``--full`` has replaced; again, if it was killed."""
    replaced = {} if last.bookmark is None else last.bookmark.replaces
    offsets = {
        (str(config.target.topic), number): offset for number, offset in replaced.items() if offset
    }
    if not offsets:
        return
    try:
        moved = pylog.delete_records(config.target.directory, offsets)
    except pylog.errors.PolicyViolationError:
        _LOGGER.info("older records of %s go when it is compacted", config.target.topic)
        return
    if any(each.before != each.after for each in moved.values()):
        _LOGGER.info("records before those of the last --full are removed")


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
    about = {**_about(config), "batches": ingest.batches, "rows": ingest.rows}
    return Outcome(DONE, about, _reads(config))


def _show(spark: SparkSession, config: IngestConfig, *, is_full: bool) -> Outcome:
    """Log what would be done, with the first rows, and return both."""
    about = _about(config)
    if config.incremental is not None:
        last = last_run(config, is_full=is_full).read_so_far
        piece = look_at(spark, config, last).piece
        about["window"] = None if piece is None else piece.shown
        if piece is None:
            _LOGGER.info("plan: there is nothing new")
            return Outcome(DONE, {"dryRun": True, "plan": about, "firstRows": []})
        rows, first = piece.rows.drop(*piece.carried), piece.rows.drop(*piece.carried)
    else:
        rows = read_source(spark, config.source, is_stream=config.trigger.is_stream)
        first = None
    records = to_records(rows, config.record)
    plan = {
        **about,
        "options": config.target.write_options(),
        "columns": {each.name: each.dataType.simpleString() for each in records.schema},
        "topicExists": _exists(config),
    }
    for name, value in plan.items():
        _LOGGER.info("plan: %s: %s", name, value)
    shown = _first_rows(spark, config, first)
    for row in shown:
        _LOGGER.info("row: %s", row)
    return Outcome(DONE, {"dryRun": True, "plan": plan, "firstRows": shown})


def _about(config: IngestConfig) -> dict[str, object]:
    is_of_window = config.incremental is None and not config.trigger.is_stream
    return {
        "source": config.shown_source,
        "directory": config.target.directory,
        "topic": config.target.topic,
        "trigger": config.trigger.kind,
        **({"jobId": config.target.job_id} if config.trigger.kind == BATCH else {}),
        **({"window": _shown_window(config.window)} if is_of_window else {}),
    }


def _shown_window(window: RunWindow) -> dict[str, object]:
    shown = {"start": instant_text(window.start), "end": instant_text(window.end)}
    return {**shown, "isOpen": True} if window.is_open else {**shown}


def _reads(config: IngestConfig) -> tuple[str, str]:
    source = config.source
    return dataset_of(config.shown_source, source.path, source.options)


def _exists(config: IngestConfig) -> bool | None:
    """Return whether the topic is there; None where each row names its own."""
    if config.target.topic is None:
        return None
    try:
        return config.target.topic in pylog.open_directory(config.target.directory)
    except pylog.LogStorageError:
        return False  # there is no log directory yet


def _first_rows(
    spark: SparkSession, config: IngestConfig, rows: DataFrame | None
) -> list[dict[str, object]]:
    """Return the first records, as text where it is text; of a stream, what it would begin with."""
    try:
        if rows is None:
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


JOB = Job("ingest", __doc__, add_arguments, prepare, run, split_configs)

if __name__ == "__main__":
    end_process(JOB.main())
