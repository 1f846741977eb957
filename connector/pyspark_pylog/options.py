"""The options of ``spark.read.format("pylog")``: names and meanings of Spark's ``kafka`` source.

Keys are case-insensitive, values are strings. An unknown option is an error, since a typo must not
change a result. Options of the ``kafka`` source that have no meaning here are accepted with one
warning, so that a job needs to change only one word.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog import (
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    EARLIEST,
    LATEST,
    TABLE_NAMES,
    IsolationLevel,
    ReadMode,
)
from pyspark_pylog import option_values as values
from pyspark_pylog.filter_option import RECORD_FILTER, parse_record_filter
from pyspark_pylog.nearest_name import nearest_name_hint
from pyspark_pylog.path_options import STORAGE_PREFIX, parse_paths
from pyspark_pylog.position_options import parse_ending, parse_starting
from pyspark_pylog.record_counts import RECORD_COUNTS
from pyspark_pylog.trigger_limits import LIMIT_OPTIONS, NO_LIMITS, TriggerLimits
from pyspark_pylog.write_option_names import is_only_of_writes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pylog import OffsetSpecs, RecordFilter

RECORDS = "records"
"""The value of option ``table`` that stands for the records, and not for a metadata table."""

OF_KEYS = "cleaning"
"""The table that reads keys where they are asked for."""

READ_OPTIONS = (
    "path",
    "paths",
    "subscribe",
    "assign",
    "subscribePattern",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "isolationLevel",
    "includeHeaders",
    "includeBatchMetadata",
    "columns",
    "mode",
    "table",
    "maxPartitionBytes",
    "packPartitions",
    "maxDecompressedBytes",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeStray",
    "pushdown",
    "timestampDisorder",
    "useIndexes",
    "leavePageCache",
    "checkKeys",
    *LIMIT_OPTIONS,
)

PUSHDOWN = ("auto", "on", "off")
PACKING = ("auto", "true", "false")
DEFAULT_MAX_PARTITION_BYTES = 128 << 20
"""As Spark's ``spark.sql.files.maxPartitionBytes``."""

_WITHOUT_EFFECT = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_INTERNAL = (RECORD_FILTER, RECORD_COUNTS)
"""What `pyspark_pylog.table` gives a ``load()`` of its own; not for users."""

_OF_ANY_TABLE = frozenset(
    name.lower()
    for name in (
        "path",
        "paths",
        "subscribe",
        "assign",
        "subscribePattern",
        "columns",
        "mode",
        "table",
        "packPartitions",
        "maxDecompressedBytes",
        "includeStray",
        "checkKeys",
    )
)
"""What has a meaning also where no records are read."""

_CLIENT_PREFIX = "kafka."
_CLIENT_ISOLATION = "kafka.isolation.level"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Checked options of one ``load()``.

    Attributes
    ----------
    paths
        Absolute local directories, or URIs of remote ones.
    subscribe, assign, subscribe_pattern
        Which topics or partitions; at most one is not None.
    starting, ending
        Where to begin and to end, see `pyspark_pylog.position_options`.
    columns
        Projection by name; None for all.
    table
        "records", or the name of a metadata table.
    mode
        What happens at damage.
    max_partition_bytes, min_partitions, max_records_per_partition
        How a topic-partition is cut into input partitions.
    pack_partitions
        Whether small topic-partitions share input partitions: "auto" (where there are many), "true"
        or "false"; see `pyspark_pylog.packing`.
    max_decompressed_bytes
        Most bytes that the records of one batch may have, decompressed.
    include_stray
        Whether directories being deleted, stray ones and future replicas are read, too.
    pushdown
        Whether filters that Spark pushes down leave out what they can: "auto", "on" or "off".
    timestamp_disorder
        Milliseconds by which a record may be earlier than one before it, as the user vouches.
    use_indexes
        Whether look-ups may ask index files.
    leave_page_cache
        Whether nothing that is read may stay in the page cache of the host that reads.
    check_keys
        Whether table "cleaning" reads all records, to say which are live.
    where
        What `pyspark_pylog.table` has made of predicates; None where it was not used.
    counts_records
        Whether `PylogTable.count` asks: a row for each task, which says how many records it has.
    limits
        How much a trigger takes; none in a batch read.
    without_effect
        Names of options that are known and have no meaning here, sorted.
    """

    paths: tuple[str, ...]
    subscribe: tuple[str, ...] | None = None
    assign: Mapping[str, tuple[int, ...]] | None = None
    subscribe_pattern: str | None = None
    starting: OffsetSpecs = EARLIEST
    ending: OffsetSpecs = LATEST
    fail_on_data_loss: bool = True
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    include_headers: bool = False
    include_batch_metadata: bool = False
    columns: tuple[str, ...] | None = None
    table: str = RECORDS
    mode: ReadMode = ReadMode.FAILFAST
    max_partition_bytes: int = DEFAULT_MAX_PARTITION_BYTES
    pack_partitions: str = PACKING[0]
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    include_stray: bool = False
    pushdown: str = PUSHDOWN[0]
    timestamp_disorder: int | None = None
    use_indexes: bool = True
    leave_page_cache: bool = False
    check_keys: bool = False
    where: RecordFilter | None = None
    counts_records: bool = False
    limits: TriggerLimits = NO_LIMITS
    without_effect: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Mapping[str, str], *, is_stream: bool = False) -> ReadOptions:
        """Return the options that ``given`` means.

        Parameters
        ----------
        given
            As given to ``spark.read`` or ``spark.readStream``.
        is_stream
            Whether it was ``spark.readStream``, which takes no end and no metadata table.

        Raises
        ------
        ValueError
            An option is unknown, contradicts another one, or its value makes no sense; the text
            names the option and what it takes.
        """
        lower = {name.lower(): value for name, value in given.items()}
        without_effect = _check_names(lower)
        if is_stream:
            _check_of_stream(lower)
        else:
            limits = (name for name in LIMIT_OPTIONS if name.lower() in lower)
            without_effect = tuple(sorted((*without_effect, *limits)))
        ways = ("subscribe", "assign", "subscribePattern")
        chosen = [name for name in ways if name.lower() in lower]
        if len(chosen) > 1:
            msg = f"give only one of the options {' and '.join(chosen)}"
            raise ValueError(msg)
        return cls(
            paths=parse_paths(lower),
            subscribe=values.names(lower.get("subscribe"), "subscribe"),
            assign=values.assignment(lower.get("assign")),
            subscribe_pattern=values.pattern(lower.get("subscribepattern")),
            starting=parse_starting(lower, is_stream=is_stream),
            ending=parse_ending(lower),
            fail_on_data_loss=values.boolean(lower, "failOnDataLoss", default=True),
            isolation=_isolation(lower),
            include_headers=values.boolean(lower, "includeHeaders", default=False),
            include_batch_metadata=values.boolean(lower, "includeBatchMetadata", default=False),
            columns=values.names(lower.get("columns"), "columns"),
            table=_table(lower),
            mode=ReadMode(values.one_of(lower, "mode", tuple(ReadMode))),
            max_partition_bytes=values.size_bytes(
                lower, "maxPartitionBytes", DEFAULT_MAX_PARTITION_BYTES
            ),
            pack_partitions=values.one_of(lower, "packPartitions", PACKING),
            min_partitions=values.count(lower, "minPartitions"),
            max_records_per_partition=values.count(lower, "maxRecordsPerPartition"),
            max_decompressed_bytes=values.size_bytes(
                lower, "maxDecompressedBytes", DEFAULT_MAX_DECOMPRESSED_BYTES
            ),
            include_stray=values.boolean(lower, "includeStray", default=False),
            pushdown=values.one_of(lower, "pushdown", PUSHDOWN),
            timestamp_disorder=values.milliseconds(lower, "timestampDisorder"),
            use_indexes=values.boolean(lower, "useIndexes", default=True),
            leave_page_cache=values.boolean(lower, "leavePageCache", default=False),
            check_keys=_check_keys(lower),
            where=parse_record_filter(lower.get("recordfilter")),
            counts_records=values.boolean(lower, RECORD_COUNTS, default=False),
            limits=TriggerLimits.parse(lower) if is_stream else NO_LIMITS,
            without_effect=without_effect,
        )


def _check_names(lower: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names that have no effect; `ValueError` for one that is not known."""
    known = {name.lower(): name for name in (*READ_OPTIONS, _CLIENT_ISOLATION, *_INTERNAL)}
    without_effect = {name.lower(): name for name in _WITHOUT_EFFECT}
    ignored = []
    for name in lower:
        if name in known or name.startswith(STORAGE_PREFIX):
            continue
        # The one client property that changes a result: what is nearly its name is a typo.
        typo = difflib.get_close_matches(name, [_CLIENT_ISOLATION], cutoff=0.9)
        if name in without_effect or (name.startswith(_CLIENT_PREFIX) and not typo):
            ignored.append(without_effect.get(name, name))
            continue
        if is_only_of_writes(name):
            msg = f"option {name!r} is for writes, not for reads; to read a topic, give subscribe"
            raise ValueError(msg)
        hint = nearest_name_hint(name, known.values())
        msg = f"unknown option {name!r}{hint} The options are: {', '.join(READ_OPTIONS)}"
        raise ValueError(msg)
    return tuple(sorted(ignored))


def _check_of_stream(lower: Mapping[str, str]) -> None:
    """Raise ``ValueError`` for what a stream does not take."""
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        if name.lower() in lower:
            msg = (
                f"option {name} is for spark.read: a stream has no end; to stop at what is there "
                "now, start the query with trigger(availableNow=True)"
            )
            raise ValueError(msg)
    table = lower.get("table", RECORDS).strip().lower()
    if table != RECORDS:
        msg = f"option table is {table!r}, which is for spark.read: a stream reads records"
        raise ValueError(msg)


def _table(lower: Mapping[str, str]) -> str:
    """Return the table's name; `ValueError` if it is unknown, or an option is for records alone."""
    table = lower.get("table", RECORDS).strip().lower()
    known = (RECORDS, *TABLE_NAMES)
    if table not in known:
        hint = nearest_name_hint(table, known)
        msg = f"option table: no table {table!r}{hint} The tables are: {', '.join(known)}"
        raise ValueError(msg)
    spelled = {name.lower(): name for name in (*READ_OPTIONS, _CLIENT_ISOLATION)}
    of_records = [spelled[name] for name in lower if name in spelled.keys() - _OF_ANY_TABLE]
    if table != RECORDS and of_records:
        msg = (
            f"table {table!r} is about whole logs and takes no option {', '.join(of_records)}; "
            "choose logs by subscribe, assign or subscribePattern, and rows by WHERE"
        )
        raise ValueError(msg)
    return table


def _check_keys(lower: Mapping[str, str]) -> bool:
    """Return the option's value; `ValueError` if what is read is not the table that it is for."""
    table = _table(lower)
    if "checkkeys" in lower and table != OF_KEYS:
        msg = f"option checkKeys is for table {OF_KEYS!r}, and what is read is {table!r}"
        raise ValueError(msg)
    return values.boolean(lower, "checkKeys", default=False)


def _isolation(lower: Mapping[str, str]) -> IsolationLevel:
    given = {
        _isolation_level(lower[name.lower()], name)
        for name in ("isolationLevel", _CLIENT_ISOLATION)
        if name.lower() in lower
    }
    if len(given) > 1:
        msg = f"options isolationLevel and {_CLIENT_ISOLATION} contradict each other"
        raise ValueError(msg)
    return next(iter(given), IsolationLevel.READ_UNCOMMITTED)


def _isolation_level(text: str, name: str) -> IsolationLevel:
    try:
        return IsolationLevel.parse(text)
    except ValueError as error:
        msg = f"option {name} is {text!r}, expected read_uncommitted or read_committed"
        raise ValueError(msg) from error
