"""Records of a log directory as Parquet files, run by run: each run adds what is new.

Lineage columns: topic, partition, offset, timestamp, timestampType; the files lie in directories by
run, topic and day (UTC). A run is published whole, together with the offsets at which the next one
begins, see `pylog_jobs.export_output`.

``python -m pylog_jobs.export LOG_DIRECTORY OUTPUT``, or ``spark-submit``; see docs/jobs.md.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyspark.sql import Observation
from pyspark.sql import functions as sf

import pylog
from pylog_jobs.export_output import (
    ExportedFile,
    ExportedPartition,
    ExportOutput,
    ExportRun,
    find_ranges,
    read_options,
)
from pylog_jobs.job import DONE, Job, JobFailedError, Outcome, UsageError, end_process
from pylog_jobs.stop_request import StopRequest

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

_LOGGER = logging.getLogger("pylog_jobs.export")  # also where this is __main__


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportParameters:
    """What to export, checked; without topics and pattern, all topics but internal ones."""

    paths: tuple[str, ...]
    output: ExportOutput
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    isolation: str = pylog.IsolationLevel.READ_UNCOMMITTED.label
    mode: str = "FAILFAST"
    compression: str = _COMPRESSIONS[0]
    fails_on_data_loss: bool = True  # records deleted before they were exported are an error
    is_dry_run: bool = False

    def find_ranges(self, last: ExportRun | None) -> list[PartitionRange]:
        """Return what is to be exported after run ``last``."""
        if last is not None and last.isolation != self.isolation:
            msg = (
                f"the runs in {self.output.path} were made with --isolation {last.isolation}; go "
                "on with that, or export to another output"
            )
            raise UsageError(msg)
        partitions = pylog.read_table(
            pylog.open_directory(*self.paths),
            "partitions",
            topics=self.topics,
            pattern=self.pattern,
            mode=self.mode,
        )
        if not partitions.num_rows:
            chosen_from = ", ".join(map(str, self.paths))
            msg = f"there is nothing to export: no topic of {chosen_from} was chosen"
            raise UsageError(msg)
        return find_ranges(
            partitions,
            {} if last is None else last.partitions,
            isolation=self.isolation,
            fails_on_data_loss=self.fails_on_data_loss,
        )


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
        choices=["FAILFAST", "DROPMALFORMED"],
        default="FAILFAST",
        help="DROPMALFORMED: leave out what is damaged (default: %(default)s)",
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
        ranges = parameters.find_ranges(last)
        return _outcome(parameters, ranges, run=None, rows=0)
    with output.owned():
        for name in output.remove_leftovers():
            _LOGGER.warning("removed %s, of a run that was not published", output.path / name)
        last = output.last_run()
        number = 0 if last is None else last.number + 1
        ranges = parameters.find_ranges(last)
        if not any(each.offsets for each in ranges):
            _LOGGER.info("nothing is new")
            return _outcome(parameters, ranges, run=None, rows=0)
        staging = output.new_staging(number)
        rows = _write(spark, parameters, ranges, staging)
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
    return _outcome(parameters, ranges, run=number, rows=rows, files=files)


def _outcome(
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
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
    return Outcome(
        DONE,
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
        },
    )


def read_ranges(
    spark: SparkSession, parameters: ExportParameters, ranges: Sequence[PartitionRange]
) -> DataFrame:
    """Return the records of the ranges, with the day of each, in the order of the files."""
    reader = spark.read.format("pylog").options(
        **read_options([each for each in ranges if each.offsets]),
        isolationLevel=parameters.isolation,
        mode=parameters.mode,
        includeHeaders="true",
        failOnDataLoss=str(parameters.fails_on_data_loss).lower(),
    )
    frame = reader.load(list(parameters.paths)).withColumn("date", sf.to_date("timestamp"))
    # By the directories first, as Spark would sort anyway; then so that a file's statistics of
    # offsets leave out what a query does not want.
    return frame.sortWithinPartitions("topic", "date", "partition", "offset")


def _write(
    spark: SparkSession,
    parameters: ExportParameters,
    ranges: Sequence[PartitionRange],
    staging: Path,
) -> int:
    """Write Parquet files to ``staging``; return how many rows the tasks wrote."""
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
