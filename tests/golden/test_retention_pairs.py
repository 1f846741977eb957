"""What our retention makes of a directory is what the broker's made of it, file by file.

Of each case ``before/`` is copied and opened at the time when the broker ran that wrote ``after/``;
limits are set, segments removed, the log is given the leader epoch that its broker was given at
each of its starts, and shut down. The certificate has the configuration before the limits were
set. Age limits are in the words of the case; the size limit is read off ``after/``: less than with
the last segment that went, and no less than without it.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.config import LogConfig
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.testing import ManualClock, ManualScheduler
from tests.golden.test_recovery_pairs import copy_state, lead, time_of
from tests.support.golden import certificate_path

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.golden import GoldenRoot

HOUR_MS = 3_600_000
DELETE_DELAY_MS = 60_000
OTHER_BROKERS_TOPICS = re.compile(r"(recovery-point|replication)-offset-checkpoint")
NOT_LOOKED_AT = re.compile(r"cleaner-offset-checkpoint|meta\.properties|bootstrap\.checkpoint")
NOT_OF_THE_LOG_DIRECTORY = re.compile(r"expected\..*|dump\..*|offsets\.json")


class Case(NamedTuple):
    """A case, the limits that its broker was given, and where its log starts afterwards."""

    name: str
    limits: dict[str, str]
    start: int
    delete_records: int | None = None


CASES = [
    Case("retention-all", {"retention.ms": str(HOUR_MS)}, 60),
    Case("retention-ms", {"retention.ms": str(48 * HOUR_MS)}, 49),
    Case("retention-bytes", {}, 54),
    Case("delete-records", {}, 55, delete_records=55),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param  # type: ignore[no-any-return]


class Pair(NamedTuple):
    before: Path
    after: Path
    config: dict[str, str]
    now_ms: int

    @property
    def partition(self) -> str:
        [directory] = [each for each in self.after.iterdir() if each.is_dir()]
        return directory.name


@pytest.fixture
def pair(case: Case, golden_root: GoldenRoot) -> Pair:
    case_id = f"4.3.0/{case.name}"
    root = golden_root.case(case_id)
    certificate = tomllib.loads(certificate_path(case_id).read_text("utf-8"))
    config = {
        name.removeprefix("internal."): value for name, value in certificate["config"].items()
    }
    pair = Pair(root / "before", root / "after", config, time_of(root / "after"))
    limits = dict(case.limits)
    if case.name == "retention-bytes":
        limits["retention.bytes"] = str(size_of(pair.after / pair.partition))
    return pair._replace(config=config | limits)


def size_of(partition: Path) -> int:
    return sum(path.stat().st_size for path in partition.glob("*.log"))


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and not NOT_OF_THE_LOG_DIRECTORY.fullmatch(path.name)
    }


def trim(case: Case, pair: Pair, directory: Path) -> None:
    """Do to a copy of ``before/`` what its broker did."""
    copy_state(pair.before, directory)
    clock = ManualClock(pair.now_ms)
    scheduler = ManualScheduler(clock)
    marker = json.loads((pair.after / ".kafka_cleanshutdown").read_bytes())
    manager = LogManager(
        [directory],
        LogConfig.from_properties(pair.config),
        context=LogContext(clock=clock, scheduler=scheduler),
        broker_epoch=marker["brokerEpoch"],
    )
    with manager:
        [log] = manager.logs.values()
        lead(log, pair.after)
        if case.delete_records is not None:
            log.delete_records(case.delete_records)
        log.delete_old_segments()
        clock.sleep(DELETE_DELAY_MS)
        scheduler.tick()


def test_every_file_is_the_brokers(case: Case, pair: Pair, tmp_path: Path) -> None:
    trim(case, pair, tmp_path)
    kafkas, ours = contents(pair.after), contents(tmp_path)
    assert sorted(kafkas) == sorted({*ours, "cleaner-offset-checkpoint"})
    topic, _, partition = pair.partition.rpartition("-")
    for name, content in ours.items():
        if OTHER_BROKERS_TOPICS.fullmatch(name):
            # The broker's log dir held topics that the case does not.
            own = [line for line in kafkas[name].decode().splitlines() if f"{topic} " in line]
            assert content.decode().splitlines() == ["0", "1", *own]
            assert own[0].startswith(f"{topic} {partition} ")
        elif name == "log-start-offset-checkpoint":
            kept = f"{topic} {partition} {case.start}\n"
            has_line = case.delete_records is not None
            assert (kept in content.decode()) is (kept in kafkas[name].decode()) is has_line
        elif not NOT_LOOKED_AT.fullmatch(name):
            assert content == kafkas[name], name


def test_a_dry_run_says_what_is_left_and_changes_nothing(
    case: Case, pair: Pair, tmp_path: Path
) -> None:
    copy_state(pair.before, tmp_path)
    topic, _, partition = pair.partition.rpartition("-")
    if case.delete_records is not None:
        pylog.delete_records(tmp_path, {(topic, int(partition)): case.delete_records})
    before = contents(tmp_path)
    summary = pylog.apply_retention(tmp_path, config=pair.config, now_ms=pair.now_ms, dry_run=True)
    assert contents(tmp_path) == before
    [found] = summary.partitions
    latest = json.loads((pair.after / "offsets.json").read_text())[pair.partition]["latest"]
    assert (found.log_start_offset, found.log_end_offset) == (case.start, latest)
    assert found.size_bytes == size_of(pair.after / pair.partition)
    assert found.deleted_bytes == size_of(pair.before / pair.partition) - found.size_bytes
    # One record at each offset, and those below a log start have been deleted before.
    assert found.records == (0 if case.delete_records is not None else case.start)
