from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError
from pylog.files.directory_lock import DirectoryLock
from pylog.files.looks import (
    DIRECTORY_PAUSES,
    LIVE_PAUSES,
    MOST_LOOKS,
    Looks,
    lasting,
    live_pauses,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_reader_looks_a_hundred_times_and_then_raises_what_it_was_given_last() -> None:
    looks = Looks()
    count = 0

    def look() -> None:
        nonlocal count
        while True:
            count += 1
            looks.again(LogDirectoryError(f"look {count} was too slow", "/logs"))

    with pytest.raises(LogDirectoryError, match="look 100 was too slow"):
        look()
    assert count == MOST_LOOKS == 100


@pytest.mark.parametrize(
    ("side_file_age", "log_age", "may_be_half_written"),
    [
        (0, 0, True),
        (0, 9_999, True),
        (9_999, 0, True),  # what is mapped into memory changes the file's time late
        (9_999, None, False),
        (9_999, 9_999, False),
        (-9_999, 9_999, True),  # of a host whose clock goes ahead
    ],
)
def test_only_what_has_just_changed_may_be_half_written(
    tmp_path: Path, side_file_age: int, log_age: int | None, *, may_be_half_written: bool
) -> None:
    path = tmp_path / f"{7:020d}.index"
    for each, age in ((path, side_file_age), (path.with_suffix(".log"), log_age)):
        if age is not None:
            each.touch()
            changed = time.time() - age
            os.utime(each, (changed, changed))
    assert tuple(live_pauses(str(path))) == (LIVE_PAUSES if may_be_half_written else ())


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list that what would be waited comes into."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


def test_what_each_look_misses_lasts_and_what_one_does_not_is_passing(
    tmp_path: Path, pauses: list[float]
) -> None:
    looks = iter([{"gone-0", "made-0"}, None, {"gone-0", "new-0"}, None])  # two cannot tell
    found = {"gone-0": 1, "made-0": 2, "dropped-0": 3}
    with DirectoryLock(tmp_path):  # as a broker has it
        found = lasting(found, lambda: next(looks, {"gone-0"}), ["/missing", str(tmp_path)])
    assert found == {"gone-0": 1}
    assert tuple(pauses) == DIRECTORY_PAUSES


@pytest.mark.parametrize(("found", "waited"), [({"gone-0": 1}, 1), ({}, 0)])
def test_where_no_broker_works_one_further_look_is_enough(
    tmp_path: Path, pauses: list[float], found: dict[str, int], waited: int
) -> None:
    (tmp_path / ".lock").touch()  # which one that was killed leaves
    assert lasting(found, lambda: {"gone-0"}, [str(tmp_path)]) == found
    assert len(pauses) == waited


def test_nothing_is_waited_for_once_nothing_is_left(tmp_path: Path, pauses: list[float]) -> None:
    with DirectoryLock(tmp_path):
        assert lasting({"made-0": 1}, set, [str(tmp_path)]) == {}
    assert len(pauses) == 1
