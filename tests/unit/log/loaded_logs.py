"""Logs that tests load, and what is then in their files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pylog.config import LogConfig, LogManagerConfig, RecoveryMode
from pylog.files.durable_io import DurableIO
from pylog.log.log_context import LogContext
from pylog.log.log_loader import LogLoading, load_log
from tests.unit.log.owned_log import OwnedLog

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


BATCH_BYTES = 70  # of one record with a value of two bytes
THREE_BATCHES = LogConfig(
    segment_bytes=3 * BATCH_BYTES, index_interval_bytes=1, segment_index_bytes=1200
)
INT32_MAX = 2**31 - 1


def load(
    owned: OwnedLog,
    *,
    is_clean: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    io: DurableIO | None = None,
    recovery_mode: RecoveryMode = RecoveryMode.AS_BROKER,
) -> LogLoading:
    """Open the log as a new process does; return what was done."""
    loading = LogLoading(
        directory=str(owned.directory),
        config=owned.config,
        manager_config=LogManagerConfig(),
        context=LogContext(
            io=io or DurableIO(),
            clock=owned.clock,
            scheduler=owned.scheduler,
            random=random.Random(1),
        ),
        had_clean_shutdown=is_clean,
        recovery_point_checkpoint=recovery_point,
        log_start_offset_checkpoint=log_start_offset,
        recovery_mode=recovery_mode,
    )
    owned.log = load_log(loading)
    return loading


def fill(owned: OwnedLog, numbers: Iterable[int]) -> None:
    """Append a record each, of the same size and a second apart."""
    for number in numbers:
        owned.clock.sleep(1000)
        owned.append(b"%02d" % number)


def names(owned: OwnedLog, pattern: str = "*") -> list[str]:
    return sorted(path.name for path in owned.directory.glob(pattern))


def file_of(owned: OwnedLog, base_offset: int, suffix: str) -> Path:
    return owned.directory / f"{base_offset:020d}{suffix}"


def values(owned: OwnedLog) -> list[bytes | None]:
    return [record.value for record in owned.all_records()]


@pytest.fixture
def owned(tmp_path: Path) -> OwnedLog:
    """Twelve records in four segments: 0, 3, 6, 9."""
    owned = OwnedLog(tmp_path, THREE_BATCHES)
    fill(owned, range(12))
    assert owned.base_offsets == [0, 3, 6, 9]
    return owned
