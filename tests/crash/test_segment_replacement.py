"""Several segments take the place of several others; a crash leaves the ones or the others."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from pylog.files.durable_io import DurableIO
from pylog.log_file.leftover_files import tidy_directory
from tests.support.crash_replay import Names, replay
from tests.unit.log.replaced_segments import LATER, NEW, OLD, replaced, write_old

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("names", list(Names), ids=[names.name.lower() for names in Names])
@pytest.mark.parametrize("lose_unsynced", [False, True], ids=["all content", "synced content"])
def test_a_crash_leaves_all_old_segments_or_all_new_ones(
    tmp_path: Path, *, lose_unsynced: bool, names: Names
) -> None:
    operations = replaced(tmp_path / "recorded")
    outcomes = set()
    for count in range(len(operations) + 1):
        root = tmp_path / "crashed"
        directory = write_old(root)
        replay(operations[:count], root, lose_unsynced=lose_unsynced, names=names)
        tidy_directory(str(directory), DurableIO())
        logs = {
            int(path.name[:20]): path.read_bytes()
            for path in directory.iterdir()
            if path.suffix == ".log"
        }
        assert logs in ({**OLD, **LATER}, {**NEW, **LATER}), f"after {count} operations"
        indexes = {int(path.name[:20]) for path in directory.iterdir() if path.suffix == ".index"}
        is_new = logs == {**NEW, **LATER}
        assert indexes == ({20} if is_new else {0, 10, 20}), f"after {count} operations"
        outcomes.add(is_new)
        shutil.rmtree(root)
    assert outcomes == {False, True}
