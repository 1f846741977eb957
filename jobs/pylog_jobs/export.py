"""Records of a log directory as files or in a table, run by run: each run adds what is new.

Lineage columns: topic, partition, offset, timestamp, timestampType; by default the rows are
partitioned by topic and day (UTC). A run is published whole, together with the offsets at which the
next one starts: as a directory (Parquet, CSV, JSON lines), or as a commit to a Delta or Iceberg
table. A damaged partition is left out of a run, and holds up no other one: the run after its repair
exports it.

``python -m pylog_jobs.export LOG_DIRECTORY OUTPUT``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import logging
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

import pylog
from pylog_jobs.error_text import describe
from pylog_jobs.exit_status import DONE, FINDINGS, UNUSABLE
from pylog_jobs.export_output import (
    DEFAULT_PARTITION_BY,
    ExportOutput,
    ExportRun,
    write_hand_over,
)
from pylog_jobs.export_parameters import (
    COLUMNS,
    COMPRESSIONS,
    DELTA,
    FAILFAST,
    FORMATS,
    ICEBERG,
    MODES,
    ExportParameters,
    PartitionColumn,
)
from pylog_jobs.export_ranges import (
    ExportedPartition,
    ExportPlan,
    LeftOutPartition,
    read_options,
)
from pylog_jobs.export_tables import END_US, FIRST_US, DeltaOutput, IcebergOutput
from pylog_jobs.job import Job, Outcome, UsageError, end_process, labels_of, topics_of
from pylog_jobs.record_files import CSV, JSONL, PARQUET, RecordFiles
from pylog_jobs.stop_request import StopRequest
from pyspark_pylog.jobs import ADVICE_ON_DAMAGE, ADVICE_ON_TIMES, by_topic

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pylog_jobs.export_output import Output
    from pylog_jobs.export_ranges import PartitionRange
    from pylog_jobs.record_files import Folder, WrittenFile

# Which day a record belongs to is the same on every machine.
_SETTINGS = {"spark.sql.session.timeZone": "UTC"}
_TYPES = {"string": pa.string(), "date": pa.date32(), "int": pa.int32(), "bigint": pa.int64()}
"""Of partition columns: what directories, Delta and Iceberg show as the same text."""
_CORRUPT_RECORD = "_corrupt_record"
_ERRORS_OF_LOGS = "pylog.errors."
_OF_VALUES = re.compile("ValueError: ")
"""What the error begins with of a task that cannot write a value in the format."""

_LOGGER = logging.getLogger("pylog_jobs.export")  # also where this is __main__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a log directory, or a topic-partition directory"
    )
    parser.add_argument(
        "output",
        metavar="OUTPUT",
        help="a directory; delta: the table's path or URI; iceberg: CATALOG.NAMESPACE.TABLE",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default=PARQUET, help="of the output (default: %(default)s)"
    )
    parser.add_argument(
        "--partition-by",
        metavar="NAME[=SQL]",
        action="append",
        help="topic, partition, date (of the timestamp, in UTC), or a name and an SQL expression "
        "of topic, partition and timestamp; once for each column; none: no columns (default: "
        "topic and date)",
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--topic", metavar="T[,T...]", help="only these topics; by default all but internal ones"
    )
    choice.add_argument("--pattern", metavar="REGEX", help="only topics that the pattern finds")
    parser.add_argument(
        "--isolation",
        choices=[each.label for each in pylog.IsolationLevel],
        default=pylog.IsolationLevel.READ_UNCOMMITTED.label,
        help="read_committed: up to the first open transaction, without aborted ones "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        default=FAILFAST,
        help="FAILFAST leaves out a damaged partition as a whole, until it is intact again; "
        "DROPMALFORMED leaves out only its damaged bytes, for good (default: %(default)s)",
    )
    parser.add_argument(
        "--compression",
        choices=COMPRESSIONS,
        help=f"of Parquet files (default: {COMPRESSIONS[0]})",
    )
    parser.add_argument(
        "--values",
        choices=pylog.jobs.VALUE_FORMATS,
        help="how csv and jsonl have keys, values and headers: as UTF-8 text, or in base64 "
        f"(default: {pylog.jobs.VALUE_FORMATS[0]})",
    )
    parser.add_argument(
        "--hand-over",
        metavar="DIRECTORY",
        type=Path,
        help="write to this directory at which offsets a consumer, Kafka Connect or Spark "
        "continues from the broker, so that nothing is missing and nothing there twice",
    )
    parser.add_argument(
        "--restart-topic",
        metavar="T[,T...]",
        action="append",
        help="start a topic over that was created again, or truncated, since it was exported: from "
        "its beginning, in the same output; may be repeated",
    )
    parser.add_argument(
        "--allow-data-loss",
        action="store_true",
        help="go on where records were deleted before they were exported",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only say which offsets would be exported"
    )


def prepare(arguments: argparse.Namespace) -> ExportParameters:
    """Return the parameters, after a look at the directory and the output."""
    labels_of(arguments)["name"] = arguments.output
    paths = tuple(pylog.jobs.absolute_location(each) for each in arguments.paths)
    is_of_lines = arguments.format in (CSV, JSONL)
    if arguments.compression and is_of_lines:
        raise UsageError(f"--compression is for Parquet files, and --format is {arguments.format}")
    if arguments.values and not is_of_lines:
        raise UsageError(f"--values is for csv and jsonl, and --format is {arguments.format}")
    given = arguments.partition_by or DEFAULT_PARTITION_BY
    columns = () if list(given) == ["none"] else tuple(map(PartitionColumn.parse, given))
    if len({each.name for each in columns}) < len(columns):
        msg = f"--partition-by names a column twice: {', '.join(each.name for each in columns)}"
        raise UsageError(msg)
    hidden = [each.name for each in columns if each.name.startswith("_")]
    if hidden and arguments.format not in (DELTA, ICEBERG):
        raise UsageError(
            f"--partition-by names a column {hidden[0]}, and PyArrow passes over directories whose "
            "names begin with an underscore; give another name"
        )
    outputs: dict[str, Callable[[str], Output]] = {DELTA: DeltaOutput, ICEBERG: IcebergOutput}
    open_output = outputs.get(arguments.format, ExportOutput)
    parameters = ExportParameters(
        paths=paths,
        output=open_output(arguments.output),
        format=arguments.format,
        partition_by=columns,
        topics=topics_of(None if arguments.topic is None else [arguments.topic]),
        pattern=arguments.pattern,
        isolation=arguments.isolation,
        mode=arguments.mode,
        compression=arguments.compression or COMPRESSIONS[0],
        values=arguments.values or pylog.jobs.VALUE_FORMATS[0],
        hand_over=arguments.hand_over,
        fails_on_data_loss=not arguments.allow_data_loss,
        restart=topics_of(arguments.restart_topic) or (),
        is_dry_run=arguments.dry_run,
    )
    others = {*parameters.restart}.difference(parameters.topics or parameters.restart)
    if others:
        raise UsageError(f"--restart-topic {min(others)}: --topic does not name it")
    pylog.open_directory(*paths).select(topics=parameters.restart or None)
    if isinstance(parameters.output, ExportOutput):
        parameters.topics_there(parameters.output.last_run())
    return parameters  # a table's store or catalog may answer at the next attempt


def run(
    spark: SparkSession, parameters: ExportParameters, stop: StopRequest | None = None
) -> Outcome:
    """Export what is new as one run; return which it was, and how much."""
    output = parameters.output
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    schema = output_schema(spark, parameters)
    if parameters.is_dry_run:
        return _outcome(parameters, parameters.find_plan(output.last_run()), run=None)
    with output.owned():
        for name in output.remove_leftovers():
            _LOGGER.warning("removed %s, of a run that was not published", name)
        last = output.last_run()
        number = 0 if last is None else last.number + 1
        plan = parameters.find_plan(last)
        if not plan.new and not plan.restarted:
            return _nothing_new(parameters, plan)
        output.prepare(schema, [each.name for each in parameters.partition_by])
        folder = output.new_folder(number)
        try:
            files = _write(spark, parameters, plan.new, schema, folder)
            found = _find_far_times(spark, parameters, plan.new, schema, files)
        except (PySparkException, Py4JJavaError) as error:
            found = _find_damage(spark, parameters, plan.new, error)
        if found:
            places = {(each.topic, each.partition) for each in found}
            intact = [each for each in plan.ranges if (each.topic, each.partition) not in places]
            plan = replace(plan, ranges=intact, damaged=[*plan.damaged, *found])
            folder.remove()
            if not plan.new and not plan.restarted:
                return _nothing_new(parameters, plan)
            folder = output.new_folder(number)
            files = _write(spark, parameters, plan.new, schema, folder)
        (stop or StopRequest()).ensure_not_requested()
        before = {} if last is None else dict(last.partitions)
        exported = {at: each for at, each in before.items() if at[0] not in plan.restarted}
        for each in plan.ranges:
            exported[each.topic, each.partition] = ExportedPartition(each.end, each.topic_id)
        of_run = ExportRun(
            number=number,
            isolation=parameters.isolation,
            partitions=exported,
            format=parameters.format,
            partition_by=tuple(map(str, parameters.partition_by)),
            restarted=plan.restarted,
        )
        published = output.publish(folder, of_run, files)
        rows = sum(each.rows for each in files)
        _LOGGER.info("published %s: %d rows in %d files", published, rows, len(files))
    return _outcome(parameters, plan, run=number, files=files)


def _nothing_new(parameters: ExportParameters, plan: ExportPlan) -> Outcome:
    _LOGGER.info("nothing is new" if plan.is_whole else "nothing new can be exported")
    return _outcome(parameters, plan, run=None)


def _outcome(
    parameters: ExportParameters,
    plan: ExportPlan,
    *,
    run: int | None,
    files: Sequence[WrittenFile] = (),
) -> Outcome:
    _log_plan(plan, is_dry_run=parameters.is_dry_run)
    summary: dict[str, object] = {
        "paths": [str(path) for path in parameters.paths],
        "output": parameters.output.name,
        "format": parameters.format,
        "dryRun": parameters.is_dry_run,
        "run": run,
        "partitions": len(plan.new),
        "offsets": sum(each.offsets for each in plan.new),
        "offsetsLost": sum(each.missing for each in plan.ranges),
        "rows": sum(each.rows for each in files),
        "files": len(files),
        "sizeInBytes": sum(each.bytes for each in files),
        "damagedPartitions": [asdict(each) for each in plan.damaged],
        "stoppedPartitions": [asdict(each) for each in plan.stopped],
        "recreatedTopics": [
            {"topic": each.topic, "exportedTopicId": each.exported_id, "topicId": each.topic_id}
            for each in plan.recreated
        ],
        "restartedTopics": sorted(plan.restarted),
    }
    if parameters.hand_over is not None:
        summary["handOver"] = _hand_over(parameters, parameters.hand_over, plan)
    if plan.stopped or plan.recreated:
        return Outcome(UNUSABLE, summary)
    return Outcome(FINDINGS if plan.damaged else DONE, summary)


def _log_plan(plan: ExportPlan, *, is_dry_run: bool) -> None:
    for each in plan.ranges:
        if each.missing:
            _LOGGER.warning(
                "%s-%d: %d offsets before %d were deleted before they were exported",
                *(each.topic, each.partition, each.missing, each.start),
            )
        if is_dry_run:
            _LOGGER.info(
                "%s-%d: offsets [%d, %d)", *(each.topic, each.partition, each.start, each.end)
            )
    for bad in plan.damaged:
        _LOGGER.error(
            "%s-%d is left out: %s; the first run after its repair exports it, and --mode "
            "DROPMALFORMED exports what is intact of it",
            *(bad.topic, bad.partition, bad.error),
        )
    for bad in plan.stopped:
        _LOGGER.error("%s-%d is left out: %s", *(bad.topic, bad.partition, bad.error))
    for topic in plan.recreated:
        _LOGGER.error(
            "%s is left out: it was deleted and created again, with id %s, and was exported from "
            "one with id %s; --restart-topic %s exports it from its beginning, and the rows that "
            "the output has stay",
            *(topic.topic, topic.topic_id, topic.exported_id, topic.topic),
        )


def _hand_over(
    parameters: ExportParameters,
    directory: Path,
    plan: ExportPlan,
) -> dict[str, object] | None:
    """Write where others continue; return what the summary says of it."""
    offsets = {pylog.TopicPartition(each.topic, each.partition): each.end for each in plan.ranges}
    if not plan.is_whole:
        _LOGGER.error(
            "no offsets are handed over to %s, since not all partitions are exported", directory
        )
        return None
    files = [] if parameters.is_dry_run else write_hand_over(directory, offsets)
    for each in files:
        _LOGGER.info("wrote %s: continue from there, and export these topics no more", each)
    return {"offsets": by_topic(offsets), "files": files}


def _load(
    spark: SparkSession,
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
    **options: str,
) -> DataFrame:
    reader = spark.read.format("pylog").options(
        **read_options(ranges),
        isolationLevel=parameters.isolation,
        **options,
    )
    return reader.load(list(parameters.paths))


def _find_damage(
    spark: SparkSession,
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
    error: PySparkException | Py4JJavaError,
) -> list[LeftOutPartition]:
    """Return which of the ranges ``error`` may come from; raise it if it is none of their damage.

    All ranges are read once more: a task ends at the first damage that it meets, and Spark at the
    first task that does.
    """
    text = describe(error)
    if _OF_VALUES.match(text):
        raise UsageError(text.removeprefix(_OF_VALUES.pattern)) from error
    if _ERRORS_OF_LOGS not in text:
        raise error
    _LOGGER.warning("a partition is damaged; looking for all that are: %s", _short(text))
    columns = f"topic,partition,offset,timestamp,{_CORRUPT_RECORD}"
    # In this mode a log ends before damage at its end, and ranges may lie behind that.
    rows = _load(
        spark, parameters, ranges, mode="PERMISSIVE", columns=columns, failOnDataLoss="false"
    )
    is_left_out = sf.col(_CORRUPT_RECORD).isNotNull()
    if parameters.mode != FAILFAST:  # damage is passed over, and a time that no column holds is not
        is_left_out &= sf.col("offset").isNotNull()
    found = (
        rows.where(is_left_out)
        .groupBy("topic", "partition")
        .agg(sf.min(_CORRUPT_RECORD).alias("error"))
        .orderBy("topic", "partition")
        .collect()
    )
    if not found:
        raise error
    return [LeftOutPartition(row.topic, row.partition, _short(row.error)) for row in found]


def _find_far_times(
    spark: SparkSession,
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
    schema: pa.Schema,
    files: Sequence[WrittenFile],
) -> list[LeftOutPartition]:
    """Return which of the ranges have times that the table has no place for."""
    # pyiceberg makes Python's datetimes of them, and delta-rs of days that are partitions.
    days = [each for each in parameters.partition_by if schema.field(each.name).type == pa.date32()]
    if parameters.format != ICEBERG and not (parameters.format == DELTA and days):
        return []
    times = [each.bounds["timestamp"] for each in files]
    if all(low >= FIRST_US and high < END_US for low, high in times):
        return []
    at = sf.unix_micros("timestamp")
    columns = "topic,partition,timestamp"
    rows = _load(
        spark, parameters, ranges, mode=parameters.mode, columns=columns, failOnDataLoss="false"
    )
    found = (
        rows.where((at < FIRST_US) | (at >= END_US))
        .groupBy("topic", "partition")
        .agg(sf.max(at).alias("at"))
        .orderBy("topic", "partition")
        .collect()
    )
    reason = f"ms is not in the years 1 to 9999, and --format {parameters.format} has no other ones"
    return [
        LeftOutPartition(row.topic, row.partition, f"timestamp {row.at // 1000} {reason}")
        for row in found
    ]


def _short(text: str) -> str:
    """Return an error without its class, and without advice on options that this job lacks."""
    for advice in (f"; {ADVICE_ON_DAMAGE}", ADVICE_ON_TIMES):
        text = text.partition(advice)[0]
    return text.removeprefix(_ERRORS_OF_LOGS)


def read_ranges(
    spark: SparkSession, parameters: ExportParameters, ranges: Sequence[PartitionRange]
) -> DataFrame:
    """Return the records of the ranges with their partition columns, in the order of the files."""
    loaded = _load(
        spark,
        parameters,
        ranges,
        mode=parameters.mode,
        includeHeaders="true",
        includeBatchMetadata=str(parameters.format == JSONL).lower(),  # lines have parts of it
        failOnDataLoss=str(parameters.fails_on_data_loss).lower(),
    )
    # By partition columns, so that a task writes one file at a time; then so that a file's
    # statistics of offsets leave out what a query does not want.
    columns = {each.name: sf.expr(each.expression) for each in parameters.partition_by}
    return loaded.withColumns(columns).sortWithinPartitions(
        *columns, "topic", "partition", "offset"
    )


def output_schema(spark: SparkSession, parameters: ExportParameters) -> pa.Schema:
    """Return the columns of a record and those of ``--partition-by``, whose SQL is checked."""
    places = spark.createDataFrame([], "topic string, partition int, timestamp timestamp")
    schema = pylog.record_schema(COLUMNS)
    for column in parameters.partition_by:
        about = f"--partition-by {column}"
        try:
            [field] = places.select(sf.expr(column.expression)).schema
        except (PySparkException, ValueError) as error:
            msg = f"{about}: {describe(error)} (it may use topic, partition and timestamp)"
            raise UsageError(msg) from error
        kind = field.dataType.simpleString()
        if kind not in _TYPES:
            raise UsageError(
                f"{about} has type {kind.upper()}, expected one of {', '.join(_TYPES).upper()}; "
                f"write CAST({column.expression} AS STRING)"
            )
        if column.name not in schema.names:
            schema = schema.append(pa.field(column.name, _TYPES[kind]))
    return schema


def _write(
    spark: SparkSession,
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
    schema: pa.Schema,
    folder: Folder,
) -> list[WrittenFile]:
    """Have the tasks write files to ``folder``; return them."""
    if not ranges:
        return []
    names = tuple(each.name for each in parameters.partition_by)
    if parameters.format == JSONL:  # lines are those of the command line
        schema = pylog.record_schema(pylog.jobs.LineFormat.json().columns)
        at = schema.get_field_index("timestamp")
        schema = schema.set(at, pa.field("timestamp", pa.timestamp("ms", "UTC")))
    elif not parameters.output.keeps_partition_columns:
        schema = pa.schema([field for field in schema if field.name not in names])
    files = RecordFiles(
        folder=folder,
        schema=schema,
        partition_by=names,
        format=parameters.format if parameters.format in (CSV, JSONL) else PARQUET,
        compression=parameters.compression,
        values=parameters.values,
    )
    return files.write(read_ranges(spark, parameters, ranges))


JOB = Job("export", __doc__, add_arguments, prepare, run)

if __name__ == "__main__":
    end_process(JOB.main())
