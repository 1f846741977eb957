"""Power fails at every step of what makes a new log directory of others.

What is there afterwards is nothing, or marked as unfinished, or whole; and it is whole once the
call has returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.jobs import PartwiseDirectory, extract, merge
from pylog.recovery.adoption_target import ADOPTION
from pylog.writing.new_log_directory import MOVED, UNFINISHED
from tests.crash.test_splitting import CRASHES
from tests.support.adopted_disks import left_in, old
from tests.support.batches import batch_v2, plain_records
from tests.support.crash_replay import replay
from tests.support.log_files import (
    mark_clean_shutdown,
    tree,
    write_meta_properties,
    write_partition,
    write_topic_id,
)
from tests.support.metadata_log import TOPIC_ID_TEXT, topic_record, write_metadata_log
from tests.unit.recovery.test_adopt_cluster import disks
from tests.unit.recovery.test_partwise_directory import extract_all
from tests.unit.recovery.test_running_plan import running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import SomeOf
    from tests.support.recording_io import RecordingIO


def write_disk(place: Path, end: int) -> None:
    for name in ("orders-0", "users-1"):
        segments = {
            0: [batch_v2(plain_records(0, 5))],
            5: [batch_v2(plain_records(offset, 5)) for offset in range(5, end, 5)],
        }
        write_topic_id(write_partition(place, segments, name=name), TOPIC_ID_TEXT)
    (place / "meta.properties").unlink(missing_ok=True)
    write_meta_properties(place)


def write_node(place: Path) -> None:
    place.mkdir()
    text = "version=1\ncluster.id=bbgTT3A5rkm9iGMDXIMjTw\nnode.id=1\n"
    (place / "meta.properties").write_text(text)
    write_metadata_log(place, [topic_record("orders")], voters=(1, 2, 3))
    mark_clean_shutdown(place)


def sources(root: Path) -> None:
    write_disk(root / "one", 20)
    write_disk(root / "other", 30)
    write_node(root / "controller")
    disks(root / "cluster")
    old(root / "old")
    running(root / "running", 7)


def extract_in_parts(root: Path, to: Path) -> None:
    with PartwiseDirectory(to) as parts:
        extract_all(root / "other", parts)


MAKERS: dict[str, Callable[[Path, Path], object]] = {
    "merge": lambda root, to: merge(root / "one", root / "other", to=to),
    "extract": lambda root, to: extract(root / "other", to=to),
    "extract --exact": lambda root, to: extract(root / "other", to=to, start=2, end=13, exact=True),
    "extract in parts": extract_in_parts,
    "doctor --repair-to": lambda root, to: pylog.repair_copy(root / "other", to),
    "adopt": lambda root, to: pylog.jobs.plan_for_running(
        root / "old", running=root / "running", into=to
    ),
    "adopt --as-cluster": lambda root, to: pylog.jobs.adopt_cluster(
        *sorted((root / "cluster").iterdir()), into=to, nodes=[2], endpoints={2: "host:9093"}
    ),
    "first-aid": lambda root, to: pylog.first_aid(root / "controller", to=to, voters=[1]),
}


@pytest.mark.parametrize("kind", CRASHES)
@pytest.mark.parametrize("maker", MAKERS)
def test_power_fails_at_every_step(
    tmp_path: Path, recorded: RecordingIO, some_of: SomeOf, maker: str, kind: str
) -> None:
    root = tmp_path / "recorded"
    sources(root)
    before = tree(root)
    MAKERS[maker](root, root / "made")
    whole = left_in(root / "made")
    lose_unsynced, names = CRASHES[kind]
    steps = len(recorded.operations)
    seen = set()
    for done in some_of(range(steps + 1), one_in=4):
        place = tmp_path / str(done)
        place.mkdir()
        sources(place)
        replay(recorded.operations[:done], place, lose_unsynced=lose_unsynced, names=names)
        left = tree(place)
        assert {name: left[name] for name in before} == before
        made = left_in(place / "made")
        is_marked = any((place / "made" / each).exists() for each in (ADOPTION, UNFINISHED))
        seen.add((bool(made), is_marked))
        other = {name for name in made | whole if made.get(name) != whole.get(name)}
        if not is_marked:
            other.discard(MOVED)  # which a broker ignores
        # As on a broker, nothing waits for the snapshot of a roll: the last one is synced.
        lost = {name for name in other if not name.endswith(f"{5:020d}.snapshot")}
        assert is_marked or not made or not lost, recorded.summary[:done][-3:]
    assert made.keys() == whole.keys()
    assert not is_marked
    assert {is_there for is_there, _ in seen} == {False, True}
