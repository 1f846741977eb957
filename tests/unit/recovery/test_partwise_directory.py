"""A log directory of parts: all of them in the end, and nothing before or after an error."""

from __future__ import annotations

import itertools
import pickle
import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.files.checkpoint_file import read_offset_checkpoint
from pylog.jobs import PartwiseDirectory, extract
from tests.support.killed_program import crashed_at
from tests.support.log_files import tree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import HowMany


def extract_all(source: Path, parts: PartwiseDirectory) -> None:
    places = pickle.loads(pickle.dumps(parts.places))  # noqa: S301 - our own
    for view in pylog.open_directory(source):
        if view.topic != "__cluster_metadata":
            done = extract(
                source,
                to=places.of(view.topic_partition, attempt=1),
                topics=[view.topic],
                partitions=[view.partition],
            )
            parts.take(done.to)


def test_parts_become_what_one_call_makes(source: Path, tmp_path: Path) -> None:
    with PartwiseDirectory(tmp_path / "out", [source]) as parts:
        extract_all(source, parts)
        assert not (tmp_path / "out").exists()
    topics = [each for each in pylog.open_directory(source).topics if each != "__cluster_metadata"]
    extract(source, to=tmp_path / "whole", topics=topics)
    assert tree(tmp_path / "out").keys() == tree(tmp_path / "whole").keys()
    for name, content in tree(tmp_path / "whole").items():
        if not name.endswith("-checkpoint") and not name.endswith(".snapshot"):
            assert tree(tmp_path / "out")[name] == content, name
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        found = [read_offset_checkpoint(tmp_path / each / name) for each in ("out", "whole")]
        assert found[0] == found[1]
    assert {each.name for each in tmp_path.iterdir()} == {"out", "whole"}
    assert {each.code for each in pylog.doctor(tmp_path / "out").findings} == {"group_expires"}


def test_what_an_attempt_has_left_is_no_part(source: Path, tmp_path: Path) -> None:
    place = pylog.TopicPartition("orders", 0)
    with PartwiseDirectory(tmp_path / "out") as parts:
        for attempt in (0, 1):
            to = parts.places.of(place, attempt)
            extract(
                source, to=to, topics=["orders"], partitions=[0], end=10 * attempt + 3, exact=True
            )
        parts.take(to)
    assert [each.log_end_offset for each in pylog.open_directory(tmp_path / "out")] == [13]


def test_an_error_leaves_nothing_and_a_place_that_is_taken_is_refused(
    source: Path, tmp_path: Path
) -> None:
    def fail() -> None:
        with PartwiseDirectory(tmp_path / "out") as parts:
            extract_all(source, parts)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out.pylog-unfinished").mkdir()
    with pytest.raises(LogDirectoryError, match="interrupted"):
        PartwiseDirectory(tmp_path / "out")
    with pytest.raises(LogDirectoryError, match="not to be changed"):
        PartwiseDirectory(tmp_path / "source" / "deep" / "out", [tmp_path / "source"])


def test_a_crash_at_any_step_leaves_all_of_it_or_nothing_in_its_place(
    source: Path, tmp_path: Path, how_many: HowMany
) -> None:
    def make() -> None:
        with PartwiseDirectory(out) as parts:
            extract_all(source, parts)

    out, unfinished = tmp_path / "out", tmp_path / "out.pylog-unfinished"
    outcomes = set()
    for step in itertools.count(0, how_many(41, 5)):
        has_crashed = crashed_at(step, make)
        outcomes.add((out.exists(), unfinished.exists()))
        if unfinished.exists():
            with pytest.raises(LogDirectoryError, match=r"interrupted|not empty"):
                make()
            shutil.rmtree(unfinished)
        if out.exists():
            assert len(list(pylog.open_directory(out))) == 8
            shutil.rmtree(out)
        if not has_crashed:
            break
    assert outcomes >= {(False, True), (True, False)}
