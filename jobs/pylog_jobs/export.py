"""Records of a log directory as Parquet files, run by run: each run adds what is new.

Lineage columns: topic, partition, offset, timestamp, timestampType; the files lie in directories by
run, topic and day (UTC). A run is published whole, together with the offsets at which the next one
begins, see `pylog_jobs.export_output`. A damaged partition is left out of a run, and holds up no
other one: the run after its repair exports it.

``python -m pylog_jobs.export LOG_DIRECTORY OUTPUT``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as sf

import pylog
from pylog.errors import LogStorageError
from pylog_jobs.export_output import (
    DamagedPartition,
    ExportedFile,
    ExportedPartition,
    ExportOutput,
    ExportRun,
    find_ranges,
    read_options,
)
from pylog_jobs.job import (
    DONE,
    FINDINGS,
    Job,
    JobFailedError,
    Outcome,
    UsageError,
    describe,
    end_process,
)
from pylog_jobs.stop_request import StopRequest
from pyspark_pylog.errors import ADVICE_ON_DAMAGE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pylog_jobs.export_output import PartitionRange

_SETTINGS = {
    # Which day a record belongs to is the same on every machine.
    "spark.sql.session.timeZone": "UTC",
    # Records may carry any 64-bit time; Spark's other formats refuse or shift what is before 1900.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
_COMPRESSIONS = ("snappy", "zstd", "gzip", "lz4", "none")
FAILFAST, DROPMALFORMED = _MODES = ("FAILFAST", "DROPMALFORMED")
_CORRUPT_RECORD = "_corrupt_record"
_ERRORS_OF_LOGS = "pylog.errors."

_LOGGER = logging.getLogger("pylog_jobs.export")  # also where this is __main__


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportParameters:
    """What to export, checked; without topics and pattern, all topics but internal ones."""

    paths: tuple[str, ...]
    output: ExportOutput
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    isolation: str = pylog.IsolationLevel.READ_UNCOMMITTED.label
    mode: str = FAILFAST
    compression: str = _COMPRESSIONS[0]
    fails_on_data_loss: bool = True  # records deleted before they were exported are an error
    is_dry_run: bool = False

    def find_ranges(
        self, last: ExportRun | None
    ) -> tuple[list[PartitionRange], list[DamagedPartition]]:
        """Return the offsets to export after run ``last``, and the partitions to leave out."""
        if last is not None and last.isolation != self.isolation:
            msg = (
                f"the runs in {self.output.path} were made with --isolation {last.isolation}; go "
                "on with that, or export to another output"
            )
            raise UsageError(msg)
        partitions, damaged = self._read_partitions()
        if not partitions.num_rows:
            chosen_from = ", ".join(map(str, self.paths))
            msg = f"there is nothing to export: no topic of {chosen_from} was chosen"
            raise UsageError(msg)
        ranges, unreadable = find_ranges(
            partitions,
            {} if last is None else last.partitions,
            isolation=self.isolation,
            fails_on_data_loss=self.fails_on_data_loss,
            fails_on_damage=self.mode == FAILFAST,
        )
        return ranges, [*damaged, *unreadable]

    def _read_partitions(self) -> tuple[pa.Table, list[DamagedPartition]]:
        """Return table ``partitions``, and what can have no row in it.

        By ``FAILFAST`` a log ends where its files end; without, before damage at its end.
        """
        directory = pylog.open_directory(*self.paths)
        read = partial(pylog.read_table, directory, "partitions")
        read_chosen = partial(read, topics=self.topics, pattern=self.pattern)
        try:
            return read_chosen(mode=self.mode), []
        except LogStorageError:
            rows = read_chosen(mode=DROPMALFORMED)
        tables, damaged = [rows.slice(0, 0)], []
        for topic, partition in zip(rows["topic"], rows["partition"], strict=True):
            place = topic.as_py(), partition.as_py()
            try:
                tables.append(read(assign={place[0]: [place[1]]}))
            except LogStorageError as error:
                damaged.append(DamagedPartition(*place, str(error)))
        return pa.concat_tables(tables), damaged


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this job."""
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a log directory, or a topic-partition directory"
    )
    parser.add_argument("output", metavar="OUTPUT", help="the directory for the Parquet files")
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
        choices=_MODES,
        default=FAILFAST,
        help="FAILFAST leaves out a damaged partition as a whole, until it is intact again; "
        "DROPMALFORMED leaves out only its damaged bytes, for good (default: %(default)s)",
    )
    parser.add_argument(
        "--compression",
        choices=_COMPRESSIONS,
        default=_COMPRESSIONS[0],
        help="of the Parquet files (default: %(default)s)",
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
    paths = tuple(pylog.jobs.absolute_location(each) for each in arguments.paths)
    parameters = ExportParameters(
        paths=paths,
        output=ExportOutput(arguments.output),
        topics=tuple(arguments.topic.split(",")) if arguments.topic else None,
        pattern=arguments.pattern,
        isolation=arguments.isolation,
        mode=arguments.mode,
        compression=arguments.compression,
        fails_on_data_loss=not arguments.allow_data_loss,
        is_dry_run=arguments.dry_run,
    )
    pylog.open_directory(*paths).select(topics=parameters.topics, pattern=parameters.pattern)
    parameters.output.last_run()
    return parameters


def run(
    spark: SparkSession, parameters: ExportParameters, stop: StopRequest | None = None
) -> Outcome:
    """Export what is new as one run; return which it was, and how much."""
    output = parameters.output
    if parameters.is_dry_run:
        last = output.last_run()
        ranges, damaged = parameters.find_ranges(last)
        return _outcome(parameters, ranges, damaged, run=None, rows=0)
    with output.owned():
        for name in output.remove_leftovers():
            _LOGGER.warning("removed %s, of a run that was not published", output.path / name)
        last = output.last_run()
        number = 0 if last is None else last.number + 1
        ranges, damaged = parameters.find_ranges(last)
        staging = output.new_staging(number)
        try:
            rows = _write(spark, parameters, ranges, staging)
        except (PySparkException, Py4JJavaError) as error:
            found = _find_damage(spark, parameters, ranges, error)
            places = {(each.topic, each.partition) for each in found}
            ranges = [each for each in ranges if (each.topic, each.partition) not in places]
            damaged = [*damaged, *found]
            output.remove_leftovers()
            staging = output.new_staging(number)
            rows = _write(spark, parameters, ranges, staging)
        if rows is None:
            _LOGGER.info("nothing is new" if not damaged else "nothing new can be exported")
            return _outcome(parameters, ranges, damaged, run=None, rows=0)
        (stop or StopRequest()).ensure_not_requested()
        files = _files_of(staging)
        _ensure_all_rows_are_there(rows, files, staging)
        exported = {} if last is None else dict(last.partitions)
        for each in ranges:
            exported[each.topic, each.partition] = ExportedPartition(each.end, each.topic_id)
        published = output.publish(
            staging,
            ExportRun(
                number=number, isolation=parameters.isolation, partitions=exported, files=files
            ),
        )
        _LOGGER.info("published %s: %d rows in %d files", published, rows, len(files))
    return _outcome(parameters, ranges, damaged, run=number, rows=rows, files=files)


def _outcome(
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
    damaged: Sequence[DamagedPartition],
    *,
    run: int | None,
    rows: int,
    files: Sequence[ExportedFile] = (),
) -> Outcome:
    new = [each for each in ranges if each.offsets]
    for each in ranges:
        if each.missing:
            _LOGGER.warning(
                "%s-%d: %d offsets before %d were deleted before they were exported",
                *(each.topic, each.partition, each.missing, each.start),
            )
        if parameters.is_dry_run:
            _LOGGER.info(
                "%s-%d: offsets [%d, %d)", *(each.topic, each.partition, each.start, each.end)
            )
    for bad in damaged:
        _LOGGER.error(
            "%s-%d is left out: %s; the first run after its repair exports it, and --mode "
            "DROPMALFORMED exports what is intact of it",
            *(bad.topic, bad.partition, bad.error),
        )
    return Outcome(
        FINDINGS if damaged else DONE,
        {
            "paths": [str(path) for path in parameters.paths],
            "output": str(parameters.output.path),
            "dryRun": parameters.is_dry_run,
            "run": run,
            "partitions": len(new),
            "offsets": sum(each.offsets for each in new),
            "offsetsLost": sum(each.missing for each in ranges),
            "rows": rows,
            "files": len(files),
            "sizeInBytes": sum(each.bytes for each in files),
            "damagedPartitions": [asdict(bad) for bad in damaged],
        },
    )


def _load(
    spark: SparkSession,
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
    **options: str,
) -> DataFrame:
    reader = spark.read.format("pylog").options(
        **read_options([each for each in ranges if each.offsets]),
        isolationLevel=parameters.isolation,
        **options,
    )
    return reader.load(list(parameters.paths))


def _find_damage(
    spark: SparkSession,
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
    error: PySparkException | Py4JJavaError,
) -> list[DamagedPartition]:
    """Return which of the ranges ``error`` may come from; raise it if it is none of their damage.

    All ranges are read once more: a task ends at the first damage that it meets, and Spark at the
    first task that does.
    """
    if _ERRORS_OF_LOGS not in describe(error):
        raise error
    _LOGGER.warning("a partition is damaged; looking for all that are: %s", _short(describe(error)))
    columns = f"topic,partition,{_CORRUPT_RECORD}"
    # In this mode a log ends before damage at its end, and ranges may lie behind that.
    rows = _load(
        spark, parameters, ranges, mode="PERMISSIVE", columns=columns, failOnDataLoss="false"
    )
    found = (
        rows.where(sf.col(_CORRUPT_RECORD).isNotNull())
        .groupBy("topic", "partition")
        .agg(sf.min(_CORRUPT_RECORD).alias("error"))
        .orderBy("topic", "partition")
        .collect()
    )
    if not found:
        raise error
    return [DamagedPartition(row.topic, row.partition, _short(row.error)) for row in found]


def _short(text: str) -> str:
    """Return an error without its class, and without advice on options that this job lacks."""
    return text.partition(f"; {ADVICE_ON_DAMAGE}")[0].removeprefix(_ERRORS_OF_LOGS)


def read_ranges(
    spark: SparkSession, parameters: ExportParameters, ranges: Sequence[PartitionRange]
) -> DataFrame:
    """Return the records of the ranges, with the day of each, in the order of the files."""
    loaded = _load(
        spark,
        parameters,
        ranges,
        mode=parameters.mode,
        includeHeaders="true",
        failOnDataLoss=str(parameters.fails_on_data_loss).lower(),
    )
    frame = loaded.withColumn("date", sf.to_date("timestamp"))
    # By the directories first, as Spark would sort anyway; then so that a file's statistics of
    # offsets leave out what a query does not want.
    return frame.sortWithinPartitions("topic", "date", "partition", "offset")


def _write(
    spark: SparkSession,
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
    staging: Path,
) -> int | None:
    """Write Parquet files to ``staging``; return how many rows, None where there is nothing new."""
    if not any(each.offsets for each in ranges):
        return None
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    observation = Observation("export")
    counted = read_ranges(spark, parameters, ranges).observe(
        observation, sf.count(sf.lit(1)).alias("rows")
    )
    writer = counted.write.partitionBy("topic", "date").option(
        "compression", parameters.compression
    )
    writer.parquet(f"file://{staging}")  # Hadoop takes "%20" for what it says
    return int(observation.get["rows"])


def _files_of(staging: Path) -> list[ExportedFile]:
    return [
        ExportedFile(
            str(path.relative_to(staging)), pq.read_metadata(path).num_rows, path.stat().st_size
        )
        for path in sorted(staging.rglob("*.parquet"))
        if not path.name.startswith((".", "_"))
    ]


def _ensure_all_rows_are_there(rows: int, files: Sequence[ExportedFile], staging: Path) -> None:
    """Return if the driver sees each row that a task wrote, and none twice."""
    found = sum(each.rows for each in files)
    if found != rows or not staging.is_dir():
        msg = (
            f"the tasks wrote {rows} rows to {staging}, and the driver sees {found} there; the "
            "output has to be on a file system that driver and executors share. Nothing was "
            "published"
        )
        raise JobFailedError(msg)


JOB = Job("export", __doc__, add_arguments, prepare, run)

if __name__ == "__main__":
    end_process(JOB.main())
