"""The steps of a replacement: what is renamed and synced, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.log.replaced_segments import PARTITION, replaced

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_new_segment_counts_last_and_names_are_synced_in_between(tmp_path: Path) -> None:
    operations = [str(each).replace(f"{PARTITION}/", "") for each in replaced(tmp_path)]
    sync = f"sync-directory {PARTITION}"
    zero, three, ten = (f"{base_offset:020d}" for base_offset in (0, 3, 10))
    start = operations.index(sync)
    assert operations[start:] == [
        sync,
        f"replace {three}.log.cleaned {three}.log.swap",
        sync,
        f"replace {zero}.log.cleaned {zero}.log.swap",
        sync,
        f"replace {zero}.log {zero}.log.deleted",
        f"replace {zero}.index {zero}.index.deleted",
        f"replace {ten}.log {ten}.log.deleted",
        f"replace {ten}.index {ten}.index.deleted",
        sync,
        f"replace {zero}.log.swap {zero}.log",
        sync,
        f"replace {three}.log.swap {three}.log",
        sync,
        f"remove {zero}.log.deleted",
        f"remove {zero}.index.deleted",
        f"remove {ten}.log.deleted",
        f"remove {ten}.index.deleted",
    ]
