"""What our start-up makes of a directory that a killed broker left is what the broker made of it.

Of each crash case ``before/`` is copied, opened by a `LogManager` of the case's configuration and
at the case's time, given the leader epoch that the broker was given, and shut down. The result is
compared with ``after/`` file by file. Whatever is not the same to the byte is in the table
`STATED_DIFFERENCES`.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pylog.config import LogConfig, RecoveryMode
from pylog.log.log_context import LogContext
from pylog.log.log_manager import LogManager
from pylog.testing import ManualClock, ManualScheduler
from tests.support.golden import certificate_path, golden_cases, golden_partitions
from tests.unit.log.owned_log import batches_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.log.unified_log import UnifiedLog
    from tests.support.golden import GoldenRoot

CASES = [each for each in golden_cases() if "/crash-" in each]
NOT_OF_THE_LOG_DIRECTORY = re.compile(r"expected\..*|dump\..*|offsets\.json")
EMPTY_MARKER = b""
INDEX_ENTRY = struct.Struct(">ii")


class Difference(NamedTuple):
    """Files that need not be the same, up to a broker version, and why."""

    file: str
    up_to: str
    kind: str
    why: str


ONLY_OURS, INDEX_OF_FIRST_OFFSETS, OTHER_CONTENT, OTHER_TOPICS, ABOVE_THE_END, NOT_READ = (
    "only ours has it",
    "the same positions, but the offset of a batch's first record",
    "another content",
    "the same lines for the topics of the case",
    "Kafka's recovery point lies above the log's end, ours at it",
    "not looked at",
)
EVERY_BROKER = "4.3.0"
STATED_DIFFERENCES = (
    Difference(r".*/\d{20}\.timeindex", "0.10.0.1", ONLY_OURS, "time indexes are of 0.10.1"),
    Difference(r".*/\d{20}\.snapshot", "0.10.0.1", ONLY_OURS, "producers are of 0.11"),
    Difference(
        r".*/\d{20}\.snapshot",
        "0.11.0.3",
        ONLY_OURS,
        "0.11 removed snapshots below the recovery point; they stay with their segments since 2.8",
    ),
    Difference(r".*/leader-epoch-checkpoint", "0.10.0.1", ONLY_OURS, "leader epochs are of 0.11"),
    Difference(r"log-start-offset-checkpoint", "0.10.0.1", ONLY_OURS, "the file is of 0.11"),
    Difference(
        r".*/\d{20}\.index",
        "0.11.0.3",
        INDEX_OF_FIRST_OFFSETS,
        "brokers up to 1.1 indexed first offsets; none of the positions is another",
    ),
    Difference(r"\.kafka_cleanshutdown", "2.8.2", OTHER_CONTENT, "it was empty up to 3.6"),
    Difference(
        r"(recovery-point|replication|log-start)-offset-checkpoint",
        EVERY_BROKER,
        OTHER_TOPICS,
        "the broker's log dir held topics that the case does not",
    ),
    Difference(
        r"recovery-point-offset-checkpoint",
        "0.10.0.1",
        ABOVE_THE_END,
        "old brokers did not lower it when recovery cut the log below it",
    ),
    Difference(
        r"cleaner-offset-checkpoint|meta\.properties|bootstrap\.checkpoint",
        EVERY_BROKER,
        NOT_READ,
        "logs are opened without them; they stay as they were",
    ),
)


@dataclass(frozen=True)
class Pair:
    """A case whose ``before/`` has been opened and shut down in ``ours``."""

    case_id: str
    kafkas: Path
    ours: Path
    end_offsets: dict[str, int]

    @property
    def broker(self) -> str:
        return self.case_id.partition("/")[0]

    @property
    def partitions(self) -> list[str]:
        start = f"{self.case_id}:after/"
        return [each.removeprefix(start) for each in golden_partitions() if each.startswith(start)]

    def files(self) -> list[str]:
        return sorted(set(_files_below(self.kafkas)) | set(_files_below(self.ours)))


def _files_below(directory: Path) -> Iterator[str]:
    for path in directory.rglob("*"):
        if path.is_file() and not NOT_OF_THE_LOG_DIRECTORY.fullmatch(path.name):
            yield path.relative_to(directory).as_posix()


def version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def copy_state(state: Path, target: Path) -> None:
    """Copy what is Kafka's in a folder; the copies may be written to."""
    for name in _files_below(state):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(state / name, target / name)


def config_of(case_id: str) -> LogConfig:
    certificate = tomllib.loads(certificate_path(case_id).read_text("utf-8"))
    return LogConfig.from_properties(
        {name.removeprefix("internal."): value for name, value in certificate["config"].items()}
    )


def time_of(state: Path) -> int:
    """Return when the broker ran, which it wrote into its ``meta.properties``; 0 up to 0.8."""
    path = state / "meta.properties"
    if not path.exists():
        return 0
    stamp = next(line for line in path.read_text().splitlines() if re.match("#[A-Z]", line))
    text = stamp.removeprefix("#").replace("UTC ", "")
    moment = datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000


def epochs_in(path: Path) -> list[tuple[int, int]]:
    lines = path.read_text().splitlines()[2:]
    return [(int(epoch), int(start)) for epoch, start in map(str.split, lines)]


def lead(log: UnifiedLog, kafkas: Path) -> None:
    """Give the log the epoch that the broker's controller gave it after the start.

    Brokers since 4.0 write it down before the first append of that epoch.
    """
    path = kafkas / str(log.topic_partition) / "leader-epoch-checkpoint"
    if path.exists():
        newest = epochs_in(path)[-1][0]
        if newest > (log.latest_epoch or 0):
            log.leader_epochs.assign(newest, log.log_end_offset)
    # A leader without followers has replicated all that it holds.
    log.update_high_watermark(log.log_end_offset)


@pytest.fixture(params=CASES)
def pair(request: pytest.FixtureRequest, golden_root: GoldenRoot, tmp_path: Path) -> Pair:
    case = golden_root.case(request.param)
    copy_state(case / "before", tmp_path)
    clock = ManualClock(time_of(case / "before"))
    context = LogContext(clock=clock, scheduler=ManualScheduler(clock))
    marker = (case / "after" / ".kafka_cleanshutdown").read_bytes()
    manager = LogManager(
        [tmp_path],
        config_of(request.param),
        context=context,
        broker_epoch=json.loads(marker)["brokerEpoch"] if marker else -1,
        recovery_mode=RecoveryMode.BROKER_START,
    )
    with manager:
        for log in manager.logs.values():
            lead(log, case / "after")
        ends = {str(name): log.log_end_offset for name, log in manager.logs.items()}
    return Pair(request.param, case / "after", tmp_path, ends)


def test_the_end_is_where_the_broker_put_it(pair: Pair) -> None:
    offsets = json.loads((pair.kafkas / "offsets.json").read_text())
    assert pair.end_offsets == {name: offsets[name]["latest"] for name in pair.partitions}


def test_every_file_is_the_brokers_but_for_stated_differences(pair: Pair) -> None:
    problems = [problem for name in pair.files() if (problem := _problem(pair, name))]
    assert problems == []


def _problem(pair: Pair, name: str) -> str:
    kafkas, ours = pair.kafkas / name, pair.ours / name
    if not ours.exists():
        return f"{name}: only Kafka has it"
    if kafkas.exists() and kafkas.read_bytes() == ours.read_bytes():
        return ""
    allowed = [
        each
        for each in STATED_DIFFERENCES
        if re.fullmatch(each.file, name) and version_key(pair.broker) <= version_key(each.up_to)
    ]
    if not any(_is_of_kind(pair, name, each.kind) for each in allowed):
        what = "differs" if kafkas.exists() else "only ours"
        return f"{name}: {what}, and that is not stated for {pair.broker}"
    return ""


def _is_of_kind(pair: Pair, name: str, kind: str) -> bool:
    kafkas, ours = pair.kafkas / name, pair.ours / name
    if kind == ONLY_OURS or not kafkas.exists():
        return kind == ONLY_OURS and not kafkas.exists()
    if kind == OTHER_CONTENT:
        return kafkas.read_bytes() == EMPTY_MARKER
    if kind == OTHER_TOPICS:
        return _of_the_case(kafkas, pair) == _of_the_case(ours, pair)
    if kind == ABOVE_THE_END:
        return _points(ours, pair) == pair.end_offsets and all(
            point > pair.end_offsets[name] for name, point in _points(kafkas, pair).items()
        )
    if kind == INDEX_OF_FIRST_OFFSETS:
        return _is_index_of_first_offsets(kafkas, ours)
    return kind == NOT_READ


def _of_the_case(checkpoint: Path, pair: Pair) -> list[str]:
    version, _, *lines = checkpoint.read_text().splitlines()
    kept = [line for line in lines if "-".join(line.split()[:2]) in pair.partitions]
    return [version, *sorted(kept)]


def _points(checkpoint: Path, pair: Pair) -> dict[str, int]:
    lines = [line.split() for line in _of_the_case(checkpoint, pair)[1:]]
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in lines}


def _is_index_of_first_offsets(kafkas: Path, ours: Path) -> bool:
    log = ours.with_suffix(".log").read_bytes()
    theirs_stated = list(INDEX_ENTRY.iter_unpack(kafkas.read_bytes()))
    ours_stated = list(INDEX_ENTRY.iter_unpack(ours.read_bytes()))
    base_offset = int(ours.stem)
    position, first, last = 0, {}, {}
    for batch in batches_in(log):
        offsets = [record.offset for record in batch.records()]
        first[position], last[position] = offsets[0] - base_offset, offsets[-1] - base_offset
        position += batch.header.size_bytes
    return theirs_stated == [(first[at], at) for _, at in theirs_stated] and ours_stated == [
        (last[at], at) for _, at in theirs_stated
    ]


def test_what_was_recovered_starts_again_and_nothing_changes(pair: Pair) -> None:
    before = {name: (pair.ours / name).read_bytes() for name in _files_below(pair.ours)}
    clock = ManualClock(time_of(pair.kafkas))
    context = LogContext(clock=clock, scheduler=ManualScheduler(clock))
    broker_epoch = json.loads(before[".kafka_cleanshutdown"])["brokerEpoch"]
    with LogManager(
        [pair.ours], config_of(pair.case_id), context=context, broker_epoch=broker_epoch
    ) as manager:
        assert [each.recovered_segments for each in manager.loadings] == [[]] * len(manager.logs)
        for log in manager.logs.values():
            # A start forgets an epoch without records; a broker is then given another one.
            lead(log, pair.kafkas)
    assert {name: (pair.ours / name).read_bytes() for name in _files_below(pair.ours)} == before


def test_each_stated_difference_is_needed_by_some_case() -> None:
    brokers = {case_id.partition("/")[0] for case_id in CASES}
    assert {each.up_to for each in STATED_DIFFERENCES} <= brokers
