from __future__ import annotations

import errno
import logging
from functools import partial
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.errors import KafkaStorageError, LogDirectoryError
from pylog.log.log_context import LogContext
from pylog.model import TopicPartition
from pylog.writing import owned_directory
from tests.support.recording_io import Fault, FaultyIO, Kind

if TYPE_CHECKING:
    from pathlib import Path


def test_a_directory_is_made_unless_it_must_exist(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError):
        pylog.logs.own_log_directory(tmp_path / "logs", must_exist=True)
    assert not (tmp_path / "logs").exists()
    with pylog.logs.own_log_directory(tmp_path / "logs"):
        assert (tmp_path / "logs" / ".lock").exists()
    assert not (tmp_path / "logs" / ".lock").exists()


@pytest.mark.parametrize("is_logged", [False, True])
def test_a_failing_disk_is_raised_and_logged_only_by_a_context_that_does(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    is_logged: bool,
) -> None:
    fault = Fault(
        kinds=frozenset({Kind.WRITE}),
        path_end="partition.metadata.tmp",
        at=0,
        forever=True,
        error_number=errno.ENOSPC,
    )
    context = partial(LogContext, io=FaultyIO(fault))
    monkeypatch.setattr(owned_directory, "LogContext", context)
    manager = pylog.logs.own_log_directory(tmp_path, context=context() if is_logged else None)
    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(KafkaStorageError, match="No space left on device"),
        manager,
    ):
        manager.get_or_create_log(TopicPartition("t", 0))
    assert [record.message.split(":")[0] for record in caplog.records] == (
        [f"log directory {tmp_path} goes offline"] if is_logged else []
    )
