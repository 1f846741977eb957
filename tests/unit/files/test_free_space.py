"""No command begins what the disks have no room for, and each one says how much is missing."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

import pylog
from pylog.errors import LogDirectoryError
from pylog.files.free_space import NeededSpace, ensure_space, log_space
from pylog.files.system_calls import SystemCalls
from tests.support.adopted_disks import formatted, old
from tests.support.batches import Stored, batch_v2
from tests.support.log_files import tree, write_partition
from tests.unit.recovery.test_adopt_cluster import disks
from tests.unit.recovery.test_running_plan import running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Usage(NamedTuple):
    free: int
    total: int = 1 << 40


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Give a function that says how many bytes all disks have left."""

    def set_free(size_bytes: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(size_bytes))

    return set_free


def _owned(place: Path) -> Path:
    write_partition(place, {0: [batch_v2([Stored(0, 1, b"k", b"v")])]}, name="t-0")
    return place


def _erase(path: Path) -> object:
    return pylog.jobs.erase(_owned(path / "own"), pylog.RecordFilter(keys=frozenset({b"k"})))


def _mask(path: Path) -> object:
    (path / "rules.toml").write_text("[[mask]]\nkey = true\nreplace = 'x'")
    rules = pylog.jobs.read_mask_rules(path / "rules.toml")
    return pylog.jobs.mask(_owned(path / "own"), rules)


CALLS: dict[str, Callable[[Path], object]] = {
    "repair": lambda path: pylog.repair_copy(old(path / "old"), path / "new"),
    "extract": lambda path: pylog.jobs.extract(old(path / "old"), to=path / "new"),
    "merge": lambda path: pylog.jobs.merge(old(path / "old"), to=path / "new"),
    "first-aid": lambda path: pylog.first_aid(*disks(path), to=path / "new", voters=[1]),
    "adopt": lambda path: pylog.adopt(old(path / "old"), into=formatted(path / "new")),
    "as-cluster": lambda path: pylog.jobs.adopt_cluster(
        *disks(path), into=path / "new", nodes=[1], endpoints={1: "host:9093"}
    ),
    "plan-for-running": lambda path: pylog.jobs.plan_for_running(
        old(path / "old"), running=running(path / "run", 7), into=path / "new"
    ),
    "erase": _erase,
    "mask": _mask,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_command_without_room_is_refused_before_it_writes(
    name: str, tmp_path: Path, free: Callable[[int], None]
) -> None:
    for each in ("enough", "short"):
        (tmp_path / each).mkdir()
    CALLS[name](tmp_path / "enough")
    free(1)
    with pytest.raises(LogDirectoryError, match=r"needs \d+ bytes, and 1 are free"):
        CALLS[name](tmp_path / "short")
    new = tmp_path / "short" / "new"
    assert not list((tmp_path / "short").rglob("*unfinished*"))
    assert not new.exists() or tree(new) == tree(formatted(tmp_path / "fresh"))
    if (tmp_path / "short" / "own").exists():
        assert pylog.scan(tmp_path / "short" / "own").to_table()["key"].to_pylist() == [b"k"]


def test_a_disk_that_does_not_say_how_large_it_is_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(0, total=0))
    ensure_space([NeededSpace(str(tmp_path), 1)])
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(0))
    with pytest.raises(LogDirectoryError, match="needs 1 bytes, and 0 are free"):
        ensure_space([NeededSpace(str(tmp_path), 1)])


def test_places_on_one_disk_count_together(tmp_path: Path, free: Callable[[int], None]) -> None:
    free(10)
    needs = [NeededSpace(str(tmp_path / "not" / str(each)), 6) for each in range(2)]
    ensure_space(needs[:1])
    with pytest.raises(LogDirectoryError, match="needs 12 bytes, and 10 are free"):
        ensure_space(needs)


def test_a_copy_that_shares_the_bytes_of_its_source_needs_none(
    tmp_path: Path, free: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    free(log_space(0))
    need = NeededSpace(str(tmp_path), log_space(1 << 30), str(source))
    monkeypatch.setattr(SystemCalls, "clone", lambda *_: False)
    with pytest.raises(LogDirectoryError):
        ensure_space([need])
    monkeypatch.setattr(SystemCalls, "clone", lambda *_: True)
    ensure_space([need])
    with pytest.raises(LogDirectoryError):  # the source is on another machine, or gone
        ensure_space([need._replace(source="s3://bucket/key")])
    assert [each.name for each in tmp_path.iterdir()] == ["source"]
