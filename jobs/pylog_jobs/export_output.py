"""Where ``export`` writes: what every output has, and a directory of runs.

Each run is published by one rename.

======================================  =====================================================
name                                    what
======================================  =====================================================
``run=7/topic=orders/date=2026-11-22/`` files, seen by all who read the directory
``run=7/_export.json``                  up to where each partition has been exported, and the
                                        files of the run; passed over by Spark, as is every
                                        name that begins with an underscore
``_staging-7-3f2a…/``                   files of tasks, or a run that is put together of those
``_export.lock``                        locked by the process that exports
======================================  =====================================================

What a crash leaves:

=====================================  ======================================================
at                                     the next run
=====================================  ======================================================
any point before the rename            removes the staging directory, and exports the same
                                       offsets again
any point after it                     finds the run published, with its rows and its offsets,
                                       and goes on after them
=====================================  ======================================================

The rename of a directory is atomic on local file systems and on NFS, and rows and offsets are in
the one directory: no reader sees a part of a run, and no record is lost or exported twice. All
files are synced before it. Staging directories have names that are never used again, and the driver
moves the files of successful tasks into one where no task writes: executors that outlive their
driver, and second attempts of a task, write to where nobody looks. Object stores have no such
rename, so that the output cannot be there.

Offsets up to which history has been exported (those of the next records), for whoever reads on from
a broker there:

============================  ====================================================================
``consumer-group.csv``        lines ``topic,partition,offset``, as
                              ``kafka-consumer-groups --reset-offsets --from-file`` reads them
``connect-offsets.json``      the body of Kafka Connect's ``PATCH /connectors/NAME/offsets``, for a
                              sink connector (KIP-875)
``spark-offsets.json``        the value of ``startingOffsets`` for Spark's ``kafka`` and ``pylog``
============================  ====================================================================
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import re
import shutil
import socket
import uuid
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pylog_jobs.export_ranges import ExportedPartition
from pylog_jobs.job import JobFailedError, UsageError
from pylog_jobs.record_files import PARQUET, Folder, WrittenFile, sync
from pyspark_pylog.jobs import by_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    import pylog

_VERSION = 1
_MANIFEST = "_export.json"
_LOCK = "_export.lock"
_STAGING = "_staging-"
_RUN = re.compile(r"run=(0|[1-9]\d*)")

DEFAULT_PARTITION_BY = ("topic", "date")


@dataclass(frozen=True, slots=True)
class RunFile:
    """One file of a run."""

    path: str  # below the directory of the run
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRun:
    """What ``_export.json`` says: one run, and where the next one starts."""

    number: int  # 0 for the first one
    isolation: str  # of all runs of this output
    partitions: Mapping[tuple[str, int], ExportedPartition]  # of this run and earlier ones
    files: Sequence[RunFile] = ()  # of this run alone
    format: str = PARQUET  # this and the next: of all runs, where the output keeps them
    partition_by: Sequence[str] = DEFAULT_PARTITION_BY
    restarted: Collection[str] = ()  # topics whose earlier offsets count no more; not in the file

    def has_topic(self, topic: str) -> bool:
        """Whether a topic has been exported; a Delta table only tells of partitions by name."""
        return (topic, 0) in self.partitions or any(topic == each for each, _ in self.partitions)

    def to_json(self) -> str:
        """Return the text of the file."""
        topics: dict[str, dict[str, object]] = {}
        for (topic, partition), exported in sorted(self.partitions.items()):
            topics.setdefault(topic, {})[str(partition)] = asdict(exported)
        return json.dumps(
            {
                "version": _VERSION,
                "run": self.number,
                "isolation": self.isolation,
                "format": self.format,
                "partition_by": list(self.partition_by),
                "rows": sum(each.rows for each in self.files),
                "partitions": topics,
                "files": [asdict(each) for each in self.files],
            },
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str) -> ExportRun:
        """Return what ``text`` says; ``ValueError``, ``KeyError`` or ``TypeError`` if nonsense."""
        values: dict[str, Any] = json.loads(text)
        if values["version"] != _VERSION:
            raise ValueError(f"version is {values['version']!r}, expected {_VERSION}")
        return cls(
            number=int(values["run"]),
            isolation=str(values["isolation"]),
            partitions={
                (topic, int(partition)): ExportedPartition(**exported)
                for topic, partitions in values["partitions"].items()
                for partition, exported in partitions.items()
            },
            files=[RunFile(**each) for each in values["files"]],
            format=str(values.get("format", PARQUET)),
            partition_by=tuple(map(str, values.get("partition_by", DEFAULT_PARTITION_BY))),
        )


class Output(Protocol):
    """The methods of every output, in the order in which a run calls them."""

    name: str  # for messages
    keeps_partition_columns: bool = False  # whether files have columns that they are partitioned by

    def owned(self) -> AbstractContextManager[None]:
        """Have no other process export to it, where it cannot tell at `publish`."""
        return nullcontext()

    def remove_leftovers(self) -> list[str]:
        """Remove what runs left that were not published, where it can be told from other files."""
        return []

    def last_run(self) -> ExportRun | None:
        """Return the newest published run; None if there is none."""

    def prepare(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        """Have a place for rows of ``schema``; `UsageError` where there is one for other rows."""

    def new_folder(self, number: int) -> Folder:
        """Return where the tasks of a run write: nobody else did or will."""

    def publish(self, folder: Folder, run: ExportRun, files: Sequence[WrittenFile]) -> str:
        """Have readers see the files, and the next run its offsets, at once; return what to log."""


class ExportOutput(Output):
    """The directory that holds the runs."""

    def __init__(self, path: str) -> None:
        if "://" in path:
            raise UsageError(
                f"the output {path!r} is a URI; a run is published by the rename of a directory, "
                "so it has to be a directory of a file system that driver and executors share; "
                "--format delta and iceberg need no rename"
            )
        self.path = Path(path).absolute()
        self.name = str(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"the output {self.path} is not a directory")
        foreign = sorted(name for name in self._names() if not _is_ours(name))
        if foreign:
            raise UsageError(
                f"the output {self.path} holds {foreign[0]!r}, which no export put there; name a "
                "directory that is empty, or does not exist"
            )

    @contextmanager
    def owned(self) -> Iterator[None]:
        """Have no other process export to this directory."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                lock.seek(0)
                owner = lock.read().strip() or "another process"
                msg = f"{self.path}: {owner} is exporting to it; run again when that has ended"
                raise JobFailedError(msg) from error
            lock.truncate(0)
            lock.write(f"process {os.getpid()} on host {socket.gethostname()}")
            lock.flush()
            yield

    def last_run(self) -> ExportRun | None:
        """Return the newest published run; None if there is none."""
        numbers = [int(match[1]) for match in map(_RUN.fullmatch, self._names()) if match]
        if not numbers:
            return None
        manifest = self.path / f"run={max(numbers)}" / _MANIFEST
        try:
            run = ExportRun.from_json(manifest.read_text("utf-8"))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{manifest} does not say up to where the run exported ({error}); restore it, or "
                f"remove {manifest.parent} to export its offsets again"
            ) from error
        if run.number != max(numbers):
            raise UsageError(f"{manifest} is of run {run.number}, expected run {max(numbers)}")
        return run

    def remove_leftovers(self) -> list[str]:
        """Remove what runs left that were not published; return the names. Only while `owned`."""
        leftovers = [name for name in self._names() if name.startswith(_STAGING)]
        for name in leftovers:
            shutil.rmtree(self.path / name, ignore_errors=True)
        return leftovers

    def prepare(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        """Do nothing: directories say what is in them."""

    def new_folder(self, number: int) -> Folder:
        """Return a directory for the tasks of a run; it does not exist, and never did."""
        return Folder(str(self._new_staging(number)))

    def publish(self, folder: Folder, run: ExportRun, files: Sequence[WrittenFile]) -> str:
        """Publish a run whose files have been written to ``folder``; return its directory."""
        self._ensure_all_are_here(files)
        staging = self._new_staging(run.number)
        staging.mkdir()
        listed = []
        for each in files:
            within = Path(*(_directory_name(*value) for value in each.partition.items()))
            place = within / Path(each.path).name
            (staging / within).mkdir(parents=True, exist_ok=True)
            Path(each.path).rename(staging / place)
            listed.append(RunFile(str(place), each.rows, each.bytes))
        (staging / _MANIFEST).write_text(replace(run, files=listed).to_json(), "utf-8")
        _sync_tree(staging)
        published = self.path / f"run={run.number}"
        staging.rename(published)
        sync(self.path)
        folder.remove()
        return str(published)

    def _new_staging(self, number: int) -> Path:
        return self.path / f"{_STAGING}{number}-{uuid.uuid4().hex}"

    def _ensure_all_are_here(self, files: Sequence[WrittenFile]) -> None:
        """Return if the driver sees each file as the task wrote it."""
        for each in files:
            path = Path(each.path)
            found = path.stat().st_size if path.is_file() else None
            if found != each.bytes:
                what = "does not see it" if found is None else f"sees {found}"
                raise JobFailedError(
                    f"a task wrote {each.bytes} bytes to {path}, and the driver {what}; the "
                    "output has to be on a file system that driver and executors share. Nothing "
                    "was published"
                )

    def _names(self) -> list[str]:
        return [each.name for each in self.path.iterdir()] if self.path.is_dir() else []


def _is_ours(name: str) -> bool:
    # Names that Spark passes over may be anybody's.
    return name.startswith(("_", ".")) or _RUN.fullmatch(name) is not None


_ESCAPED = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
"""What Spark escapes in names of directories: ``ExternalCatalogUtils.escapePathName`` (4.1)."""
_NULL = "__HIVE_DEFAULT_PARTITION__"


def _directory_name(name: str, value: str | None) -> str:
    """Return ``name=value`` as Spark and Hive write it."""
    text = _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value) if value else _NULL
    return f"{name}={text}"


def _sync_tree(top: Path) -> None:
    for folder, _, names in os.walk(top):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))


def write_hand_over(directory: Path, offsets: Mapping[pylog.TopicPartition, int]) -> list[str]:
    """Write the three files of offsets, in place of any that are there; return their paths."""
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows(
        [topic, partition, offset] for (topic, partition), offset in sorted(offsets.items())
    )
    of_connect = {
        "offsets": [
            {
                "partition": {"kafka_topic": topic, "kafka_partition": partition},
                "offset": {"kafka_offset": offset},
            }
            for (topic, partition), offset in sorted(offsets.items())
        ]
    }
    texts = {
        "consumer-group.csv": table.getvalue(),
        "connect-offsets.json": json.dumps(of_connect, indent=1),
        "spark-offsets.json": json.dumps(by_topic(offsets)),
    }
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in texts.items():
        path, temporary = directory / name, directory / f".{name}.part"
        temporary.write_text(text, "utf-8")
        sync(temporary)
        temporary.replace(path)
        written.append(str(path))
    sync(directory)
    return written
