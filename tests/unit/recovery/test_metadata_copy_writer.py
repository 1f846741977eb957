"""A copy of the metadata has the log up to its end, its snapshots, and what is appended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pylog.files.durable_io import DurableIO
from pylog.recovery.metadata_batches import BatchAppender
from pylog.recovery.metadata_copies import find_copies
from pylog.recovery.metadata_copy_writer import quorum_state_after, write_metadata_copy
from pylog.writing.node import nodes_of
from tests.support.log_files import segment_path, tree
from tests.support.metadata_log import METADATA, feature_record, topic_record, write_snapshot
from tests.unit.recovery.test_cluster_info import voting
from tests.unit.recovery.test_first_aid import STATE

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.recovery.metadata_copies import MetadataCopy

LOG = f"{0:020d}.log"


def copy_of(directory: Path) -> MetadataCopy:
    [found], errors = find_copies(nodes_of([str(directory)]).values())
    assert errors == []
    return found


def written(source: Path, target: Path) -> dict[str, bytes]:
    """Copy a log with one record more; return the files, and check that the record is last."""
    seed = copy_of(source)
    appender = BatchAppender(seed.end_offset, 0, 9)
    appender.append_records([topic_record("more")], "text")
    write_metadata_copy(DurableIO(), seed, appender.appended, str(target))
    files = tree(target)
    last = files[max(each for each in files if each.endswith(".log"))]
    assert last.endswith(appender.appended[0].data)
    return files


@pytest.mark.parametrize("tail", [b"", b"\0" * 100, b"torn"])
def test_what_is_appended_follows_the_last_whole_batch(tail: bytes, tmp_path: Path) -> None:
    source = voting(tmp_path / "1", 1, [feature_record(21)], (1,))
    path = segment_path(source / METADATA, 0)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    (source / METADATA / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (source / METADATA / "quorum-state").write_text("{}")
    before = tree(source)
    files = written(source, tmp_path / "copy")
    assert tree(source) == before
    assert files.keys() == {LOG, "leader-epoch-checkpoint"}
    assert files[LOG].startswith(whole)
    assert files[LOG][len(whole) : len(whole) + 8] == (2).to_bytes(8, "big")


def test_a_log_that_ends_below_its_last_snapshot_is_left_out(tmp_path: Path) -> None:
    source = voting(tmp_path / "1", 1, [feature_record(21)], (1,))
    (source / METADATA / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    for end in (1, 70):
        snapshot = write_snapshot(source / METADATA, end, [feature_record(25)])
    files = written(source, tmp_path / "copy")
    assert files.keys() == {snapshot.name, f"{70:020d}.log"}
    assert files[snapshot.name] == snapshot.read_bytes()


def test_snapshots_below_the_end_come_along(tmp_path: Path) -> None:
    source = voting(tmp_path / "1", 1, [feature_record(21)] * 9, (1,))
    names = {write_snapshot(source / METADATA, end, [feature_record(21)]).name for end in (2, 5)}
    assert written(source, tmp_path / "copy").keys() == {LOG, *names}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((None, None), 1),  # the log's own epoch is 0
        ((7, None), 8),
        ((3, 9), 10),
        (("x", 4), 5),
    ],
)
def test_no_election_was_in_the_next_epoch(
    states: tuple[object, object], expected: int, tmp_path: Path
) -> None:
    disks = []
    for number, state in enumerate(states, start=1):
        disk = voting(tmp_path / str(number), number, [feature_record(21)], (1, 2))
        if state is not None:
            text = STATE.replace('"leaderEpoch":7', f'"leaderEpoch":{state}')
            (disk / METADATA / "quorum-state").write_text(text)
        disks.append(disk)
    nodes = list(nodes_of(map(str, disks)).values())
    found = json.loads(quorum_state_after(copy_of(disks[0]), nodes, [1, 2]))
    assert (found["leaderEpoch"], found["leaderId"]) == (expected, -1)
    assert found["currentVoters"] == [{"voterId": 1}, {"voterId": 2}]
