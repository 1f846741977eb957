"""Histories of Delta and Iceberg tables, which are read from version to version."""

from __future__ import annotations

import json
import re
import shutil
from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.spark.histories.history import History, IngestJob, JobRun
from tests.spark.histories.promise import BrokenPromiseError

if TYPE_CHECKING:
    import random

    from pyspark.sql import SparkSession

Rows = Counter[tuple[str, str]]
APPEND, REPLACE = "append", "replace"


@dataclass(slots=True)
class Version:
    """A version of a table."""

    number: int
    rows: Rows  # all that it has
    added: Rows = field(default_factory=Counter)  # what it has inserted or updated
    operation: str = APPEND


class Expected(NamedTuple):
    """What a run must do: add rows; or fail, and why."""

    added: Rows
    fails: str | None = None
    may_fail: str | None = None  # or add the rows


class VersionHistory(History):
    """A table whose versions are known here, the oldest first; those that are rolled back go."""

    steps = (0, 2)
    table: str
    format: str
    path: str

    def __init__(self, spark: SparkSession, folder: Path, rng: random.Random) -> None:
        super().__init__(spark, folder, rng)
        self.topic: Rows = Counter()
        self.versions: list[Version] = []
        self.last: int | None = None  # the number of the version that was read last
        self.was_remade = False
        self._ids = 0

    def make_job(self, incremental: str) -> None:
        source = f'[source]\nformat = "{self.format}"\npath = "{self.path}"'
        self.job = IngestJob(self.spark, self.folder, source, incremental)
        self.note(f"{self.path}: {incremental!r}")

    @property
    def state(self) -> Rows:
        """What the table has now."""
        return self.versions[-1].rows if self.versions else Counter()

    @abstractmethod
    def expected(self) -> Expected:
        """Return what a run must do now."""

    @abstractmethod
    def current(self) -> tuple[int, str] | None:
        """Return the newest version and its operation, as the table itself names them."""

    def sql(self, statement: str) -> None:
        self.note(statement)
        self.spark.sql(statement).collect()

    def change(self, statement: str, rows: Rows, added: Rows) -> None:
        """Let a statement change the table, and note what it has made of it."""
        self.sql(statement)
        self.note_version(rows, added)

    def note_version(self, rows: Rows, added: Rows) -> None:
        found = self.current()
        if found is not None and (not self.versions or found[0] != self.versions[-1].number):
            self.versions.append(Version(found[0], rows, added, found[1]))

    # What happens to every table.

    def new_rows(self) -> Rows:
        rows: Rows = Counter()
        for _ in range(self.rng.choice((1, 2, 3))):
            self._ids += 1
            rows[str(self._ids), self.new_text()] = 1
        return rows

    def append(self) -> None:
        rows = self.new_rows()
        if self.state and self.rng.random() < 0.1:
            rows[self.rng.choice(sorted(self.state))] += 1  # one that is equal
        self.change(f"INSERT INTO {self.table} {values_of(rows)}", self.state + rows, rows)

    def some_ids(self) -> list[str]:
        ids = sorted({number for number, _ in self.state}, key=int)
        return self.rng.sample(ids, min(len(ids), self.rng.choice((1, 1, 2))))

    def update(self) -> None:
        ids = self.some_ids()
        if not ids:
            return
        text = self.new_text()
        kept = Counter({row: count for row, count in self.state.items() if row[0] not in ids})
        changed: Rows = Counter()
        for row, count in (self.state - kept).items():
            changed[row[0], text] += count
        where = f"WHERE id IN ({', '.join(ids)})"
        self.change(
            f"UPDATE {self.table} SET text = '{text}' {where}",  # noqa: S608
            kept + changed,
            changed,
        )

    def delete(self) -> None:
        ids = self.some_ids()
        if ids:
            kept = Counter({row: count for row, count in self.state.items() if row[0] not in ids})
            where = f"WHERE id IN ({', '.join(ids)})"
            self.change(f"DELETE FROM {self.table} {where}", kept, Counter())  # noqa: S608

    def merge(self) -> None:
        ids = [each for each in self.some_ids() if self._is_one(each)]
        new = self.new_rows()
        changed: Rows = Counter({(each, self.new_text()): 1 for each in ids})
        kept = Counter({row: count for row, count in self.state.items() if row[0] not in ids})
        self.change(
            f"MERGE INTO {self.table} t USING (SELECT * FROM {values_of(changed + new)} "  # noqa: S608
            "AS v(id, text)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET text = s.text "
            "WHEN NOT MATCHED THEN INSERT (id, text) VALUES (s.id, s.text)",
            kept + changed + new,
            changed + new,
        )

    def _is_one(self, number: str) -> bool:
        return sum(count for row, count in self.state.items() if row[0] == number) == 1

    def settle(self) -> None:
        if not self.versions:
            self.append()

    # The job.

    def run(self) -> None:
        expected = self.expected()
        run = self.told(self.job.run())
        if run.status and (expected.fails or expected.may_fail):
            if run.status != 2 and expected.fails is not None:
                raise BrokenPromiseError(f"status {run.status}: {expected.fails}")
            self.after_failure(run)
            return
        if expected.fails is not None:
            raise BrokenPromiseError(f"status 0: {expected.fails}")
        if run.status:
            raise BrokenPromiseError(f"status {run.status}")
        self.topic += expected.added
        self._check()
        self._read_all()

    def after_failure(self, run: JobRun) -> None:
        """Do what the message says."""
        del run
        self.run_full()

    def run_full(self) -> None:
        run = self.told(self.job.run("--full"))
        if run.status:
            raise BrokenPromiseError(f"status {run.status} of --full")
        if run.summary["window"] is not None:  # else there is nothing to replace the topic by
            self.topic = Counter(self.state)
            self._read_all()
        self._check()

    def _read_all(self) -> None:
        self.last = self.versions[-1].number if self.versions else None
        self.was_remade = False

    def _check(self) -> None:
        found = self.job.topic()
        if found != self.topic:
            lost, extra = dict(self.topic - found), dict(found - self.topic)
            raise BrokenPromiseError(f"lost: {lost}; too much: {extra}")

    def since_last(self) -> list[Version] | None:
        """Return the versions after the last one that was read; None if it is none of them."""
        numbers = [each.number for each in self.versions]
        if self.last not in numbers:
            return None
        return self.versions[numbers.index(self.last) + 1 :]


def values_of(rows: Rows) -> str:
    """Return rows as SQL."""
    return "VALUES " + ", ".join(f"({number}, '{text}')" for number, text in rows.elements())


def sum_of(parts: list[Rows]) -> Rows:
    """Return the rows of all."""
    found: Rows = Counter()
    for each in parts:
        found += each
    return found


class DeltaHistory(VersionHistory):
    """A table whose change data feed says what changed, as long as it is on."""

    format = "delta"

    def __init__(self, spark: SparkSession, folder: Path, rng: random.Random) -> None:
        super().__init__(spark, folder, rng)
        self.path = f"{folder}/orders"
        self.table = f"delta.`{self.path}`"
        self._feeds = True
        self._silent: set[int] = set()  # versions without change data
        self._were_removed = False  # files of older versions
        self._create()
        self.make_job("")

    def _create(self) -> None:
        self._feeds = True
        vectors = self.rng.choice(("true", "false"))
        self.change(
            f"CREATE TABLE {self.table} (id INT, text STRING) USING delta TBLPROPERTIES "
            "(delta.enableChangeDataFeed = true, "
            f"delta.enableDeletionVectors = {vectors})",
            Counter(),
            Counter(),
        )

    def current(self) -> tuple[int, str] | None:
        log = Path(self.path, "_delta_log")
        return max(int(each.stem) for each in log.glob("*.json")), APPEND

    def note_version(self, rows: Rows, added: Rows) -> None:
        before = len(self.versions)
        super().note_version(rows, added)
        if len(self.versions) > before and not self._feeds:
            self._silent.add(self.versions[-1].number)

    def expected(self) -> Expected:
        if self.last is None:
            return Expected(self.state)
        if self.was_remade:
            return Expected(Counter(), "the table was made again")
        since = self.since_last()
        assert since is not None
        if any(each.number in self._silent for each in since):
            return Expected(Counter(), "a version has no change data")
        removed = "files were removed" if self._were_removed and since else None
        return Expected(sum_of([each.added for each in since]), may_fail=removed)

    def after_failure(self, run: JobRun) -> None:
        named = re.search(r"--after-version (\d+)", run.error)
        if named is None or self.rng.random() < 0.4:
            self.run_full()
            return
        after = int(named[1])
        more = self.told(self.job.run("--after-version", str(after)))
        since = [each for each in self.versions if each.number > after]
        if more.status:
            if not self._were_removed and not any(each.number in self._silent for each in since):
                raise BrokenPromiseError(f"status {more.status} after version {after}")
            self.after_failure(more)
            return
        self.topic += sum_of([each.added for each in since])
        self._check()
        self._read_all()

    def step(self) -> None:
        steps = {
            self.append: 6,
            self.update: 2,
            self.delete: 1.5,
            self.merge: 2,
            self._restore: 0.7,
            self._switch_feed: 0.6,
            self._make_again: 0.5,
            self._compact: 0.5,
            self._vacuum: 0.3,
        }
        self.rng.choices(list(steps), list(steps.values()))[0]()

    def _restore(self) -> None:
        if self._were_removed:
            return
        to = self.rng.choice(self.versions)
        if to.rows != self.state:
            # The properties of that version are restored, too.
            self._feeds = to.number not in self._silent
            self.change(
                f"RESTORE TABLE {self.table} TO VERSION AS OF {to.number}",
                to.rows,
                to.rows - self.state,
            )

    def _switch_feed(self) -> None:
        self._feeds = not self._feeds
        self.change(
            f"ALTER TABLE {self.table} SET TBLPROPERTIES "
            f"(delta.enableChangeDataFeed = {str(self._feeds).lower()})",
            self.state,
            Counter(),
        )

    def _make_again(self) -> None:
        count = len(self.versions)
        shutil.rmtree(self.path)
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
        self.note("removed, and made again")
        self.was_remade = self.last is not None
        self.versions.clear()
        self._silent.clear()
        self._were_removed = False
        self._create()
        if self.rng.random() < 0.6:
            while len(self.versions) < count:
                self.append()

    def _compact(self) -> None:
        self.change(f"OPTIMIZE {self.table}", self.state, Counter())

    def _vacuum(self) -> None:
        self.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        self.change(f"VACUUM {self.table} RETAIN 0 HOURS", self.state, Counter())
        self._were_removed = True


class IcebergHistory(VersionHistory):
    """A table whose snapshots append, or change rows otherwise."""

    format = "iceberg"

    def __init__(self, spark: SparkSession, folder: Path, rng: random.Random) -> None:
        super().__init__(spark, folder, rng)
        self.path = self.table = f"lake.shop.t{folder.name.replace('-', '_')}"
        self._name = self.table.removeprefix("lake.")
        self._on_change = rng.choice(("fail", "skip", "read", "read"))
        self._mode = rng.choice(("copy-on-write", "copy-on-write", "merge-on-read"))
        self._expired: set[int] = set()
        self._create()
        self.make_job(f'on_change = "{self._on_change}"')

    def close(self) -> None:
        self.spark.sql(f"DROP TABLE IF EXISTS {self.table} PURGE")

    def _create(self) -> None:
        modes = ", ".join(
            f"'write.{each}.mode' = '{self._mode}'" for each in ("delete", "update", "merge")
        )
        self.sql(
            f"CREATE TABLE {self.table} (id INT, text STRING) USING iceberg "
            f"TBLPROPERTIES ('format-version' = '2', {modes})"
        )

    def current(self) -> tuple[int, str] | None:
        metadata = self._metadata()
        newest = metadata["current-snapshot-id"]
        operations = {
            each["snapshot-id"]: each["summary"]["operation"] for each in metadata["snapshots"]
        }
        return (newest, operations[newest]) if newest in operations else None

    def _metadata(self) -> dict[str, Any]:
        """Return the newest metadata file of the table, as the catalog has it in the warehouse."""
        warehouse = self.spark.conf.get("spark.sql.catalog.lake.warehouse")
        folder = Path(str(warehouse), *self._name.split("."), "metadata")
        number = (folder / "version-hint.text").read_text().strip()
        found: dict[str, Any] = json.loads((folder / f"v{number}.metadata.json").read_text())
        return found

    def expected(self) -> Expected:
        if self.was_remade:
            return Expected(Counter(), "the table was made again")
        if self.last is None:
            return Expected(self.state)
        since = self.since_last()
        if since is None:
            return Expected(Counter(), "the table was rolled back")
        if any(each.number in self._expired for each in since):
            return Expected(Counter(), "snapshots have expired")
        may_fail = "the last snapshot has expired" if self.last in self._expired else None
        changes = [each for each in since if each.operation not in (APPEND, REPLACE)]
        if not changes:
            return Expected(sum_of([each.added for each in since]), may_fail=may_fail)
        if self._on_change == "fail":
            return Expected(Counter(), f"{changes[0].operation} is no append")
        if self._on_change == "skip":
            appends = [each.added for each in since if each.operation == APPEND]
            return Expected(sum_of(appends), may_fail=may_fail)
        if self._mode == "merge-on-read":
            may_fail = "the changelog does not know delete files"
        first = self.versions.index(since[0])
        before = self.versions[first - 1 :]  # of each snapshot what is new in it
        added = [now.rows - was.rows for was, now in zip(before, since, strict=False)]
        return Expected(sum_of(added), may_fail=may_fail)

    def after_failure(self, run: JobRun) -> None:
        if self.was_remade or self.since_last() is None or self.rng.random() < 0.5:
            self.run_full()
            return
        newest = self.versions[-1].number
        more = self.told(self.job.run("--after-version", str(newest)))
        if more.status:
            if not self._expired:
                raise BrokenPromiseError(f"status {more.status} after version {newest}")
            self.run_full()
            return
        self._check()
        self._read_all()

    def step(self) -> None:
        steps = {
            self.append: 6,
            self.update: 1,
            self.delete: 1,
            self.merge: 1,
            self._overwrite: 0.7,
            self._roll_back: 0.7,
            self._expire: 0.6,
            self._compact: 0.7,
            self._make_again: 0.4,
        }
        self.rng.choices(list(steps), list(steps.values()))[0]()

    def _overwrite(self) -> None:
        rows = self.new_rows()
        if self.state and self.rng.random() < 0.5:
            rows[self.rng.choice(sorted(self.state))] = 1
        self.change(f"INSERT OVERWRITE {self.table} {values_of(rows)}", rows, rows)

    def _roll_back(self) -> None:
        alive = [each for each in self.versions[:-1] if each.number not in self._expired]
        if not alive:
            return
        to = self.rng.choice(alive)
        self.sql(f"CALL lake.system.rollback_to_snapshot('{self._name}', {to.number})")
        del self.versions[self.versions.index(to) + 1 :]

    def _expire(self) -> None:
        if not self.versions:
            return
        keep = self.rng.choice((1, 2))
        self.sql(
            f"CALL lake.system.expire_snapshots(table => '{self._name}', "
            f"older_than => TIMESTAMP '2999-01-01', retain_last => {keep})"
        )
        alive = {each["snapshot-id"] for each in self._metadata()["snapshots"]}
        self._expired |= {each.number for each in self.versions if each.number not in alive}
        if self.last is not None and self.last not in alive:
            self._expired.add(self.last)

    def _compact(self) -> None:
        if self.versions:
            options = "options => map('rewrite-all', 'true')"
            self.change(
                f"CALL lake.system.rewrite_data_files(table => '{self._name}', {options})",
                self.state,
                Counter(),
            )

    def _make_again(self) -> None:
        self.sql(f"DROP TABLE {self.table} PURGE")
        self._create()
        self.was_remade = self.last is not None
        self.versions.clear()
        self._expired.clear()
