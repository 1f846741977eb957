"""Histories of a PostgreSQL table: ids and times that are given before rows are committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.spark.histories.history import ColumnHistory, IngestJob
from tests.spark.histories.postgres_table import READER, Connection, Table
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
from tests.spark.histories.times import at_clock, at_local_clock

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from pyspark.sql import SparkSession

PASSWORD_VARIABLE = "HISTORIES_PASSWORD"  # noqa: S105 - a name
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


@dataclass(slots=True)
class OpenTransaction:
    """A transaction that is not over."""

    connection: Connection
    name: str
    started_us: int
    order: int | None = None  # of its first write; None before that
    rows: set[str] = field(default_factory=set)  # the texts that it locks
    added: list[str] = field(default_factory=list)


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
        local = at_local_clock(instant, table.zone or "UTC")
        return local // DAY_US if table.type == "date" else local

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
        chance, end = self.rng.random(), self.promise.end
        if chance < 0.06:
            return "NULL"
        if not self.table.is_integer:
            return self._time(chance)
        if chance < 0.12 and end is not None:  # given by hand, maybe too late
            return str(max(1, end - self.rng.choice((1, 2, 4, 50))))
        return "DEFAULT"

    def _time(self, chance: float) -> str:
        rng, table = self.rng, self.table
        unit = 1 if table.type == "date" else rng.choice((SECOND_US, 60 * SECOND_US, HOUR_US))
        if chance < 0.10:
            ahead = 30 if table.type == "date" else rng.choice((20, 60)) * HOUR_US
            return table.literal(self._of_clock(now_us()) + ahead)
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
        found = self._admin.query(
            f"SELECT text FROM {self.table.name} ORDER BY mark NULLS FIRST, text"  # noqa: S608
        )
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
