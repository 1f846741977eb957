"""A history: what happens to a source between runs of the job, and what each run must have done."""

from __future__ import annotations

import argparse
import time
from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pylog
from pylog_jobs import ingest
from pylog_jobs.error_text import describe
from pylog_jobs.exit_status import status_of
from pylog_jobs.secret_values import SecretValues
from tests.spark.histories.promise import (
    BrokenPromiseError,
    ColumnPromise,
    Limits,
    Row,
    now_us,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

TOPIC = "orders"
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata")
_CONFIG = """
{source}
[record]
key = "CAST(id AS STRING)"
value = "text"
[target]
directory = "{folder}/logs"
topic = "orders"
job_id = "orders"
[incremental]
{incremental}
"""


class JobRun(NamedTuple):
    """What came of a run."""

    status: int
    summary: Mapping[str, object]
    error: str


class IngestJob:
    """The job over one source, in a session that runs already."""

    def __init__(self, spark: SparkSession, folder: Path, source: str, incremental: str) -> None:
        self._spark = spark
        self._folder = folder
        self._config = folder / "ingest.toml"
        text = _CONFIG.format(source=source, folder=folder, incremental=incremental)
        self._config.write_text(text, "utf-8")

    def run(self, *more: str) -> JobRun:
        """Run it as its ``main`` does."""
        parser = argparse.ArgumentParser()
        ingest.add_arguments(parser)
        given = ["--config", str(self._config), *more]
        try:
            arguments = parser.parse_args(given, argparse.Namespace(secrets=SecretValues()))
            outcome = ingest.run(self._spark, ingest.prepare(arguments))
        except Exception as error:  # noqa: BLE001 - its status is what is looked at
            return JobRun(status_of(error), {}, describe(error))
        return JobRun(outcome.status, outcome.summary, str(outcome.summary.get("error", "")))

    def topic(self) -> Counter[tuple[str, str]]:
        """Return the records, by key and value."""
        if not (self._folder / "logs" / f"{TOPIC}-0").is_dir():
            return Counter()
        table = pylog.scan(self._folder / "logs", topics=TOPIC).to_table()
        rows = table.select(["key", "value"]).to_pylist()
        return Counter((row["key"].decode(), row["value"].decode()) for row in rows)


class History(ABC):
    """One source with its job; what happened is told where a promise is broken."""

    steps = (0, 4)  # how many between two runs
    runs = (3, 5)

    def __init__(self, spark: SparkSession, folder: Path, rng: random.Random) -> None:
        self.rng = rng
        self.folder = folder
        self.spark = spark
        self.events: list[str] = []
        self.statuses: Counter[int] = Counter()
        self._texts = 0
        settings = {
            "spark.sql.ansi.enabled": rng.choice(("true", "false")),
            "spark.sql.session.timeZone": rng.choice(ZONES),
        }
        for name, value in settings.items():
            self.spark.conf.set(name, value)
        self.note(f"{settings}")

    def note(self, event: str) -> None:
        self.events.append(event)

    def new_text(self) -> str:
        """Return a value that no other version of a row has."""
        self._texts += 1
        return f"v{self._texts}"

    def play(self) -> None:
        """Let it all happen."""
        for _ in range(self.rng.randint(*self.runs)):
            for _ in range(self.rng.randint(*self.steps)):
                self.step()
            self.run()
        self.settle()
        self.note("all is settled")
        self.run()

    def close(self) -> None:  # noqa: B027 - not each has something
        """Give back what it holds."""

    @abstractmethod
    def step(self) -> None:
        """Change the source."""

    @abstractmethod
    def settle(self) -> None:
        """Let the source come to rest."""

    @abstractmethod
    def run(self) -> None:
        """Run the job, and hold the topic against the source."""

    def told(self, run: JobRun) -> JobRun:
        """Note a run."""
        self.statuses[run.status] += 1
        names = ("rows", "window", "nullRows", "lateRows", "futureRows", "waitsFor")
        said = {name: run.summary[name] for name in names if run.summary.get(name) is not None}
        self.note(f"run: {run.status} {said} {run.error}")
        return run


class ColumnHistory(History):
    """A source that is read by a column."""

    job: IngestJob
    promise: ColumnPromise
    kind: str
    counts_null = True
    counts_late = True
    final_wait = 0.0  # seconds after which what was written last is read

    @abstractmethod
    def rows(self) -> list[Row]:
        """Return what the source has."""

    @abstractmethod
    def limits(self, before: int, after: int) -> Limits:
        """Return where a run between two times of the clock ends."""

    def ends_for_good(self) -> str | None:
        """Return why a run must fail and only ``--full`` helps, if that is so."""
        return None

    def may_fail(self) -> bool:
        """Whether another attempt may succeed, such as without any input."""
        return False

    def wait(self) -> None:
        time.sleep(self.final_wait)

    def run(self) -> None:
        rows = self.rows()
        before = now_us()
        run = self.told(self.job.run())
        reason = self.ends_for_good()
        if self.may_fail() and run.status == 3:
            return
        if reason is not None:
            if run.status != 2:
                raise BrokenPromiseError(f"{reason}, and the status is {run.status}")
            self.run_full(rows)
            return
        gone_back = self.promise.has_gone_back(rows)
        if run.status != (1 if gone_back else 0):
            raise BrokenPromiseError(f"status {run.status}, and gone back is {gone_back}")
        self._check_left_out(run, rows)
        self.promise.check(rows, self.limits(before, now_us()), self.job.topic())
        if gone_back and self.rng.random() < 0.5:
            self.run_full(rows)

    def run_full(self, rows: Sequence[Row]) -> None:
        """Start over, as the message says."""
        before = now_us()
        run = self.told(self.job.run("--full"))
        if self.may_fail() and run.status == 3:
            return
        if run.status:
            raise BrokenPromiseError(f"status {run.status} of --full")
        if (
            run.summary["window"] is None
        ):  # nothing to read, nothing is replaced: the bookmark stays
            return
        limits = self.limits(before, now_us())
        self.started_over()
        self.promise.start_over()
        self.promise.check(rows, limits, self.job.topic())

    def started_over(self) -> None:
        """Take note that ``--full`` has been run."""

    def _check_left_out(self, run: JobRun, rows: list[Row]) -> None:
        expected = self.promise.left_out(rows)
        null, late = run.summary.get("nullRows"), run.summary.get("lateRows")
        if self.counts_null and null not in expected.null:
            raise BrokenPromiseError(f"nullRows is {null}, and there are {expected.null}")
        if self.counts_late and expected.late is not None and late != expected.late:
            raise BrokenPromiseError(f"lateRows is {late}, and there are {expected.late}")
