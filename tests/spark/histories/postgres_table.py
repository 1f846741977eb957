"""A PostgreSQL table that histories change, chosen at random, and connections to change it by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tests.spark.histories.promise import HOUR_US
from tests.spark.histories.times import ZONES_OF_CLOCKS, shown_day, shown_time

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

READER = "reader"
INTEGERS = ("bigint", "int", "numeric(18,0)")
_KINDS = {"timestamptz": "timestamp", "timestamp": "timestamp_ntz", "date": "date"}


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
            "timestamp": f"(now() AT TIME ZONE '{self.zone or 'UTC'}')",
            "date": "current_date",
        }.get(self.type, f"nextval('{self.name}_mark')")
        made = [
            f"CREATE TABLE {self.name} (id INT, mark {self.type} DEFAULT {default}, text TEXT)",
            f"CREATE VIEW {self.name}_view AS SELECT * FROM {self.name}",  # noqa: S608
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
        quote = "" if self.is_integer else "'"
        return {
            "table": f'dbtable = "{self.name}"',
            "view": f'dbtable = "{self.name}_view"',
            "subquery": f'dbtable = "(SELECT * FROM {self.name}) AS q"',  # noqa: S608
            "query": f'query = "SELECT * FROM {self.name}"',  # noqa: S608
            "range": (
                f'query = "SELECT * FROM {self.name} WHERE '  # noqa: S608
                f'mark >= {quote}{{from}}{quote} AND mark < {quote}{{to}}{quote}"'
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
