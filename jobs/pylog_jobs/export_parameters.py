"""What ``export`` is asked for, and what that means for the next run."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

import pylog
from pylog.errors import LogStorageError
from pylog_jobs.export_output import DEFAULT_PARTITION_BY
from pylog_jobs.export_ranges import ExportPlan, LeftOutPartition, find_ranges
from pylog_jobs.job import UsageError
from pylog_jobs.record_files import CSV, JSONL, PARQUET

if TYPE_CHECKING:
    from pathlib import Path

    from pylog_jobs.export_output import ExportRun, Output

COMPRESSIONS = ("snappy", "zstd", "gzip", "lz4", "none")
DELTA, ICEBERG = "delta", "iceberg"
FORMATS = (PARQUET, DELTA, ICEBERG, CSV, JSONL)
FAILFAST, DROPMALFORMED = MODES = ("FAILFAST", "DROPMALFORMED")
COLUMNS = (
    *("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"),
)
BY_NAME = {"topic": "topic", "partition": "partition", "date": "to_date(timestamp)"}
"""Partition columns that need no expression."""
_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(.+)", re.DOTALL)
_LOGGER = logging.getLogger("pylog_jobs.export")


class PartitionColumn(NamedTuple):
    """A column whose values are the same in all rows of a file."""

    name: str
    expression: str  # SQL, of topic, partition and timestamp

    @classmethod
    def parse(cls, text: str) -> PartitionColumn:
        """Return the column of ``NAME`` or ``NAME=EXPRESSION``; `UsageError` if senseless."""
        if text.strip() in BY_NAME:
            return cls(text.strip(), BY_NAME[text.strip()])
        if not (match := _NAMED.fullmatch(text)):
            raise UsageError(
                f"--partition-by is {text!r}, expected {', '.join(BY_NAME)} or NAME=EXPRESSION, "
                "such as hour=date_format(timestamp, 'yyyy-MM-dd-HH')"
            )
        if match[1].lower() in (*map(str.lower, COLUMNS), "batch", "run"):
            msg = f"--partition-by {text!r}: {match[1]} is a column already; give another name"
            raise UsageError(msg)
        return cls(match[1], match[2].strip())

    def __str__(self) -> str:
        is_known = BY_NAME.get(self.name) == self.expression
        return self.name if is_known else f"{self.name}={self.expression}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportParameters:
    """What to export, checked; without topics and pattern, all topics but internal ones."""

    paths: tuple[str, ...]
    output: Output
    format: str = PARQUET
    partition_by: tuple[PartitionColumn, ...] = tuple(
        PartitionColumn(name, BY_NAME[name]) for name in DEFAULT_PARTITION_BY
    )
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    isolation: str = pylog.IsolationLevel.READ_UNCOMMITTED.label
    mode: str = FAILFAST
    compression: str = COMPRESSIONS[0]  # of Parquet
    values: str = pylog.jobs.VALUE_FORMATS[0]  # in lines
    hand_over: Path | None = None  # the directory that gets the offsets
    fails_on_data_loss: bool = True  # records deleted before they were exported are an error
    restart: tuple[str, ...] = ()  # topics that start over, if they are not what was exported
    is_dry_run: bool = False

    def find_plan(self, last: ExportRun | None) -> ExportPlan:
        """Return the offsets to export after run ``last``, and what to leave out."""
        if last is not None:
            self._ensure_same(last)
        topics = self.topics_there(last)
        if topics == ():
            return ExportPlan()
        partitions, damaged = self._read_partitions(topics)
        if not partitions.num_rows:
            chosen_from = ", ".join(map(str, self.paths))
            raise UsageError(f"there is nothing to export: no topic of {chosen_from} was chosen")
        plan = find_ranges(
            partitions,
            {} if last is None else last.partitions,
            isolation=self.isolation,
            fails_on_data_loss=self.fails_on_data_loss,
            fails_on_damage=self.mode == FAILFAST,
            restart=self.restart,
        )
        for topic in {*self.restart}.difference(plan.restarted):
            _LOGGER.info(
                "%s continues where it stopped: the topic has not been created again", topic
            )
        return replace(plan, damaged=[*damaged, *plan.damaged])

    def topics_there(self, last: ExportRun | None) -> tuple[str, ...] | None:
        """Return those of the topics that are there; None stands for all.

        A topic that has been deleted since it was exported has nothing new, and is no error.
        """
        directory = pylog.open_directory(*self.paths)
        gone = [each for each in self.topics or () if each not in directory.topics]
        deleted = [each for each in gone if last is not None and last.has_topic(each)]
        directory.select(
            topics=self.topics and tuple(each for each in self.topics if each not in deleted),
            pattern=self.pattern,
        )
        for each in deleted:
            _LOGGER.info("%s has been deleted; nothing is new of it", each)
        return self.topics and tuple(each for each in self.topics if each not in deleted)

    def _ensure_same(self, last: ExportRun) -> None:
        """Raise if the rows of a run after ``last`` would be of another kind."""
        compared = [("isolation", last.isolation, self.isolation)]
        if self.format not in (DELTA, ICEBERG):  # tables say themselves what they are
            names = tuple(map(str, self.partition_by))
            compared += [
                ("format", last.format, self.format),
                ("partition-by", " ".join(last.partition_by), " ".join(names)),
            ]
        for option, before, now in compared:
            if before != now:
                raise UsageError(
                    f"the runs in {self.output.name} were made with --{option} {before or 'none'}; "
                    "continue with that, or export to another output"
                )

    def _read_partitions(
        self, topics: tuple[str, ...] | None
    ) -> tuple[pa.Table, list[LeftOutPartition]]:
        """Return table ``partitions``, and what can have no row in it.

        By ``FAILFAST`` a log ends where its files end; without, before damage at its end.
        """
        directory = pylog.open_directory(*self.paths)
        read = partial(pylog.read_table, directory, "partitions")
        read_chosen = partial(read, topics=topics, pattern=self.pattern)
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
                damaged.append(LeftOutPartition(*place, str(error)))
        return pa.concat_tables(tables), damaged
