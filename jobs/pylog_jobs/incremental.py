"""A source that is read a piece at a time: from its bookmark to what is newest, late rows included.

How a bookmark moves, and why no row is written twice, stands in `pylog_jobs.bookmark`. Here its
positions are found and compared by Spark. docs/jobs.md says for each source which rows can come
later with a lower mark, and what is done about it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as sf

import pylog
from pylog_jobs import clock
from pylog_jobs.bookmark import (
    A_DATE,
    DIGEST_BYTES,
    INTEGER,
    MOST_POSITION,
    TIMESTAMP,
    Bookmark,
    BookmarkError,
)
from pylog_jobs.config_file import placeholders_of, replace_placeholders
from pylog_jobs.error_text import describe
from pylog_jobs.ingest_config import Microseconds
from pylog_jobs.job import UsageError, say_in_ui
from pylog_jobs.left_out import LeftOut, count_left_out
from pylog_jobs.open_transactions import Horizon, PostgresTransactions, is_jdbc, option_of
from pylog_jobs.position import (
    ENDS,
    INTEGERS,
    kind_of,
    literal_of,
    microseconds_of,
    parse_position,
    plain_column,
    position_of,
    position_text,
)
from pylog_jobs.read_range import (
    DEFAULT_LAGS,
    MOST_CLOCK_CHANGE_US,
    ReadRange,
    end_by_clock,
    has_gone_back,
    lag_in_positions,
    of_clock,
    plan_range,
    start_after,
)
from pylog_jobs.record_frame import JSON_OPTIONS, MissingInputError, quoted, read_source
from pylog_jobs.record_write import DIGEST, POSITION, UNNUMBERED_BYTES
from pylog_jobs.run_window import BOOKMARK_NAMES, FROM, TO
from pylog_jobs.source_identity import HOW_TO_START_OVER, ensure_same_tables, tables_of
from pylog_jobs.table_versions import next_versions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pylog_jobs.ingest_config import Incremental, IngestConfig, Source

WHOLE_ROW = "*"
"""First in an identity of all columns, of which equal rows are numbered."""
_HOW_TO_FORGET = (
    'once no row comes late any more, run with lag = "0s", which forgets them, or give --full, '
    "which reads everything again and replaces what the topic has"
)
_PREFER_NTZ, _PUSH_DOWN = "preferTimestampNTZ", "pushDownPredicate"
_AGO = re.compile(r"(\d+) ?(s|m|h|d|w)(?:econds?|inutes?|ours?|ays?|eeks?)?")
_MOST_BROADCAST = 1_000_000

_LOGGER = logging.getLogger(__name__)


class RunPiece(NamedTuple):
    """The range of the source that one run reads."""

    rows: DataFrame  # with `POSITION` and `DIGEST` if rows are remembered
    carried: tuple[str, ...]  # which of these it has
    read_range: ReadRange
    about: Bookmark  # with the rows that the last one remembers
    rows_before: int | None = None  # rows of the source before `Bookmark.known_from`

    @property
    def shown(self) -> dict[str, str | None]:
        """The range as summaries have it."""
        return shown_range(self.about.kind, self.read_range)


@dataclass(frozen=True, slots=True)
class Look:
    """The new rows that a look at the source has found, or why there are none."""

    piece: RunPiece | None  # None: nothing new
    left_out: LeftOut | None = None  # None: of versions of a table nothing is
    gone_back: str | None = None  # how the newest row is before the bookmark, as a sentence
    waits_for: str | None = None  # what rows wait for besides time


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of the job in the ledger."""

    number: int = -1
    bookmark: Bookmark | None = None

    @property
    def read_so_far(self) -> Bookmark | None:
        """The bookmark from which a run continues; None if it is to start at the first row."""
        return None if self.bookmark is None or self.bookmark.nothing_read else self.bookmark


def last_run(config: IngestConfig, *, is_full: bool) -> LastRun:
    """Return the newest run of the job; one that starts over has a number and no bookmark."""
    newest = config.target.write_job().newest_run(with_bookmark=not is_full)
    if newest is None:
        return LastRun()
    if is_full:
        return LastRun(newest.batch_id)
    if newest.fingerprint != config.target.fingerprint or newest.bookmark is None:
        raise UsageError(
            f"[incremental]: job {config.target.job_id!r} has read up to its bookmark from another "
            f"source, query or column, or to another topic; {HOW_TO_START_OVER}"
        )
    try:
        return LastRun(newest.batch_id, Bookmark.from_text(newest.bookmark))
    except BookmarkError as error:
        msg = f"[incremental]: job {config.target.job_id!r}: {error}; {HOW_TO_START_OVER}"
        raise UsageError(msg) from error


def look_at(
    spark: SparkSession,
    config: IngestConfig,
    last: Bookmark | None,
    after_version: int | None = None,
) -> Look:
    """Return the rows to read now, or why there are none, and the rows that are left out."""
    incremental = config.incremental
    if incremental is None:
        return Look(None)
    if incremental.is_by_version:
        found = next_versions(spark, config.source, incremental, last, after_version)
        return Look(
            None if found is None else RunPiece(found.rows, (), found.read_range, found.about)
        )
    return _NextRows(spark, config.source, incremental, last).look()


def shown_range(kind: str, read_range: ReadRange) -> dict[str, str | None]:
    """Return where a range starts and ends (exclusive; of versions the last one)."""
    start = None if read_range.start is None else position_text(kind, read_range.start)
    return {"from": start, "to": position_text(kind, read_range.end)}


class _NextRows:
    def __init__(
        self,
        spark: SparkSession,
        source: Source,
        incremental: Incremental,
        last: Bookmark | None,
    ) -> None:
        self._spark = spark
        self._source = _without_session_zone(source)
        self._incremental = incremental
        self._column = str(incremental.column)
        self._last = last
        self._frame: DataFrame | None = None
        # What {from} and {to} mean depends on the type, so the type is asked of an unlimited read.
        self._whole = self._read(None, None) if last is None else self._read(last.kind, None)
        self._kind = kind_of(self._whole, self._column)
        if last is not None and last.kind != self._kind:
            raise UsageError(
                f"[incremental]: {self._column} has type {self._kind}, and the bookmark is of type "
                f"{last.kind}; {HOW_TO_START_OVER}"
            )
        self._tables = tables_of(self._whole)
        self._horizon, unknown = self._look_at_transactions()
        self._tables.update(self._horizon.tables)
        ensure_same_tables(last, self._tables)
        self._tables.update(self._horizon.storage)
        self._lag = self._lag_of(unknown)
        if self._horizon.source is not self._source:
            self._source, self._frame = self._horizon.source, None

    def _read(self, kind: str | None, limits: tuple[int | None, int | None] | None) -> DataFrame:
        texts = [self._source.sql or "", *self._source.options.values()]
        if not {*BOOKMARK_NAMES} & {name for text in texts for name in placeholders_of(text)}:
            # One read for all: of files, one listing.
            if self._frame is None:
                self._frame = read_source(self._spark, self._source, is_stream=False)
            return self._frame
        if kind is None:
            return self._read_of_any_kind()
        start, end = limits or (None, None)
        first, last = ENDS[kind]
        values = {
            FROM: position_text(kind, first if start is None else start),
            TO: position_text(kind, last if end is None else end),
        }
        return read_source(self._spark, with_range(self._source, values), is_stream=False)

    def _read_of_any_kind(self) -> DataFrame:
        """Return an unlimited read while the kind is unknown: by the first kind that fits."""
        *kinds, last = (TIMESTAMP, INTEGER, A_DATE)
        for kind in kinds:
            try:
                frame = self._read(kind, None)
                if kind_of(frame, self._column).startswith(kind):
                    return frame
            except MissingInputError:
                raise
            except (PySparkException, Py4JJavaError, UsageError) as error:
                _LOGGER.debug("{from} is no %s: %s", kind, describe(error))
        return self._read(last, None)

    def _look_at_transactions(self) -> tuple[Horizon, str | None]:
        """Return up to where rows are final; and, if that is not known, why, as half a sentence."""
        if not is_jdbc(self._source):
            return Horizon(self._source), "the source does not say how late rows may come"
        transactions = PostgresTransactions.of(self._spark, self._source)
        if transactions is None:
            source = _with_times_compared_by_spark(self._source, self._kind)
            return Horizon(source), "the database does not say which transactions are open"
        if self._kind != INTEGER:
            horizon, unknown = transactions.horizon_of_times()
            if self._kind != TIMESTAMP and self._incremental.zone is None:
                return horizon._replace(upper=None), "the column has no zone, and zone is not given"
            if horizon.upper is not None:
                horizon = horizon._replace(
                    upper=of_clock(self._kind, horizon.upper, self._incremental.zone)
                )
            return horizon, unknown
        name = plain_column(self._column, self._whole.columns)
        if name is None:
            return Horizon(self._source), f"{self._column} is an expression, and no column"
        last = self._last
        quoted_name = '"' + name.replace('"', '""') + '"'
        return transactions.horizon_of_ids(
            quoted_name,
            () if last is None else last.checkpoints,
            None if last is None else last.end,
        )

    def look(self) -> Look:
        last, lag = self._last, self._lag
        identity = self._identity()
        types, knows_rows = self._types(identity)
        if not knows_rows and last is not None:  # only where lag is "0s": what is known goes
            last = replace(last, remembered_from=None, unsettled_from=None, rows=type(last.rows)())
        initial = self._position("initial", self._incremental.initial)
        upper = self._upper()
        start = initial if last is None else start_after(last, lag)
        newest, reached, future = self._survey(start, upper)
        if reached == MOST_POSITION:
            raise UsageError(
                f"[incremental]: a row has {self._column} = {MOST_POSITION}, the largest of 64 "
                "bits. A bookmark there would hide every later row: remove the row, or set upper "
                "to a value that no other row reaches"
            )
        counted = initial if self._last is None else self._last.known_from
        nulls = late = rows_before = None
        if self._incremental.counts_left_out:
            nulls, rows_before = count_left_out(
                self._spark, self._source, self._whole, self._column, self._kind, counted
            )
        if (
            rows_before is not None
            and self._last is not None
            and self._last.rows_before is not None
        ):
            late = max(0, rows_before - self._last.rows_before)
        left_out = LeftOut(nulls, late, future)
        planned = plan_range(
            last,
            initial=initial,
            lag=lag,
            upper=upper,
            newest=reached,
            settled=self._horizon.settled,
        )
        self._tell_of(left_out, upper)
        gone_back = self._gone_back(newest)
        waits_for = self._horizon.waits_for
        if planned is None:
            return Look(None, left_out, gone_back, waits_for)
        about = Bookmark(
            self._column,
            self._kind,
            planned.end,
            identity=identity if planned.remember_from is not None else (),
            types=types if planned.remember_from is not None else (),
            tables=self._tables,
            checkpoints=self._horizon.checkpoints,
        )
        if last is not None:
            about = replace(about, rows=last.rows)
        rows, carried = self._rows(planned, last, identity)
        piece = RunPiece(rows, carried, planned, about, rows_before)
        return Look(piece, left_out, gone_back, waits_for)

    def _rows(
        self, planned: ReadRange, last: Bookmark | None, identity: tuple[str, ...]
    ) -> tuple[DataFrame, tuple[str, ...]]:
        """Return new rows: those after the bookmark, and those before it that are not remembered.

        Only these second ones are compared and, where whole rows are equal, numbered.
        """
        start, end, remember_from = planned.start, planned.end, planned.remember_from
        if remember_from is None and (last is None or not len(last.rows)):
            return self._between(start, end), ()
        again = None if last is None or start is None or start >= last.end else last.end
        fresh = self._between(start if again is None else again, end)
        fresh = self._with_digest(fresh, identity, numbered=False, since=remember_from)
        if again is not None and last is not None:
            known = self._with_digest(self._between(start, again), identity, numbered=True)
            fresh = fresh.unionByName(self._without_remembered(known, last))
        return fresh, (POSITION, DIGEST)

    def _between(self, start: int | None, end: int | None) -> DataFrame:
        return self._within(self._read(self._kind, (start, end)), start, end)

    def _value(self) -> Column:
        """Return the position of a row, as an integer."""
        return position_of(self._column, self._kind)

    def _within(self, rows: DataFrame, start: int | None, end: int | None) -> DataFrame:
        column, value = sf.expr(self._column), self._value()
        margin = self._margin
        if start is not None:
            rows = rows.where(column >= literal_of(self._kind, self._clipped(start - margin)))
        if end is not None:
            rows = rows.where(column < literal_of(self._kind, self._clipped(end + margin)))
        if not margin:
            return rows
        # Not of a type that is passed on.
        if start is not None:
            rows = rows.where(value >= start)
        return rows if end is None else rows.where(value < end)

    def _clipped(self, position: int) -> int:
        first, last = ENDS[self._kind]
        return min(max(position, first), last)

    @property
    def _margin(self) -> int:
        """Return by how much the range that is asked for is wider at both ends.

        A database gets an instant as the text of this machine's local time, and takes that of an
        hour which clocks show twice for one of both.
        """
        return MOST_CLOCK_CHANGE_US if self._kind == TIMESTAMP and is_jdbc(self._source) else 0

    def _survey(self, start: int | None, upper: int | None) -> tuple[int | None, int | None, int]:
        """Return the largest position, the largest one that this run reads, and how many wait.

        The bookmark moves no farther than the second: what comes before `upper` later is still new.
        """
        rows = self._between(start, None)
        value = self._value()
        say_in_ui(self._spark, f"newest {self._column}")
        is_read = sf.lit(True) if upper is None else value < upper  # noqa: FBT003 - SQL's
        [found] = rows.agg(
            sf.max(value), sf.max(sf.when(is_read, value)), sf.count_if(~is_read)
        ).collect()
        newest, reached = (None if each is None else int(each) for each in (found[0], found[1]))
        return newest, reached, int(found[2])

    def _gone_back(self, newest: int | None) -> str | None:
        """Return how the newest row of the source is before the bookmark, if it is."""
        last = self._last
        was = {} if last is None else last.tables
        for name, now in self._horizon.storage.items():
            if was.get(name, now) != now:
                return (
                    f"{name} is another one than in the last run: the table was truncated, or "
                    "rewritten (VACUUM FULL, CLUSTER, ALTER TABLE). If its ids have started again, "
                    f"rows with smaller ids are not read: {HOW_TO_START_OVER}"
                )
        if last is None or not has_gone_back(last, newest):
            return None
        if newest is None or self._horizon.waits_for is not None:
            # Of all rows: those that wait for open transactions are there, too.
            [found] = self._whole.agg(sf.max(self._value())).collect()
            newest = None if found[0] is None else int(found[0])
        if not has_gone_back(last, newest):
            return None
        now = "the source has no row any more"
        if newest is not None:
            shown = position_text(self._kind, newest)
            now = f"the newest row of the source has {self._column} = {shown}"
        end = position_text(self._kind, last.end)
        return (
            f"{now}, and the last run read up to {end} (exclusive). "
            "If rows were removed on purpose, nothing is missing, and the next newer row ends this "
            "warning. If the source started over, its rows are not read until they pass the "
            f"bookmark: {HOW_TO_START_OVER}"
        )

    def _tell_of(self, left_out: LeftOut, upper: int | None) -> None:
        column = self._column
        if left_out.null:
            _LOGGER.warning("%d rows are never read: %s is null in them", left_out.null, column)
        if left_out.late:
            _LOGGER.warning(
                "%d rows are left out: they came later than lag allows (%s); --full reads them, "
                "and everything else again",
                *(left_out.late, column),
            )
        if self._horizon.waits_for is not None:
            _LOGGER.info("newer rows wait for %s: a later run reads them", self._horizon.waits_for)
        if left_out.future and upper is not None:
            _LOGGER.info(
                "%d rows wait for a later run, which reads them: this one ends at %s",
                *(left_out.future, position_text(self._kind, upper)),
            )

    def _identity(self) -> tuple[str, ...]:
        """Return the columns by which rows near the end are recognised."""
        key, last = self._incremental.key, self._last
        columns = self._whole.columns
        wanted = key or (WHOLE_ROW, *columns)
        if last is None or not last.identity or last.identity == wanted:
            return wanted
        # Columns that are new are left out, so that older rows are still recognised.
        if not key and last.identity[0] == WHOLE_ROW and set(last.identity[1:]) <= set(columns):
            return last.identity
        if self._forgets:
            return wanted
        was = ", ".join(each for each in last.identity if each != WHOLE_ROW)
        raise UsageError(
            "[incremental]: rows within the lag are known by their columns "
            f"{was}, and now by others; {_HOW_TO_FORGET}"
        )

    @property
    def _forgets(self) -> bool:
        return self._incremental.lag == 0

    def _types(self, identity: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
        """Return the types that digests are of, and whether remembered rows have the same.

        Of another type, the same value is another text.
        """
        last = self._last
        try:
            schema = self._whole.select(*_identifying(identity)).schema
        except PySparkException as error:
            raise UsageError(f"[incremental]: key: {describe(error)}") from error
        found = tuple(
            INTEGER if isinstance(each.dataType, INTEGERS) else each.dataType.simpleString()
            for each in schema
        )
        if last is None or not len(last.rows):
            return found, True
        if identity == last.identity and last.types in ((), found):
            return found, True
        if self._forgets:
            return found, False
        names = [each for each in identity if each != WHOLE_ROW]
        changed = next(
            f"{name} had type {was} and has type {now}"
            for name, was, now in zip(names, last.types, found, strict=True)
            if was != now
        )
        raise UsageError(
            f"[incremental]: {changed}, so that rows within the lag would be taken for new ones; "
            f"{_HOW_TO_FORGET}"
        )

    def _with_digest(
        self,
        rows: DataFrame,
        identity: tuple[str, ...],
        *,
        numbered: bool,
        since: int | None = None,
    ) -> DataFrame:
        """Return rows with their position, and with a hash of what identifies each of them.

        Of whole rows it is `UNNUMBERED_BYTES` long until equal ones are told apart. Rows before
        ``since`` have none.
        """
        rows = rows.withColumn(POSITION, self._value())
        # Whatever the session's time zone is.
        told = sf.to_json(
            sf.struct(sf.col(POSITION), *_identifying(identity)),
            {**JSON_OPTIONS, "timeZone": "UTC"},
        )
        length = DIGEST_BYTES
        if identity[0] == WHOLE_ROW and numbered:
            # Equal rows are told apart by their number, so that as many are written as there are.
            rows = rows.withColumn(DIGEST, sf.sha2(told, 256))
            number = sf.row_number().over(Window.partitionBy(DIGEST).orderBy(POSITION))
            told = sf.concat(sf.col(DIGEST), sf.lit(" "), number.cast("string"))
        elif identity[0] == WHOLE_ROW:
            length = UNNUMBERED_BYTES
        digest = sf.unhex(sf.substring(sf.sha2(told, 256), 1, 2 * length))
        if since is not None:
            digest = sf.when(sf.col(POSITION) >= since, digest)
        return rows.withColumn(DIGEST, digest)

    def _without_remembered(self, rows: DataFrame, last: Bookmark) -> DataFrame:
        size = len(last.rows)
        if not size:
            return rows
        whole = pa.Array.from_buffers(
            pa.binary(DIGEST_BYTES), size, [None, pa.py_buffer(last.rows.digests)]
        )
        table = pa.table({DIGEST: whole.cast(pa.binary())})
        remembered = self._spark.createDataFrame(table)
        if size <= _MOST_BROADCAST:
            remembered = sf.broadcast(remembered)
        return rows.join(remembered, DIGEST, "left_anti")

    def _lag_of(self, unknown: str | None) -> int:
        """Return how far behind the end rows are looked for, in positions.

        ``unknown``: why nothing says up to where rows are final; None if the database does.
        """
        lag, kind = self._incremental.lag, self._kind
        if lag and isinstance(lag, Microseconds) is (kind == INTEGER):
            expected = "a number of ids" if kind == INTEGER else 'a duration such as "2 hours"'
            raise UsageError(
                f"[incremental]: {self._column} has type {kind}, so that lag is expected to be "
                f"{expected}"
            )
        if lag is None and unknown is not None:
            shown = {INTEGER: f"{DEFAULT_LAGS[INTEGER]} ids", A_DATE: "1 day"}.get(kind, "1 hour")
            _LOGGER.warning(
                "[incremental]: %s: rows up to %s behind the newest one are still read, and later "
                "ones are missed; set lag to how late a row may come",
                *(unknown, shown),
            )
        elif lag == 0 and unknown is not None and is_jdbc(self._source):
            _LOGGER.warning(
                "[incremental]: lag is 0, and %s: a row that is committed after a newer one was "
                "read is missed; set lag to how late a row may come",
                unknown,
            )
        return lag_in_positions(kind, lag, self._incremental.zone, is_final=unknown is None)

    def _upper(self) -> int | None:
        """Return where a run ends at the latest: rows of the future, or of an open day, wait."""
        text = self._incremental.upper
        ago = None if text is None or self._kind == INTEGER else _AGO.fullmatch(text)
        ago_us = None if ago is None else pylog.jobs.parse_duration(ago[1] + ago[2]) * 1_000
        now = microseconds_of(clock.now())
        ends = [
            end_by_clock(self._kind, now, self._incremental.zone, ago_us),
            None if ago is not None else self._position("upper", text),
            self._horizon.upper,
        ]
        return min((each for each in ends if each is not None), default=None)

    def _position(self, key: str, text: str | None) -> int | None:
        if text is None:
            return None
        try:
            return parse_position(self._kind, text)
        except ValueError as error:
            raise UsageError(f"[incremental]: {key} is {text!r}, expected {error}") from error


def _without_session_zone(source: Source) -> Source:
    """Return a source whose times without a zone stay so.

    Spark would read a database's times as of this machine's zone. {from} and {to} would then name
    instants, in UTC, which the database compares with times of no zone: rows would be missed.
    """
    names = {name.lower() for name in source.options}
    if not is_jdbc(source) or _PREFER_NTZ.lower() in names:
        return source
    return replace(source, options={**source.options, _PREFER_NTZ: "true"})


def _with_times_compared_by_spark(source: Source, kind: str) -> Source:
    """Return a source that compares no times itself if it has no type for them.

    SQLite keeps them as text or as numbers, its driver by default as numbers, and compares a number
    with Spark's text: no row would be new.
    """
    is_sqlite = (option_of(source, "url") or "").lower().startswith("jdbc:sqlite:")
    if kind == INTEGER or not is_sqlite or option_of(source, _PUSH_DOWN.lower()) is not None:
        return source
    return replace(source, options={**source.options, _PUSH_DOWN: "false"})


def with_range(source: Source, values: dict[str, str]) -> Source:
    """Return a source with values for {from} and {to}."""
    return replace(
        source,
        sql=None if source.sql is None else replace_placeholders(source.sql, values),
        options={name: replace_placeholders(text, values) for name, text in source.options.items()},
    )


def _identifying(identity: tuple[str, ...]) -> list[Column]:
    if identity[0] == WHOLE_ROW:
        return [sf.col(quoted(each)) for each in identity[1:]]
    return [sf.expr(each).alias(f"key{place}") for place, each in enumerate(identity)]
