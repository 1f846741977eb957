"""Histories of a PostgreSQL table: open transactions, ids and times that are given before commits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tests.spark.histories.history import ColumnHistory, IngestJob
from tests.spark.histories.promise import (
    DAY_US,
    HOUR_US,
    SECOND_US,
    ColumnPromise,
    Limits,
    Row,
    effective_lag,
    now_us,
)
from tests.spark.histories.times import ZONES_OF_CLOCKS, at_clock, shown_day, shown_time

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

PASSWORD_VARIABLE = "HISTORIES_PASSWORD"  # noqa: S105 - a name
READER = "reader"
INTEGERS = ("bigint", "int", "numeric(18,0)")
_KINDS = {"timestamptz": "timestamp", "timestamp": "timestamp_ntz", "date": "date"}
_MARGIN_US = SECOND_US
_SOURCE = """[source]
format = "jdbc"
[source.options]
url = "{url}"
driver = "org.postgresql.Driver"
user = "{user}"
password = "${{env:{variable}}}"
{access}
"""


class Connection:
    """A connection of the JVM that runs Spark, with its driver."""

    def __init__(self, spark: SparkSession, url: str, password: str) -> None:
        jvm: Any = spark._jvm
        properties = jvm.java.util.Properties()
        properties.setProperty("user", "postgres")
        properties.setProperty("password", password)
        self._connection = jvm.org.postgresql.Driver().connect(url, properties)
        self.execute("SET lock_timeout = '10s'")

    def begin(self) -> None:
        self._connection.setAutoCommit(False)

    def commit(self) -> None:
        self._connection.commit()

    def roll_back(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        self._connection.close()

    def execute(self, sql: str) -> None:
        statement = self._connection.createStatement()
        try:
            statement.execute(sql)
        finally:
            statement.close()

    def query(self, sql: str) -> list[list[str | None]]:
        statement = self._connection.createStatement()
        try:
            found = statement.executeQuery(sql)
            columns = range(1, found.getMetaData().getColumnCount() + 1)
            rows = []
            while found.next():
                rows.append([found.getString(each) for each in columns])
            return rows
        finally:
            statement.close()


@dataclass(slots=True)
class OpenTransaction:
    """A transaction that is not over."""

    connection: Connection
    name: str
    started_us: int
    order: int | None = None  # of its first write; None before that
    rows: set[str] = field(default_factory=set)  # the texts that it locks
    added: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Table:
    """What a history chooses of its table and its job."""

    name: str
    type: str
    access: str
    lag: tuple[str | None, int | None]
    has_key: bool
    zone: str | None
    is_reader: bool  # a user who sees no sessions of others
    marks: str  # now, or given
    sequence: str  # owned, or plain
    cache: int
    counts: bool | None

    @property
    def is_integer(self) -> bool:
        return self.type in INTEGERS

    @property
    def kind(self) -> str:
        return _KINDS.get(self.type, "integer")

    @property
    def is_final(self) -> bool:
        """Whether the database says which rows are final."""
        if self.is_integer:
            return self.access == "table" and self.cache == 1
        has_zone = self.type == "timestamptz" or self.zone is not None
        return has_zone and not self.is_reader

    @classmethod
    def random(cls, rng: random.Random, name: str) -> Self:
        """Return any."""
        type_ = rng.choice((*_KINDS, *INTEGERS, "timestamptz", "bigint"))
        is_integer = type_ in INTEGERS
        ways = ("table", "table", "table", "view", "subquery", "query", "range")
        lags: Sequence[tuple[str | None, int | None]]
        if is_integer:
            lags = ((None, None), (None, None), ('"0"', 0), ("5", 5), ("1000", 1000))
        elif type_ == "date":
            lags = ((None, None), ('"0s"', 0), ('"36 hours"', 2))
        else:
            lags = ((None, None), (None, None), ('"0s"', 0), ('"2 hours"', 2 * HOUR_US))
        zone = (
            rng.choice((None, "UTC", *ZONES_OF_CLOCKS)) if type_ in ("timestamp", "date") else None
        )
        return cls(
            name=name,
            type=type_,
            access=rng.choice(ways),
            lag=rng.choice(lags),
            has_key=rng.random() < 0.5,
            zone=zone,
            is_reader=not is_integer and rng.random() < 0.2,
            marks="given" if type_ == "date" else rng.choice(("now", "now", "given")),
            sequence=rng.choice(("owned", "owned", "plain")),
            cache=rng.choice((1, 1, 1, 20)),
            counts=rng.choice((None, None, True, False)),
        )

    def created(self) -> list[str]:
        """Return the statements that make it."""
        default = {
            "timestamptz": "now()",
            "timestamp": f"now() AT TIME ZONE '{self.zone or 'UTC'}'",
            "date": "current_date",
        }.get(self.type, f"nextval('{self.name}_mark')")
        made = [
            f"CREATE TABLE {self.name} (id INT, mark {self.type} DEFAULT {default}, text TEXT)",
            f"CREATE VIEW {self.name}_view AS SELECT * FROM {self.name}",
            f"GRANT SELECT ON {self.name}, {self.name}_view TO {READER}",
        ]
        if self.is_integer:
            made.insert(0, f"CREATE SEQUENCE {self.name}_mark CACHE {self.cache}")
            if self.sequence == "owned":
                made.append(f"ALTER SEQUENCE {self.name}_mark OWNED BY {self.name}.mark")
        return made

    def dropped(self) -> list[str]:
        return [
            f"DROP TABLE IF EXISTS {self.name} CASCADE",
            f"DROP SEQUENCE IF EXISTS {self.name}_mark",
        ]

    @property
    def option(self) -> str:
        """How the job reads it."""
        return {
            "table": f'dbtable = "{self.name}"',
            "view": f'dbtable = "{self.name}_view"',
            "subquery": f'dbtable = "(SELECT * FROM {self.name}) AS q"',
            "query": f'query = "SELECT * FROM {self.name}"',
            "range": (
                f"query = \"SELECT * FROM {self.name} WHERE mark >= '{{from}}' "
                "AND mark < '{to}'\""
            ),
        }[self.access]

    def position(self) -> str:
        """Return SQL for the position of a row."""
        if self.is_integer:
            return "mark::bigint"
        if self.type == "date":
            return "mark - date '1970-01-01'"
        return "(extract(epoch FROM mark) * 1000000)::bigint"

    def literal(self, mark: int) -> str:
        """Return SQL for a position."""
        if self.is_integer:
            return str(mark)
        if self.type == "date":
            return f"date '{shown_day(mark)}'"
        return f"{self.type} '{shown_time(mark)}{'Z' if self.type == 'timestamptz' else ''}'"

    def incremental(self) -> str:
        """Return ``[incremental]``."""
        lines = ['column = "mark"']
        if self.lag[0] is not None:
            lines.append(f"lag = {self.lag[0]}")
        if self.has_key:
            lines.append('key = "id"')
        if self.zone is not None:
            lines.append(f'zone = "{self.zone}"')
        if self.counts is not None:
            lines.append(f"count_left_out = {str(self.counts).lower()}")
        return "\n".join(lines)


class PostgresHistory(ColumnHistory):
    """A table, and several sessions that write it."""

    steps = (0, 6)

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        rng: random.Random,
        server: tuple[str, str],
    ) -> None:
        super().__init__(spark, folder, rng)
        self._server = server
        self.table = Table.random(rng, f"t{folder.name.replace('-', '_')}")
        self.note(f"{self.table}")
        self._admin = Connection(self.spark, *server)
        for sql in (*self.table.dropped(), *self.table.created()):
            self._admin.execute(sql)
        table = self.table
        source = _SOURCE.format(
            url=server[0],
            user=READER if table.is_reader else "postgres",
            variable=PASSWORD_VARIABLE,
            access=table.option,
        )
        self.kind = table.kind
        self.job = IngestJob(self.spark, folder, source, table.incremental())
        self.promise = ColumnPromise(
            effective_lag(
                table.kind,
                table.lag[1],
                is_final=table.is_final,
                has_fixed_zone=table.zone == "UTC",
            )
        )
        self.counts_null = self.counts_late = table.counts is not False and table.access != "range"
        self.final_wait = 1.3
        self._open: list[OpenTransaction] = []
        self._orders = 0
        self._ids = 0
        self._order_of: dict[str, int] = {}
        self._kept: set[str] = set()
        self._keeps = table.is_integer and table.access == "table" and table.cache == 1
        self._was_remade = False
        self._base = at_clock(rng)

    def close(self) -> None:
        for each in self._open:
            each.connection.roll_back()
            each.connection.close()
        for sql in self.table.dropped():
            self._admin.execute(sql)
        self._admin.close()

    # What the source has.

    def rows(self) -> list[Row]:
        sql = f"SELECT id, {self.table.position()}, text FROM {self.table.name}"  # noqa: S608
        orders = [each.order for each in self._open if each.order is not None]
        oldest = min(orders, default=None)
        if orders:
            self.promise.was_open = True
        found = []
        for number, mark, text in self._admin.query(sql):
            assert number is not None
            assert text is not None
            found.append(
                Row(
                    int(number),
                    None if mark is None else int(mark),
                    text,
                    int(number) if self.table.has_key else None,
                    is_settled=not self._reads_settled
                    or oldest is None
                    or self._order_of[text] < oldest,
                    is_kept=self._keeps and text in self._kept,
                )
            )
        return found

    @property
    def _reads_settled(self) -> bool:
        """Whether rows wait for the transactions that are older."""
        return self.table.is_integer and self.table.access == "table"

    def limits(self, before: int, after: int) -> Limits:
        table = self.table
        if table.is_integer:
            return Limits()
        if table.type != "timestamptz" and table.zone is None and table.type != "date":
            return Limits(before + 14 * HOUR_US, after + 14 * HOUR_US)
        sure, possible = before, after
        has_zone = table.type == "timestamptz" or table.zone is not None
        if has_zone and not table.is_reader:
            oldest = min((each.started_us for each in self._open), default=after)
            sure, possible = min(before - _MARGIN_US, oldest), min(after, oldest)
        sure, possible = (self._of_clock(each) for each in (sure, possible))
        return Limits(sure, possible)

    def _of_clock(self, instant: int) -> int:
        table = self.table
        if table.type == "timestamptz":
            return instant
        [[local]] = self._admin.query(
            "SELECT (extract(epoch FROM (timestamptz 'epoch' + "
            f"{instant} * interval '1 microsecond') AT TIME ZONE '{table.zone or 'UTC'}') "
            "* 1000000)::bigint"
        )
        assert local is not None
        return int(local) // DAY_US if table.type == "date" else int(local)

    def ends_for_good(self) -> str | None:
        if self._was_remade and self._reads_settled and self.promise.topic:
            return "the table was made again"
        self._was_remade = False
        return None

    def started_over(self) -> None:
        self._was_remade = False

    # What happens to it.

    def step(self) -> None:
        steps = {
            self._insert: 8,
            self._open_one: 4,
            self._write_in_open: 6,
            self._end_open: 4,
            self._update: 3,
            self._delete: 1,
            self._delete_newest: 0.7,
            self._truncate: 0.4,
            self._make_again: 0.4,
        }
        self.rng.choices(list(steps), list(steps.values()))[0]()

    def settle(self) -> None:
        while self._open:
            self._end(self._open[0])
        self.wait()

    def _wrote(self, transaction: OpenTransaction | None, *, is_nested: bool = False) -> int:
        """Return the order of a write among all transactions' first ones."""
        if transaction is not None and transaction.order is not None and not is_nested:
            return transaction.order
        self._orders += 1
        if transaction is not None and transaction.order is None:
            transaction.order = self._orders
            if is_nested:  # its own id comes after that of the one around it
                self._orders += 1
        return self._orders

    def _mark(self) -> str:
        """Return SQL for the mark of a new row."""
        rng, table = self.rng, self.table
        chance = rng.random()
        if chance < 0.06:
            return "NULL"
        if table.is_integer:
            end = self.promise.end
            if chance < 0.12 and end is not None:  # given by hand, maybe too late
                return str(max(1, end - rng.choice((1, 2, 4, 50))))
            return "DEFAULT"
        unit = 1 if table.type == "date" else rng.choice((SECOND_US, 60 * SECOND_US, HOUR_US))
        if chance < 0.10:
            now = self._of_clock(now_us())
            return table.literal(
                now + (30 if table.type == "date" else rng.choice((20, 60)) * HOUR_US)
            )
        if table.marks == "now":
            if chance < 0.16:
                return table.literal(self._of_clock(now_us()) - rng.randrange(1, 6) * unit)
            return "DEFAULT"
        if table.type == "date":
            today = self._of_clock(now_us())
            return table.literal(today - rng.choice((0, 0, 1, 1, 2, 3, 4)))
        if chance < 0.7:
            self._base += rng.choice((0, 0, 1, 7)) * unit + rng.choice((0, 0, 1, 999_999))
            return table.literal(self._base)
        return table.literal(self._base - rng.randrange(1, 5) * unit)

    def _insert_into(self, connection: Connection, transaction: OpenTransaction | None) -> None:
        values = []
        is_nested = transaction is not None and self.rng.random() < 0.3
        added = []
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self._ids += 1
            text, mark = self.new_text(), self._mark()
            values.append(f"({self._ids}, {mark}, '{text}')")
            added.append(text)
            if mark == "DEFAULT" and self._keeps:
                self._kept.add(text)
            if self.rng.random() < 0.1 and mark != "DEFAULT":
                values.append(values[-1])  # another one that is equal, unless rows have a key
                if self.table.has_key:
                    values.pop()
        if is_nested:
            connection.execute("SAVEPOINT s")
        order = self._wrote(transaction, is_nested=is_nested)
        connection.execute(f"INSERT INTO {self.table.name} VALUES {', '.join(values)}")  # noqa: S608
        self._order_of.update(dict.fromkeys(added, order))
        where = "" if transaction is None else f" in {transaction.name}"
        if is_nested and self.rng.random() < 0.4:
            connection.execute("ROLLBACK TO SAVEPOINT s")
            self.note(f"inserted and rolled back to a savepoint{where}: {values}")
            return
        self.note(f"inserted{where}: {values}")
        if transaction is not None:
            transaction.added += added

    def _insert(self) -> None:
        self._insert_into(self._admin, None)

    def _open_one(self) -> None:
        if len(self._open) >= 3:
            return
        connection = Connection(self.spark, *self._server)
        connection.begin()
        [[started]] = connection.query("SELECT (extract(epoch FROM now()) * 1000000)::bigint")
        assert started is not None
        self._orders += 1
        one = OpenTransaction(connection, f"x{self._orders}", int(started))
        self._open.append(one)
        self.note(f"{one.name} has begun")
        if self.rng.random() < 0.7:
            self._insert_into(connection, one)

    def _write_in_open(self) -> None:
        if not self._open:
            return
        one = self.rng.choice(self._open)
        if self.rng.random() < 0.6:
            self._insert_into(one.connection, one)
        else:
            self._update_in(one.connection, one)

    def _end_open(self) -> None:
        if self._open:
            self._end(self.rng.choice(self._open))

    def _end(self, one: OpenTransaction) -> None:
        self._open.remove(one)
        if self.rng.random() < 0.75:
            one.connection.commit()
            self.note(f"{one.name} is committed")
        else:
            one.connection.roll_back()
            self.note(f"{one.name} is rolled back")
        one.connection.close()

    def _free(self) -> list[str]:
        """Return the texts of rows that no open transaction has changed."""
        locked = {text for each in self._open for text in each.rows}
        found = self._admin.query(f"SELECT text FROM {self.table.name} ORDER BY mark NULLS FIRST, text")  # noqa: S608
        return [text for [text] in found if text is not None and text not in locked]

    def _update(self) -> None:
        self._update_in(self._admin, None)

    def _update_in(self, connection: Connection, transaction: OpenTransaction | None) -> None:
        free = self._free()
        if not free:
            return
        old, new = self.rng.choice(free), self.new_text()
        mark = self._mark() if self.rng.random() < 0.7 else None
        moved = "" if mark is None else f", mark = {mark}"
        order = self._wrote(transaction)
        connection.execute(
            f"UPDATE {self.table.name} SET text = '{new}'{moved} WHERE text = '{old}'"  # noqa: S608
        )
        self._order_of[new] = order
        if self._keeps and (mark == "DEFAULT" or (mark is None and old in self._kept)):
            self._kept.add(new)
        if transaction is not None:
            transaction.rows.add(old)
        self.promise.was_changed = True
        where = "" if transaction is None else f" in {transaction.name}"
        self.note(f"updated{where}: {old} is {new}{moved}")

    def _delete(self) -> None:
        free = self._free()
        if free:
            self._delete_row(self.rng.choice(free))

    def _delete_newest(self) -> None:
        free = self._free()
        if free:
            self._delete_row(free[-1])

    def _delete_row(self, text: str) -> None:
        self._wrote(None)
        self._admin.execute(f"DELETE FROM {self.table.name} WHERE text = '{text}'")  # noqa: S608
        self.promise.was_changed = True
        self.note(f"deleted: {text}")

    def _truncate(self) -> None:
        while self._open:
            self._end(self._open[0])
        restart = " RESTART IDENTITY"
        if self.table.is_integer and self.table.sequence == "plain":
            self._admin.execute(f"ALTER SEQUENCE {self.table.name}_mark RESTART")
        self._admin.execute(f"TRUNCATE {self.table.name}{restart}")
        self._started_over()
        self.note("truncated, and ids begin anew")

    def _make_again(self) -> None:
        while self._open:
            self._end(self._open[0])
        for sql in (*self.table.dropped(), *self.table.created()):
            self._admin.execute(sql)
        self._was_remade = True
        self._started_over()
        self.note("dropped, and created again")

    def _started_over(self) -> None:
        """Take note that ids are used again: those below the bookmark are not promised."""
        self.promise.was_changed = True
        self._kept.clear()
        self._keeps = False
