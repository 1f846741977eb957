"""Tables as outputs of ``export``: Delta by delta-rs, Iceberg by pyiceberg.

Spark's tasks write Parquet files where the table has them, under names that are never used again;
the driver commits them together with the offsets up to which they go. So nothing is renamed, no
package of Delta or Iceberg for the JVM is needed, and a run that is killed at any point has either
happened or left nothing but files that no reader of the table sees (VACUUM and
``remove_orphan_files`` remove them).

Where the offsets are:

=======  ===========================================================================================
Delta    In the table's transaction identifiers (``txn``), which checkpoints keep: ``pylog.export``
         has the number of the last run, ``pylog.export.isolation`` its isolation level,
         ``pylog.export.offset/TOPIC/PARTITION`` the offset at which the next run starts, and
         ``pylog.export.topic-id/TOPIC/high`` and ``…/low`` the halves of the topic's id. A topic
         that has started over N times has the number in ``pylog.export.restart/TOPIC``, and the
         names of its other identifiers end with ``/N``: those of earlier times cannot be removed.
         Two runs at a time have the first one in common, so that Delta refuses the second commit.
Iceberg  In the summary of the run's snapshot, property ``pylog.export``, as JSON, and in the
         table's property of the same name, for where that snapshot has expired. A table that was
         rolled back has the offsets of its current snapshot again.
=======  ===========================================================================================

Sources: Delta's ``PROTOCOL.md``, Transaction Identifiers; Iceberg's spec, Snapshots (version 2).
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import struct
import time
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs

import pylog
from pylog_jobs.export_output import ExportRun, Output
from pylog_jobs.export_ranges import ExportedPartition
from pylog_jobs.job import JobFailedError, UsageError
from pylog_jobs.record_files import Folder, sync

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalake import DeltaTable
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from pylog_jobs.record_files import WrittenFile

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - UTC, whose texts end in Z
_PROPERTY = "pylog.export"
_ISOLATIONS = [each.label for each in pylog.IsolationLevel]
_FORMAT_VERSION = 2
"""Of an Iceberg table: the first one whose snapshots have sequence numbers."""
_SEQUENCE = "sequence_number"
_COMMITS = 5
_OTHER_RUN = "another run has exported to it meanwhile; run again"


def _missing(package: str, extra: str) -> UsageError:
    return UsageError(
        f"--format {extra} needs {package}, on the driver and on the executors: "
        f"{pylog.jobs.install_command(extra)}"
    )


def _ensure_fits(
    name: str,
    wanted: pa.Schema,
    partition_by: Sequence[str],
    found: pa.Schema,
    found_by: Sequence[str],
) -> None:
    """Raise `UsageError` unless rows of ``wanted`` can be added to the table there is."""
    for field in wanted:
        has = found.field(field.name) if field.name in found.names else None
        if has is None or _plain(has.type) != _plain(field.type):
            kind = "no such column" if has is None else str(has.type)
            raise UsageError(
                f"{name}: column {field.name} has type {field.type} here, and the table "
                f"has {kind}; export to another table"
            )
    for field in found:
        if field.name not in wanted.names and not field.nullable:
            msg = f"{name}: column {field.name} of the table must not be null, and no "
            msg += "record has it; export to another table"
            raise UsageError(msg)
    if list(partition_by) != list(found_by):
        raise UsageError(
            f"{name} is partitioned by {', '.join(found_by) or 'nothing'}, and the rows "
            f"by {', '.join(partition_by) or 'nothing'}; continue with --partition-by of the "
            "table, or export to another one"
        )


def _plain(kind: pa.DataType) -> object:
    """Return a type without the width of Arrow's offsets and the names of list items."""
    if kind.num_fields:
        return [_plain(kind.field(at).type) for at in range(kind.num_fields)]
    return str(kind).removeprefix("large_").replace("_view", "")


class DeltaOutput(Output):
    """A Delta table, at a path or a URI; stores are reached as delta-rs says."""

    def __init__(self, uri: str) -> None:
        try:
            import deltalake  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise _missing("deltalake", "delta") from error
        self._delta = deltalake
        local = uri.removeprefix("file://")
        self._path = None if "://" in local else Path(local).absolute()
        self.name = uri if self._path is None else str(self._path)
        self._table: DeltaTable | None = None

    def last_run(self) -> ExportRun | None:
        """Return the run that the table's transaction identifiers tell of."""
        self._table = None
        if not self._delta.DeltaTable.is_deltatable(self.name):
            return None
        self._table = self._delta.DeltaTable(self.name)
        number = self._table.transaction_version(_PROPERTY)
        if number is None:
            return None
        isolation = self._table.transaction_version(f"{_PROPERTY}.isolation")
        return ExportRun(
            number=number,
            isolation=_ISOLATIONS[isolation or 0],
            partitions=_Transactions(self._table),
        )

    def prepare(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        """Create the table, or make sure that it takes such rows."""
        if self._table is None:
            self._table = self._delta.DeltaTable.create(
                self.name,
                self._delta.Schema.from_arrow(schema),
                mode="error",
                partition_by=list(partition_by),
            )
        metadata = self._table.metadata()
        found = self._table.schema()
        for name, value in metadata.configuration.items():
            is_mapped = name == "delta.columnMapping.mode" and value != "none"
            if is_mapped or name.startswith("delta.constraints."):
                raise UsageError(
                    f"{self.name} has table property {name}={value}, which an export does not "
                    "keep; export to another table"
                )
        _ensure_fits(
            self.name, schema, partition_by, pa.schema(found.to_arrow()), metadata.partition_columns
        )

    def new_folder(self, number: int) -> Folder:
        """Return a directory of the table that does not exist, and never did."""
        name = f"pylog-run-{number}-{uuid.uuid4().hex}"
        if self._path is not None:
            return Folder(str(self._path / name))
        return Folder(name, open=partial(_delta_filesystem, self.name))

    def publish(self, folder: Folder, run: ExportRun, files: Sequence[WrittenFile]) -> str:
        """Commit the files with the offsets of the run."""
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 - an extra
        from deltalake.transaction import (  # noqa: PLC0415 - an extra
            AddAction,
            CommitProperties,
            RemoveAction,
            Transaction,
        )

        table = self._table
        if table is None:
            raise RuntimeError(f"{self.name} was not prepared")
        now_ms = int(time.time() * 1000)
        actions: list[AddAction | RemoveAction] = [
            AddAction(
                f"{Path(folder.path).name}/{Path(each.path).name}",
                each.bytes,
                each.partition,
                now_ms,
                True,  # noqa: FBT003 - dataChange
                _delta_statistics(each),
            )
            for each in files
        ]
        identifiers = _identifiers(run, _Transactions(table))
        try:
            table.create_write_transaction(
                actions,
                "append",
                table.schema(),
                table.metadata().partition_columns,
                commit_properties=CommitProperties(
                    custom_metadata={_PROPERTY: {"run": run.number}},
                    app_transactions=[Transaction(*each) for each in identifiers.items()],
                ),
            )
        except CommitFailedError as error:
            raise JobFailedError(f"{self.name}: {_OTHER_RUN} ({error})") from error
        if self._path is not None:
            log = self._path / "_delta_log"
            sync(log / f"{table.version():020}.json")
            sync(log)
        return f"version {table.version()} of {self.name}"


def _delta_filesystem(uri: str) -> fs.FileSystem:
    from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - an extra

    return fs.PyFileSystem(DeltaStorageHandler(uri))


FIRST_US, END_US = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999, in microseconds: other times have no text in statistics."""


def _delta_statistics(file: WrittenFile) -> str:
    bounds: dict[str, Sequence[object]] = {
        name: both for name, both in file.bounds.items() if name not in file.partition
    }
    times = file.bounds.get("timestamp")
    if times is not None:
        if times[0] >= FIRST_US and times[1] < END_US:
            bounds["timestamp"] = [
                (_EPOCH + dt.timedelta(microseconds=each)).isoformat(timespec="milliseconds") + "Z"
                for each in times
            ]
        else:
            del bounds["timestamp"]
    return json.dumps(
        {
            "numRecords": file.rows,
            "minValues": {name: both[0] for name, both in bounds.items()},
            "maxValues": {name: both[1] for name, both in bounds.items()},
            "nullCount": dict.fromkeys(bounds, 0),
        }
    )


class _Transactions(Mapping[tuple[str, int], ExportedPartition]):
    """How far partitions have been exported. The table finds one by its name, and lists none."""

    def __init__(self, table: DeltaTable) -> None:
        self._table = table

    def restarts(self, topic: str) -> int:
        """Return how often a topic has started over."""
        return self._table.transaction_version(f"{_PROPERTY}.restart/{topic}") or 0

    def __getitem__(self, place: tuple[str, int]) -> ExportedPartition:
        names = _names(*place, self.restarts(place[0]))
        offset, *halves = map(self._table.transaction_version, names)
        if offset is None:
            raise KeyError(place)
        if None in halves:
            return ExportedPartition(offset, None)
        return ExportedPartition(
            offset, base64.urlsafe_b64encode(struct.pack(">qq", *halves)).decode().rstrip("=")
        )

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _names(topic: str, partition: int, restarts: int) -> list[str]:
    """Return the identifiers of the offset of a partition, and of the halves of the topic's id."""
    end = f"/{restarts}" if restarts else ""
    halves = (f"topic-id/{topic}/{half}" for half in ("high", "low"))
    return [f"{_PROPERTY}.{each}{end}" for each in (f"offset/{topic}/{partition}", *halves)]


def _identifiers(run: ExportRun, before: _Transactions) -> dict[str, int]:
    """Return the transaction identifiers of a run: those that differ from before."""
    found = {
        _PROPERTY: run.number,
        f"{_PROPERTY}.isolation": _ISOLATIONS.index(run.isolation),
    }
    restarts = {topic: before.restarts(topic) + 1 for topic in run.restarted}
    found |= {f"{_PROPERTY}.restart/{topic}": count for topic, count in restarts.items()}
    for (topic, number), exported in run.partitions.items():
        if topic not in restarts and before.get((topic, number)) == exported:
            continue
        offset, *halves = _names(topic, number, restarts.get(topic, before.restarts(topic)))
        found[offset] = exported.next_offset
        if exported.topic_id is not None:
            of_id = base64.urlsafe_b64decode(f"{exported.topic_id}==")
            found |= zip(halves, struct.unpack(">qq", of_id), strict=True)
    return found


class IcebergOutput(Output):
    """An Iceberg table of a catalog that pyiceberg is configured for."""

    keeps_partition_columns = True  # pyiceberg reads the values from the files

    def __init__(self, name: str) -> None:
        try:
            from pyiceberg import catalog, exceptions  # noqa: PLC0415 - an extra
            from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415
            from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise _missing("pyiceberg", "iceberg") from error
        self.name = name
        of_catalog, *identifier = name.split(".")
        if len(identifier) < 2 or not all(identifier):
            msg = f"the output is {name!r}, expected CATALOG.NAMESPACE.TABLE for --format iceberg"
            raise UsageError(msg)
        self._identifier = tuple(identifier)
        self._exceptions = exceptions
        self._identity = IdentityTransform
        self._parse_location = PyArrowFileIO.parse_location
        try:
            self._catalog: Catalog = catalog.load_catalog(of_catalog)
        except (ValueError, exceptions.NotInstalledError) as error:
            raise UsageError(
                f"pyiceberg has no catalog {of_catalog!r} ({error}); describe it in "
                f"~/.pyiceberg.yaml, or by PYICEBERG_CATALOG__{of_catalog.upper()}__URI"
            ) from error
        except Exception as error:  # of whatever client the catalog has
            raise JobFailedError(f"catalog {of_catalog!r} does not answer: {error}") from error
        self._table: Table | None = None

    def last_run(self) -> ExportRun | None:
        """Return the run that the table's current snapshot, or an older one, tells of."""
        try:
            self._table = self._catalog.load_table(self._identifier)
        except self._exceptions.NoSuchTableError:
            self._table = None
            return None
        try:
            text = _state_of(self._table)
            return None if text is None else ExportRun.from_json(text)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{self.name}: property {_PROPERTY} does not say up to where a run exported "
                f"({error}); export to another table"
            ) from error

    def prepare(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        """Create the table, or make sure that it takes such rows."""
        if self._table is None:
            self._table = self._create(schema, partition_by)
        if self._table.format_version < _FORMAT_VERSION:
            raise UsageError(
                f"{self.name} has format version {self._table.format_version}, expected "
                f"{_FORMAT_VERSION} or later; upgrade it, or export to another table"
            )
        found = self._table.schema()
        names = [
            found.find_field(field.source_id).name
            if isinstance(field.transform, self._identity)
            else str(field)
            for field in self._table.spec().fields
        ]
        _ensure_fits(self.name, schema, partition_by, found.as_arrow(), names)

    def _create(self, schema: pa.Schema, partition_by: Sequence[str]) -> Table:
        self._catalog.create_namespace_if_not_exists(self._identifier[:-1])
        with (
            self._catalog.create_table_transaction(self._identifier, schema) as transaction,
            transaction.update_spec() as spec,
        ):
            for name in partition_by:
                spec.add_identity(name)
        return self._catalog.load_table(self._identifier)

    def new_folder(self, number: int) -> Folder:
        """Return a directory of the table that does not exist, and never did."""
        table = self._loaded()
        location = table.location_provider().data_path.rstrip("/")
        scheme, netloc, path = self._parse_location(location)
        return Folder(
            f"{path}/pylog-run-{number}-{uuid.uuid4().hex}",
            location.removesuffix(path),
            partial(_iceberg_filesystem, dict(table.io.properties), scheme, netloc),
        )

    def publish(self, folder: Folder, run: ExportRun, files: Sequence[WrittenFile]) -> str:
        """Commit the files with the offsets of the run.

        Where only others than an export have committed meanwhile, it is tried again.
        """
        state = {**json.loads(run.to_json()), "folder": Path(folder.path).name}
        del state["rows"]  # of files, which the snapshot has itself
        paths = [each.path for each in files]
        for attempt in range(_COMMITS):
            table = self._loaded()
            # A second try must look at the offsets first, which pyiceberg's own would not.
            table.metadata.properties["commit.retry.num-retries"] = "0"
            try:
                with table.transaction() as transaction:
                    metadata: Any = table.metadata  # of version 2 at least, see `prepare`
                    sequence_number = metadata.last_sequence_number + 1
                    text = json.dumps({**state, _SEQUENCE: sequence_number}, separators=(",", ":"))
                    transaction.set_properties({_PROPERTY: text})
                    transaction.add_files(
                        paths, snapshot_properties={_PROPERTY: text}, check_duplicate_files=False
                    )
                break
            except self._exceptions.CommitFailedException as error:
                found = self.last_run()
                if json.loads(_state_of(self._loaded()) or "{}").get("folder") == state["folder"]:
                    break  # the answer to a commit was lost
                if (-1 if found is None else found.number) != run.number - 1:
                    raise JobFailedError(f"{self.name}: {_OTHER_RUN}") from error
                if attempt == _COMMITS - 1:
                    msg = f"{self.name}: others commit to it all the time; run again ({error})"
                    raise JobFailedError(msg) from error
        snapshot = self._loaded().current_snapshot()
        return f"snapshot {snapshot.snapshot_id if snapshot else '?'} of {self.name}"

    def _loaded(self) -> Table:
        if self._table is None:
            raise RuntimeError(f"{self.name} was not prepared")
        return self._table


def _iceberg_filesystem(properties: dict[str, Any], scheme: str, netloc: str) -> fs.FileSystem:
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415 - an extra

    return PyArrowFileIO(properties).fs_by_scheme(scheme, netloc)


def _state_of(table: Table) -> str | None:
    """Return what the last run that is part of the table says of itself."""
    oldest = snapshot = table.current_snapshot()
    while snapshot is not None:
        if snapshot.summary is not None and snapshot.summary[_PROPERTY]:
            return str(snapshot.summary[_PROPERTY])
        oldest, parent = snapshot, snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    text = table.properties.get(_PROPERTY)
    if text is None or oldest is None:
        return None
    # Either the table was rolled back to a time before the run, or the run's snapshot has expired.
    is_expired = (oldest.sequence_number or 0) > int(json.loads(text)[_SEQUENCE])
    return text if is_expired else None
