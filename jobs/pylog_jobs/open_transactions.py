"""What open transactions of a PostgreSQL may still add below the rows that are visible.

An id is taken before its row is committed, and ``now()`` is the start of the transaction: a row
with a smaller mark may appear after one with a larger mark was read.

**Ids** of a ``dbtable`` that is a table. A transaction gets its id at its first write. A row whose
``xmin`` is in the window of the current snapshot (``pg_snapshot_xmin`` to ``pg_snapshot_xmax``)
waits. That alone is not enough: a transaction that is older, and has ended, may have taken larger
ids than one that is open. So a look at the table, a `Checkpoint`, has the largest id that was
visible, and a transaction id above all that were given by then: once every transaction below that
has ended, no row can come at or below that largest id. Above the newest proven position the next
run reads again. (``pg_snapshot_xmax`` is not above all: it follows the newest transaction that has
ended. The locks that open transactions hold on their own ids are.)

**Times**. No open transaction has started before the least ``xact_start`` of ``pg_stat_activity``,
so no row with an earlier ``now()`` can come. A run ends there.

Source: PostgreSQL's documentation, "System Information Functions" (txid and snapshot functions),
"pg_stat_activity", "System Columns".
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from pylog_jobs.bookmark import Checkpoint
from pylog_jobs.error_text import describe
from pylog_jobs.read_range import settled_before, with_checkpoint
from pylog_jobs.record_frame import read_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from pylog_jobs.ingest_config import Source

JDBC = "jdbc"
_POSTGRES = "jdbc:postgresql:"
_TABLE = re.compile(r'(?:(?:[A-Za-z_][\w$]*|"(?:[^"]|"")+")\.)?(?:[A-Za-z_][\w$]*|"(?:[^"]|"")+")')
_CLOCK_MARGIN_US = 1_000_000
"""A session is listed a moment after its transaction has started."""
_WAIT_SECONDS = 3.0
_POLL_SECONDS = 0.1
_OF_WHOLE_READS = frozenset(
    ("dbtable", "query", "preparequery", "partitioncolumn", "lowerbound", "upperbound", "fetchsize")
)
_SNAPSHOT = "(SELECT pg_current_snapshot() AS s) AS snapshot"
_XMIN, _XMAX = ("pg_snapshot_xmin(s)::text::bigint", "pg_snapshot_xmax(s)::text::bigint")
_OLDEST = f"SELECT {_XMIN} AS oldest FROM {_SNAPSHOT}"  # noqa: S608 - constants
_LOCKED_IDS = (
    "SELECT transactionid::text::bigint AS id FROM pg_locks "
    "WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock'"
)
# The 32 bits of a lock's id, as the 64 bits that are nearest to the snapshot's.
_WHOLE_ID = "xmax + (id - xmax % 4294967296 + 6442450944) % 4294967296 - 2147483648"
_NEXT = (
    f"SELECT greatest(xmax, max({_WHOLE_ID} + 1)) AS next, xmin AS oldest FROM "  # noqa: S608
    f"(SELECT {_XMIN} AS xmin, {_XMAX} AS xmax FROM {_SNAPSHOT}) AS ids "
    f"LEFT JOIN ({_LOCKED_IDS}) AS locks ON true GROUP BY xmin, xmax"
)
_SESSIONS = (
    "SELECT pg_is_in_recovery() AS standby, "
    "pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_all, "
    "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us, "
    "(SELECT (extract(epoch FROM min(xact_start)) * 1000000)::bigint FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type NOT IN ('autovacuum worker', 'walsender')) AS oldest_us, "
    "(SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()) AS prepared"
)
# A default may call a sequence that the column does not own.
_OF_DEFAULT = (
    "SELECT d.refobjid FROM pg_depend d JOIN pg_attrdef f ON f.oid = d.objid "
    "JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum "
    "WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass "
    "AND f.adrelid = c.oid AND a.attname = '{name}'"
)
_LOGGER = logging.getLogger(__name__)


def is_jdbc(source: Source) -> bool:
    """Return whether a source is a database."""
    return str(source.format).lower() == JDBC


def option_of(source: Source, name: str) -> str | None:
    """Return an option of a source, whose names Spark takes in any case."""
    return next((text for each, text in source.options.items() if each.lower() == name), None)


def query_database(spark: SparkSession, source: Source, query: str) -> dict[str, Any]:
    """Return the one row of a query that the database of a source answers."""
    options = {
        name: text for name, text in source.options.items() if name.lower() not in _OF_WHOLE_READS
    }
    asked = replace(source, options={**options, "query": query}, sql=None, schema=None)
    [row] = read_source(spark, asked, is_stream=False).collect()
    return {name.lower(): value for name, value in row.asDict().items()}


class Horizon(NamedTuple):
    """Up to where what a run reads is final."""

    source: Source  # without rows that wait
    upper: int | None = None  # where the run ends at the latest (exclusive)
    settled: int | None = None  # no open transaction adds rows before it; None: nothing is known
    checkpoints: tuple[Checkpoint, ...] = ()
    tables: dict[str, str] = {}  # noqa: RUF012 - never changed
    storage: dict[str, str] = {}  # noqa: RUF012 - which files a table has; TRUNCATE gives new ones
    waits_for: str | None = None  # what rows wait for, as the end of a sentence


@dataclass(frozen=True, slots=True)
class PostgresTransactions:
    """Looks at the transactions of the database that a source reads."""

    spark: SparkSession
    source: Source

    @classmethod
    def of(cls, spark: SparkSession, source: Source) -> PostgresTransactions | None:
        """Return the transactions of a PostgreSQL source; None for any other source."""
        url = option_of(source, "url") or ""
        if not is_jdbc(source) or not url.lower().startswith(_POSTGRES):
            return None
        return cls(spark, source)

    def horizon_of_times(self) -> tuple[Horizon, str | None]:
        """Return up to where instants are final; and, if that is not known, why."""
        try:
            found = query_database(self.spark, self.source, _SESSIONS)
        except (PySparkException, Py4JJavaError) as error:
            return Horizon(self.source), f"its sessions cannot be looked at ({describe(error)})"
        if found["standby"]:
            return Horizon(self.source), "a standby does not know the sessions of its primary"
        if not found["sees_all"]:
            return Horizon(self.source), (
                "the user sees no sessions of others (GRANT pg_read_all_stats lets a run wait for "
                "their transactions)"
            )
        if found["prepared"]:
            return Horizon(self.source), "it has prepared transactions, whose start is not known"
        latest = int(found["now_us"]) - _CLOCK_MARGIN_US
        oldest = found["oldest_us"]
        upper = latest if oldest is None else min(latest, int(oldest))
        waits_for = None if oldest is None or upper == latest else "the oldest open transaction"
        return Horizon(self.source, upper, waits_for=waits_for), None

    def horizon_of_ids(
        self, column: str, checkpoints: Sequence[Checkpoint], last_end: int | None
    ) -> tuple[Horizon, str | None]:
        """Return up to where ids are final; and, if that is not known, why."""
        table = option_of(self.source, "dbtable")
        if table is None or self.source.sql is not None or _TABLE.fullmatch(table.strip()) is None:
            return Horizon(self.source), "it reads a query, whose rows do not say who wrote them"
        try:
            about = query_database(self.spark, self.source, _about_table(table, column))
            if about["relkind"] not in ("r", "p"):
                return Horizon(self.source), f"{table} is a view, and no table"
            if about["standby"]:
                return Horizon(self.source), "a standby learns late of its primary's transactions"
            tables = {table.strip(): str(about["oid"])}
            horizon = self._settled(table, column, checkpoints, last_end)
        except (PySparkException, Py4JJavaError) as error:
            return Horizon(self.source), f"its transactions cannot be looked at ({describe(error)})"
        storage = (
            {} if about["storage"] is None else {f"storage of {table.strip()}": about["storage"]}
        )
        horizon = horizon._replace(tables=tables, storage=storage)
        ahead = int(about["ahead"] or 1)
        if ahead > 1:
            return horizon, f"sessions take {ahead} ids ahead, and use them whenever they like"
        return horizon, None

    def _settled(
        self, table: str, column: str, checkpoints: Sequence[Checkpoint], last_end: int | None
    ) -> Horizon:
        look = f"SELECT max({column}) AS newest FROM {table}"  # noqa: S608 - names
        newest = query_database(self.spark, self.source, look)["newest"]
        if newest is None:
            return Horizon(self.source)
        found = query_database(self.spark, self.source, _NEXT)  # after the rows were looked at
        checkpoint = Checkpoint(int(found["next"]), int(newest))
        known = with_checkpoint(checkpoints, checkpoint)
        oldest = int(found["oldest"])
        is_new = last_end is None or checkpoint.newest >= last_end
        deadline = time.monotonic() + _WAIT_SECONDS
        while is_new and oldest < checkpoint.next_transaction and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            oldest = int(query_database(self.spark, self.source, _OLDEST)["oldest"])
        settled = settled_before(known, oldest)
        is_open = oldest < checkpoint.next_transaction
        source = self.source
        if is_open:
            names = {name: name.lower() for name in source.options}
            settled_rows = _without_open_ones(table)
            options = {
                name: settled_rows if names[name] == "dbtable" else text
                for name, text in source.options.items()
            }
            source = replace(source, options=options)
        return Horizon(
            source,
            checkpoint.newest + 1,
            settled,
            known,
            waits_for=f"transaction {oldest}, which is open" if is_open else None,
        )


def _about_table(table: str, column: str) -> str:
    literal, name = (text.strip().replace("'", "''") for text in (table, _bare(column)))
    return (
        "SELECT c.oid::text AS oid, c.relkind::text AS relkind, "  # noqa: S608 - a name
        "pg_relation_filenode(c.oid)::text AS storage, "
        "pg_is_in_recovery() AS standby, (SELECT max(greatest(seqcache, abs(seqincrement))) "
        f"FROM pg_sequence WHERE seqrelid IN ({_OF_DEFAULT.format(name=name)}) OR seqrelid = "
        f"CASE WHEN c.relkind IN ('r', 'p') THEN pg_get_serial_sequence('{literal}', '{name}')"
        f"::regclass END) AS ahead FROM pg_class c WHERE c.oid = to_regclass('{literal}')"
    )


def _bare(column: str) -> str:
    return column[1:-1].replace('""', '"') if column.startswith('"') else column


def _without_open_ones(table: str) -> str:
    """Return a subquery of the rows whose transactions are not in the snapshot's window.

    System column ``xmin`` has the lower 32 bits of an id. Those of old rows may be from another
    era, so what counts is the distance from the snapshot's own xmin.
    """
    era = 2**32
    first = f"(SELECT {_XMIN} % {era} FROM {_SNAPSHOT})"  # noqa: S608 - constants
    width = f"(SELECT {_XMAX} - {_XMIN} FROM {_SNAPSHOT})"  # noqa: S608 - constants
    return (
        f"(SELECT settled.* FROM {table} AS settled WHERE "  # noqa: S608 - a name
        f"(settled.xmin::text::bigint - {first} + {era}) % {era} >= {width}) AS settled_rows"
    )
