"""What fills a disk, by partition and kind."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.files.storage import list_directory
from pylog.reading import disk_use
from tests.support.batches import batch_v2, plain_records
from tests.support.log_files import write_meta_properties, write_partition

if TYPE_CHECKING:
    from pathlib import Path

    from pylog.files.storage import DirectoryEntry

BATCH = batch_v2(plain_records(0, 5), leader_epoch=3)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_partition(tmp_path, {0: [BATCH]}, name="t-0")
    write_partition(tmp_path, {0: [BATCH]}, name="u-1")
    return tmp_path


def test_all_that_fills_the_disk_is_counted_by_kind(logs: Path) -> None:
    """As `du --apparent-size` counts files."""
    for name, size in (
        ("t-0/00000000000000000000.index", 16),
        ("t-0/00000000000000000005.snapshot", 10),
        ("t-0/00000000000000000000.txnindex", 34),
        ("t-0/00000000000000000000.log.deleted", 1000),
        ("t-0/00000000000000000000.timeindex.deleted", 24),
        ("t-0/00000000000000000000.log.cleaned", 200),
        ("t-0/00000000000000000000.log.swap", 3000),
        ("t-0/leader-epoch-checkpoint", 8),
        ("t-0/notes.txt", 7),
        ("t-0/folder/more/deep.bin", 70),
        (f"t-1.{'a' * 32}-delete/00000000000000000000.log", 500),
        (f"t-2.{'b' * 32}-stray/00000000000000000000.index", 50),
        (f"t-3.{'c' * 32}-future/00000000000000000000.log", 5),
        ("meta.properties", 0),
        ("recovery-point-offset-checkpoint", 4),
        ("remote-log-index-cache/1.index", 9),
        ("lost+found/x", 90),
    ):
        path = logs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    (logs / "t-0" / "link").symlink_to("leader-epoch-checkpoint")
    (logs / "meta.properties").write_text(
        "version=1\nnode.id=7\ncluster.id=c\ndirectory.id=AAAAAAQAAAAAAAAAAAAAAQ\n"
    )
    listing = pylog.list_partitions(logs)
    [found] = listing.log_directories
    files = [path for path in logs.rglob("*") if path.is_file() or path.is_symlink()]
    assert found.disk_bytes == sum(path.lstat().st_size for path in files)
    assert (found.cluster_id, found.node_id) == ("c", 7)
    assert found.directory_id == "AAAAAAQAAAAAAAAAAAAAAQ"
    beside = (logs / "meta.properties").stat().st_size + 4 + 9 + 90
    expected = {
        "deleted": 1024,
        "cleaned": 200,
        "swap": 3000,
        "log": 2 * len(BATCH.data),
        "delete": 500,
        "stray": 50,
        "future": 5,
        "snapshot": 10,
        "txnindex": 34,
        "checkpoint": 8,
        "other": 77 + len("leader-epoch-checkpoint"),
        "beside": beside,
    }
    assert {kind: found.kinds[kind] for kind in expected} == expected
    sizes = {each.partition: each.disk_bytes for each in listing.not_live}
    assert sizes == {1: 500, 2: 50, 3: 5}
    [partition] = pylog.list_partitions(logs / "t-0").log_directories
    in_t = [path for path in files if "t-0" in path.parts]
    assert partition.disk_bytes == sum(path.lstat().st_size for path in in_t)


@pytest.mark.parametrize("is_unmounted", [False, True])
def test_what_a_broker_takes_away_is_no_error_and_a_disk_that_goes_is(
    logs: Path, monkeypatch: pytest.MonkeyPatch, *, is_unmounted: bool
) -> None:
    write_meta_properties(logs)
    listed = list_directory

    def taken_first(directory: str) -> list[DirectoryEntry]:
        if directory == str(logs / "u-1"):
            shutil.rmtree(directory)
            if is_unmounted:
                (logs / "meta.properties").unlink()
        return list(listed(directory))

    monkeypatch.setattr(disk_use, "list_directory", taken_first)
    use = disk_use.disk_use(str(logs))
    assert [str(each).split(": ")[0] for each in use.errors] == (
        [str(logs / "u-1")] if is_unmounted else []
    )
    assert use.directories[str(logs / "t-0")] > 0
